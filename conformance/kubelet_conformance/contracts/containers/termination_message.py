"""START: the termination message of a container in the status."""

from collections.abc import Iterator

from kubelet_conformance.contract import Container, Finding, Moment, Terminated
from kubelet_conformance.contract.applicability import CRI, STATUS
from kubelet_conformance.contract.definition import KEPT, broken, contract
from kubelet_conformance.contracts.facts.disk import files
from kubelet_conformance.contracts.facts.status import END_SHOWN, record_with
from kubelet_conformance.contracts.runtime.expected import judges_waits
from kubelet_conformance.trace.format.labels import Annotation

_FALLS_BACK = "FallbackToLogsOnError"
_CANNOT_RUN = "ContainerCannotRun"
_CHARS_JUDGED = 2048
"""Longer messages are cut, by the kubelet and once more for the whole pod."""
_LINES, _CHARS = 80, 2048
"""So much of the end of a log stands in for a message."""
_HEAD_OF_LINE = 3
"""Time, stream and tag come before the text of a line in a log."""


def _log_text(m: Moment, container: Container) -> str | None:
    """What the container has logged; None where it is not known."""
    sandbox, config = container.sandbox, container.config
    if sandbox is None or sandbox.config is None or config is None:
        return None
    log = files(m).texts.get(f"{sandbox.config.log_directory}/{config.log_path}")
    if log is None:
        return None
    lines = log.splitlines(keepends=True)[-_LINES:]
    return "".join(line.split(" ", _HEAD_OF_LINE)[-1] for line in lines)[-_CHARS:]


def _expected(m: Moment, container: Container) -> str | None:
    """The termination message that the status must show; None where it is not known."""
    record, config = container.record, container.config
    # Digests cannot be put together.
    if record is None or config is None or record.state != "CONTAINER_EXITED" or m.header.redacted:
        return None
    path = config.annotations.get(Annotation.TERMINATION_MESSAGE_PATH, "")
    mounted = [one.host_path for one in config.mounts if one.container_path == path]
    words = files(m).texts.get(mounted[0]) if len(mounted) == 1 else None
    if words is None:
        return None
    policy = config.annotations.get(Annotation.TERMINATION_MESSAGE_POLICY)
    if not words and policy == _FALLS_BACK and record.exit_code and record.reason != _CANNOT_RUN:
        words = _log_text(m, container)
    if words is None:
        return None
    return ": ".join(one for one in (record.message, words) if one)


def _ends(m: Moment) -> Iterator[Terminated]:
    for one in m.status.every_container if m.status is not None else ():
        for ended in (one.state.terminated, one.last_state.terminated):
            if ended is not None and ended.runtime_id:
                yield ended


@contract("START-11", on=END_SHOWN, needs=(CRI, STATUS))
def last_words_are_those_of_the_container(m: Moment) -> Iterator[Finding]:
    """The terminated state of a container has the message that it wrote to its message file.

    If that is empty and the policy says so the end of its log stands in after a failure: 80 lines of it and
    2048 bytes at most. The runtime's own message comes before, with a colon.
    """
    for ended in _ends(m) if files(m).texts else ():
        container = record_with(m, ended.runtime_id)
        expected = _expected(m, container) if container is not None else None
        if container is None or expected is None or len(expected) > _CHARS_JUDGED:
            continue
        if ended.message.rstrip("\n") != expected.rstrip("\n"):
            yield broken(
                f"the termination message of {container.name} is {ended.message!r}, expected {expected!r}"
            )
        else:
            yield KEPT


judges_waits(last_words_are_those_of_the_container)
