"""The two sides of a comparison: a record that is read, or a kubelet that is played.

A kubelet in this process is played as the version of the other side; one in its own process is played by
`run`, which keeps a record of it.
"""

import json
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from kubelet_conformance.campaigns.comparison.lives import Life, lives
from kubelet_conformance.plugin.play import perform
from kubelet_conformance.scenarios import every_scenario
from kubelet_conformance.targets.choice import Choice, TargetError
from kubelet_conformance.targets.opening import open_stage
from kubelet_conformance.trace.format.errors import BadInputError
from kubelet_conformance.trace.format.json_values import items_of, text_of

_OURS = frozenset({"reference", "reference-process"})
_TRACE = ".jsonl"
_RUN = "run.json"
_TRACES = "traces"


class NoRecordError(BadInputError):
    """A folder or file is no record; the message says what was expected."""


def is_record(name: str) -> bool:
    """Whether an argument names a record: the folder of a run, or a single trace.

    A folder that is called as a kubelet of ours is named as `./reference`.
    """
    return name not in _OURS and (Path(name).is_dir() or name.endswith(_TRACE))


def read_record(path: Path) -> dict[str, Life]:
    """The lives of a record, by scenario. Of a scenario that was played again alone, that one is taken.

    Raises TraceError for what is no trace, NoRecordError for a folder without traces.
    """
    if not path.is_dir():
        return {each.scenario: each for each in lives(path)}
    folder = path / _TRACES if (path / _TRACES).is_dir() else path
    found: dict[str, Life] = {}
    for trace in sorted(folder.glob(f"*{_TRACE}")):
        for each in lives(trace):
            if each.scenario not in found or not each.is_shared:
                found[each.scenario] = each
    if not found:
        raise NoRecordError(f"{path}: holds no traces: name the folder of `run --record`, or a trace")
    return {name: each for name, each in found.items() if name not in _left_out(path / _RUN)}


def _left_out(report: Path) -> set[str]:
    """The scenarios that could not be played after all, as the report of the run says."""
    try:
        value = json.loads(report.read_bytes())
    except (OSError, ValueError):
        return set()
    return {text_of(each, "name") for each in items_of(value, "not_applicable")}


def play_in_process(
    choice: Choice,
    names: Iterable[str],
    version: str,
    played_as: Mapping[str, str],
    begin: Callable[[str], None],
) -> dict[str, Life]:
    """The lives of a kubelet in this process in these scenarios; `begin` is called with each.

    Each is played as `version`, or as what the other side played it as.
    """
    stage = open_stage(choice)
    found: dict[str, Life] = {}
    for name in names:
        begin(name)
        trace = perform(every_scenario()[name], name, stage, version or played_as.get(name, "")).trace
        [found[name]] = lives(Path(name), trace)
    return found


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
    if not (folder / _RUN).is_file():
        raise TargetError(f"{choice.kubelet}: could not be played; `run` says why above")
    return read_record(folder)
