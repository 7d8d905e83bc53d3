"""The sides of a comparison: records that are read, or kubelets that are played.

A kubelet in this process is played as the version of the other side; one in its own process is played by
`run`, which keeps a record of it.
"""

import subprocess
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from kubelet_conformance.campaigns.comparison.lives import Life, lives
from kubelet_conformance.contract.applicability import parse_version, version_text
from kubelet_conformance.plugin.play import perform
from kubelet_conformance.reports.progress import Steps
from kubelet_conformance.run_record.model import Run
from kubelet_conformance.run_record.reader import read_run, unpacked
from kubelet_conformance.run_record.record import RUN, TRACE, TRACES
from kubelet_conformance.run_record.temporary_folder import TemporaryFolder
from kubelet_conformance.scenarios import every_scenario
from kubelet_conformance.targets.choice import Choice, TargetError
from kubelet_conformance.targets.opening import open_live_stage, open_stage
from kubelet_conformance.trace.format.errors import BadInputError

_OURS = frozenset({"reference", "reference-process"})
PACKS = (".tar.gz", ".tar.xz")


class NoRecordError(BadInputError):
    """A folder or file is no record; the message says what was expected."""


@dataclass(slots=True)
class Side:
    """One side: a record, or what is to be played.

    Attributes:
        name: its argument.
        choice: the kubelet that is to be played; None for a record.
        run: what the record says of its run; None for traces alone, and for a kubelet.
        lives: what the kubelet did, by scenario, once that was read or played.
    """

    name: str
    choice: Choice | None = None
    run: Run | None = None
    lives: dict[str, Life] = field(default_factory=dict[str, Life])

    @property
    def version(self) -> str:
        """The Kubernetes version that it was played as, "" where that is not known."""
        known = {each.kubernetes for each in self.lives.values()}
        version = known.pop() if len(known) == 1 else ""
        with suppress(ValueError):
            return version_text(parse_version(version))
        return ""

    @property
    def title(self) -> str:
        """What it is called in a report: its argument, and the kubelet that it shows."""
        kubelets = {each.kubelet for each in self.lives.values()}
        return self.name if not kubelets or self.choice else f"{self.name} ({', '.join(sorted(kubelets))})"

    def read(self, wanted: Callable[[str], bool]) -> None:
        """Read these scenarios of a record.

        Raises TraceError for what is no trace, NoRecordError for a folder without traces.
        """
        run, left_out, files = self.run, set[str](), list[str]()
        if run is not None:
            left_out = {each.name for each in run.not_applicable}
            files = sorted({each.trace for each in run.scenarios if wanted(each.name)})
        if self.name.endswith(TRACE):
            found = {each.scenario: each for each in lives(Path(self.name))}
        else:
            with unpacked(self.name, files) as folder:
                found = _lives_in(folder, self.name, files)
        self.lives = {name: each for name, each in found.items() if wanted(name) and name not in left_out}


def open_side(name: str, version: str, seed: int) -> Side:
    """What an argument names; raises BadInputError for what can be neither read nor played.

    A folder that is called as a kubelet of ours is named as `./reference`.
    """
    if name not in _OURS and (Path(name).is_dir() or name.endswith(PACKS)):
        return Side(name, run=read_run(name))
    if name.endswith(TRACE):
        return Side(name)
    choice = Choice(name, "fake", version, seed)
    (open_live_stage if choice.is_live else open_stage)(choice)
    return Side(name, choice)


def play(
    side: Side, choice: Choice, names: Sequence[str], version: str, played_as: Mapping[str, str]
) -> None:
    """Play a kubelet in these scenarios: each as `version`, or as what the other side played it as."""
    if choice.is_live:
        with TemporaryFolder() as folder:
            side.lives = play_live(choice, names, Path(folder))
        return
    progress = Steps(len(names), "scenarios played")
    stage = open_stage(choice)
    try:
        for name in names:
            progress.begin(name)
            played = perform(every_scenario()[name], name, stage, version or played_as.get(name, ""))
            [side.lives[name]] = lives(Path(name), played.trace)
    finally:
        progress.clear()


def play_live(choice: Choice, names: Iterable[str], folder: Path) -> dict[str, Life]:
    """The lives of a kubelet in its own process in these scenarios, without those that it cannot play.

    Raises TargetError if it cannot be played on at all.
    """
    command = [sys.executable, "-P", "-m", "kubelet_conformance", "run"]
    command += [f"--kubelet={choice.kubelet}", f"--runtime={choice.runtime}", f"--seed={choice.seed}"]
    command += [f"--record={folder}", "--format=json", f"--output={folder / 'report.json'}"]
    command += [f"--kubernetes={choice.kubernetes}"] if choice.kubernetes else []
    command += [f"--scenario={name}" for name in names]
    folder.mkdir(parents=True, exist_ok=True)
    subprocess.run(command, check=False)  # noqa: S603 - this very program
    if not (folder / RUN).is_file():
        raise TargetError(f"{choice.kubelet}: could not be played; `run` says why above")
    side = Side(str(folder), run=read_run(str(folder)))
    side.read(lambda _: True)
    return side.lives


def _lives_in(folder: Path, name: str, files: Collection[str]) -> dict[str, Life]:
    """The lives in these traces, or in all. Of a scenario that was played again alone, that one is taken."""
    place = folder / TRACES if (folder / TRACES).is_dir() else folder
    traces = [folder / each for each in files] if files else sorted(place.glob(f"*{TRACE}"))
    if not traces:
        raise NoRecordError(f"{name}: holds no traces: name a record of `run --record`, or a trace")
    found: dict[str, Life] = {}
    for trace in filter(Path.is_file, traces):
        for each in lives(trace):
            if each.scenario not in found or not each.is_shared:
                found[each.scenario] = each
    return found
