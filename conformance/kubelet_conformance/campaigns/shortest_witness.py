"""The shortest scenario that exercises a contract, played on the reference and drawn in characters."""

import tempfile
from itertools import islice
from pathlib import Path

from kubelet_conformance.campaigns.declared import declared_witnesses
from kubelet_conformance.campaigns.snapshots.costs import cost_of
from kubelet_conformance.contract.applicability import USUAL_VERSION
from kubelet_conformance.plugin.play import perform
from kubelet_conformance.reports.catalogue import Shown
from kubelet_conformance.reports.timeline.drawing import Extract, drawn_lines
from kubelet_conformance.reports.timeline.reading import timeline_of
from kubelet_conformance.runtime_checks.judging import run_in_process
from kubelet_conformance.runtime_checks.scenarios import every_runtime_scenario
from kubelet_conformance.scenarios import every_scenario
from kubelet_conformance.targets.choice import Choice
from kubelet_conformance.targets.opening import open_stage

_ROWS_MAX = 60


def shortest_witness(contract: str) -> Shown | None:
    """The scenario with the fewest steps that declares to exercise the contract of that id; None without one.

    Only that one is played. A contract of runtimes alone is shown by a runtime scenario.
    """
    names = declared_witnesses().get(contract, [])
    played = [each for each in names if each in every_scenario()]
    if not names:
        return None
    name = min(played, key=lambda each: cost_of(each).steps) if played else names[0]
    with tempfile.TemporaryDirectory(prefix="kubelet-conformance-") as folder:
        path = Path(folder, "trace.jsonl")
        path.write_bytes(_trace_of(name))
        rows = iter(list(drawn_lines(timeline_of(path), Extract())))
    return Shown(name, tuple(islice(rows, _ROWS_MAX)), sum(1 for _ in rows))


def _trace_of(name: str) -> bytes:
    function = every_scenario().get(name)
    if function is not None:
        return perform(function, name, open_stage(Choice())).trace
    direct = [each for each in every_runtime_scenario() if each.title == name]
    return run_in_process("fake", direct, USUAL_VERSION)[name][0]
