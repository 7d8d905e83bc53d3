"""A scenario that shows a contract, drawn in characters: the shortest, or one of a record."""

from collections.abc import Sequence
from itertools import islice
from pathlib import Path

from kubelet_conformance.campaigns.declared import declared_witnesses
from kubelet_conformance.campaigns.snapshots.costs import cost_of
from kubelet_conformance.contract.applicability import USUAL_VERSION
from kubelet_conformance.plugin.play import perform
from kubelet_conformance.reports.catalogue import Shown
from kubelet_conformance.reports.playing import again
from kubelet_conformance.reports.timeline.drawing import Extract, drawn_lines
from kubelet_conformance.reports.timeline.reading import timeline_of
from kubelet_conformance.reports.trace_text.breaks import breaks_of, in_lines
from kubelet_conformance.run_record.model import Proof
from kubelet_conformance.run_record.record import Record
from kubelet_conformance.run_record.temporary_folder import TemporaryFolder
from kubelet_conformance.run_record.writer import RecordError
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
    with TemporaryFolder() as folder:
        path = Path(folder, "trace.jsonl")
        path.write_bytes(_trace_of(name))
        rows = iter(list(drawn_lines(timeline_of(path), Extract())))
    return Shown(name, tuple(islice(rows, _ROWS_MAX)), sum(1 for _ in rows))


def witness_in(record: Record, contract: str) -> Shown | None:
    """Of a record the scenario that breaks the contract, or else the shortest that exercises it.

    None where none does, or where its trace is not there any more. Raises RecordError where the record does
    not judge by the contract.
    """
    run = record.run
    result = next((each for each in run.contracts if each.id == contract), None)
    if result is None:
        raise RecordError(f"{record.name}: does not judge by {contract}")
    shown = next(iter(breaks_of([result], record)[contract]), None)
    if shown is None:
        exercised = [each for each in run.scenarios if contract in each.exercised]
        trace = min(exercised, key=lambda each: each.records).trace if exercised else ""
        return _drawn(record, trace, "how it was kept")
    command = again(record, contract, shown.proof)
    words = (*in_lines(shown.parts(result)), *([f"again: {command}"] if command else []))
    return _drawn(record, shown.proof.trace, "how it was broken", words, [(contract, shown.proof)])


def _drawn(
    record: Record,
    trace: str,
    title: str,
    words: Sequence[str] = (),
    proofs: Sequence[tuple[str, Proof]] = (),
) -> Shown | None:
    file = record.file(trace)
    if not file.is_file():
        return None
    timeline = timeline_of(file, proofs)
    count = len(timeline.items)
    timeline.narrow()
    timeline.shorten(_ROWS_MAX)
    name = next((each.scenario for each in record.run.traces if each.path == trace), None)
    left_out = count - len(timeline.items)
    return Shown(name or trace, tuple(drawn_lines(timeline, Extract())), left_out, title, tuple(words))


def _trace_of(name: str) -> bytes:
    function = every_scenario().get(name)
    if function is not None:
        return perform(function, name, open_stage(Choice())).trace
    direct = [each for each in every_runtime_scenario() if each.title == name]
    return run_in_process("fake", direct, USUAL_VERSION)[name][0]
