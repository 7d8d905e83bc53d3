"""Which seeded bugs are caught black box, on a kubelet in a process of its own with a manifest folder?

    python tests/black_box/run.py [--workers N] [--budget SECONDS] [BUG ...]

Each bug of a kubelet is first hunted in this process, which names the scenarios that show it. Those of them
that such a kubelet can be put through are then run on it, on wall time, until the first break; without a bug
nothing breaks there. Fails when under 90 % of these bugs break something.
"""

import argparse
import json
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from importlib import resources
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from kubelet_conformance.campaigns.zoo.hunt import Caught, hunt
from kubelet_conformance.node import scenario_of
from kubelet_conformance.scenarios import every_scenario
from kubelet_conformance.targets.bugs import bug_card, bug_ids

ENOUGH = 0.9
BUGGY_KUBELET = Path(__file__).with_name("buggy_kubelet.py")
CAUGHT, MISSED, BEYOND = "caught", "MISSED", "beyond a kubelet in a process"


class Seen(NamedTuple):
    """What came of one bug, and by which contracts."""

    bug: str
    result: str
    by: str


def showing(caught: Caught) -> dict[str, list[str]]:
    """The scenarios in which the bug breaks what it declares, by the version they are played as."""
    found: dict[str, list[str]] = defaultdict(list)
    for name, broken in caught.scenarios.items():
        if set(broken) & set(caught.bug.breaks) and name in every_scenario():
            found[scenario_of(every_scenario()[name]).nearest(caught.bug.kubernetes)].append(name)
    return found


def target_file(bug: str, version: str, folder: Path) -> Path:
    """A target file for the reference of this version with this bug, "" for none."""
    usual = resources.files("kubelet_conformance.targets.kubelet_target").joinpath("reference.toml")
    module = '"-m", "kubelet_reference.server"'
    text = usual.read_text(encoding="utf-8")
    if bug:
        text = text.replace(module, f'"{BUGGY_KUBELET}", "{bug}"')
    path = folder / f"{bug or 'right'}-{version}.toml"
    path.write_text(text.replace('"1.32"', f'"{version}"'), encoding="utf-8")
    return path


def run(kubelet: str, version: str, scenarios: Iterable[str], budget: str) -> dict[str, str]:
    """The verdict on each contract after these scenarios, or after the first break."""
    chosen = [word for name in scenarios for word in ("--scenario", name)]
    options = ("--kubelet", kubelet, "--kubernetes", version, "--budget", budget, "--fail-fast")
    command = ("kubelet-conformance", "run", *options, *chosen, "--format", "json")
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if not done.stdout:  # It could not even be started as one of these scenarios needs it.
        print(f"{' '.join(command)}: exit {done.returncode}\n{done.stderr[-2000:]}", file=sys.stderr)
        return {}
    return {each["id"]: each["verdict"] for each in json.loads(done.stdout)["contracts"]}


def seen(bug: str, folder: Path, budget: str) -> Seen:
    """Hunt a bug in this process, then on a process.

    One that breaks nothing there could have been caught if a contract that it declares is kept without it.
    """
    kept: list[str] = []
    caught = hunt(bug)
    for version, scenarios in showing(caught).items():
        verdicts = run(str(target_file(bug, version, folder)), version, scenarios, budget)
        broken = [key for key, verdict in verdicts.items() if verdict == "broken"]
        if broken:
            return Seen(bug, CAUGHT, " ".join(broken))
        right = run(str(target_file("", version, folder)), version, scenarios, budget)
        kept += [key for key in caught.bug.breaks if right.get(key) == "kept"]
    return Seen(bug, MISSED if kept else BEYOND, " ".join(kept))


def main() -> int:
    """Tell bug by bug what came of it, then the share."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("bugs", metavar="BUG", nargs="*")
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--budget", default="400", metavar="SECONDS")
    given = parser.parse_args()
    bugs = given.bugs or [each for each in bug_ids() if not bug_card(each).is_of_runtimes]
    found: dict[str, list[str]] = defaultdict(list)
    with TemporaryDirectory() as folder, ProcessPoolExecutor(given.workers) as pool:
        for each in pool.map(partial(seen, folder=Path(folder), budget=given.budget), bugs):
            found[each.result].append(each.bug)
            print(f"{each.bug:<16} {each.result}: {each.by}", flush=True)
    able = len(found[CAUGHT]) + len(found[MISSED])
    share = len(found[CAUGHT]) / max(able, 1)
    print(f"{len(found[CAUGHT])} of {able} bugs caught ({share:.0%}), {len(found[BEYOND])} {BEYOND}")
    return 0 if share >= ENOUGH else 1


if __name__ == "__main__":
    sys.exit(main())
