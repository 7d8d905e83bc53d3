"""CRI: the log files of containers: where they are, what they look like, and how they are reopened."""

import re

from kubelet_conformance.contract import Container, Moment, Note, Pattern
from kubelet_conformance.contract.definition import KEPT, Findings, broken, contract, observer
from kubelet_conformance.contract.patterns import done, failed
from kubelet_conformance.contracts.facts.disk import log_path
from kubelet_conformance.contracts.runtime.calls import refusal
from kubelet_conformance.contracts.runtime.expected import judges_expectations
from kubelet_conformance.trace.format.records import Disk

_LINE = re.compile(
    r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{1,9}(?:Z|[+-]\d\d:\d\d) (?:stdout|stderr) [FP](?::\S+)* .*"
)
"""Time, stream, tags (full or partial line first) and what was printed."""
_SHOWN_CHARS = 80


def _of_log(m: Moment) -> bool:
    return isinstance(m.record, Disk) and m.record.op in {"log", "no log", "moved"}


LOOKED = Pattern(frozenset({"disk"})).where(_of_log)


def _logging_to(m: Moment, path: str) -> Container | None:
    """The container whose log file this is."""
    return next((one for one in m.world.containers.values() if path and log_path(one) == path), None)


class _Rotation(Note):
    """When a container's log file was moved away, and the ReopenContainerLog call for it."""

    moved_seq: int = 0
    reopened_seq: int = 0
    refused_seq: int = 0


@contract("CRI-36", on=LOOKED)
def log_is_where_it_belongs(m: Moment, disk: Disk) -> Findings:
    """The log file of a started container is at sandbox.log_directory/container.log_path.

    Each line of it has a time, the stream, and F or P before what was printed.
    """
    if disk.op == "moved":
        return None
    container = _logging_to(m, disk.path)
    if container is None or not container.started_seq or container.note(_Rotation).moved_seq:
        return None
    if disk.op == "no log":
        return broken(f"{container.name} was started and has no log file", container.started_seq)
    wrong = next((line for line in (disk.text or "").splitlines() if not _LINE.fullmatch(line)), None)
    if wrong is not None:
        return broken(f"{wrong[:_SHOWN_CHARS]!r} is no line of a CRI log", container.started_seq)
    return KEPT


@observer(on=LOOKED)
def _remember_moved(m: Moment, disk: Disk) -> None:
    """A log file was moved away."""
    container = _logging_to(m, disk.path)
    if container is not None and disk.op == "moved":
        rotation = container.note(_Rotation)
        rotation.moved_seq, rotation.reopened_seq, rotation.refused_seq = m.seq, 0, 0


judges_expectations(log_is_where_it_belongs)


@contract("CRI-29", on=LOOKED)
def log_is_reopened(m: Moment, disk: Disk) -> Findings:
    """After ReopenContainerLog the log file is there again; if that failed, no new file was made."""
    container = _logging_to(m, disk.path)
    if container is None:
        return None
    rotation, found = container.note(_Rotation), disk.op == "log"
    if disk.op == "moved" or not rotation.moved_seq:
        return None
    if rotation.reopened_seq:
        seq = rotation.reopened_seq
        return KEPT if found else broken(f"the log of {container.name} was reopened: no file", seq)
    if rotation.refused_seq:
        seq = rotation.refused_seq
        return broken(f"reopening the log of {container.name} failed: a new file", seq) if found else KEPT
    return None


@observer(on=done("ReopenContainerLog").either(failed("ReopenContainerLog")))
def _(m: Moment, container: Container) -> None:
    rotation = container.note(_Rotation)
    if m.reply.error is None:
        rotation.reopened_seq = m.seq
    elif refusal(m) is not None:
        rotation.refused_seq = m.seq


judges_expectations(log_is_reopened)
