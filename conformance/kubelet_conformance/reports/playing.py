"""How much was played, and the command that shows a break once more."""

from kubelet_conformance.reports.safe import counted, in_shell
from kubelet_conformance.run_record.model import Kind, Proof, Run, TraceResult
from kubelet_conformance.run_record.record import Record


def amount(run: Run) -> str:
    """How much was played, in words."""
    if run.histories is not None:
        return counted(run.histories.played, "history", "histories")
    if run.kind is Kind.SWEEP:
        return f"{counted(run.plays, 'scenario')} with a fault"
    return counted(len(run.scenarios), "scenario")


def again(record: Record, contract: str, proof: Proof) -> str:
    """The command that plays it again, or that judges its trace again where nothing was played.

    Empty where the trace is not there any more.
    """
    if proof.again:
        return proof.again
    shown = record.shown(proof.trace)
    if not shown:
        return ""
    command = f"kubelet-conformance check {in_shell(shown)} --contract {contract}"
    trace = next((each for each in record.run.traces if each.path == proof.trace), None)
    return command if trace is None else command + _judged_as(trace, record.run.target.kubernetes)


def _judged_as(trace: TraceResult, kubernetes: str) -> str:
    options = f" --kubernetes {kubernetes}" if kubernetes else ""
    return options if trace.truncated_after_line is None else f"{options} --allow-truncated"
