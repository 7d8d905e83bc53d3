"""The behaviour that a trace shows, as text that two runs or two kubelets can be compared by.

Ids become names (`web/c1#1`), times become the pauses between what happens, calls that run at once stand in
one canonical order, reads are left out, and what repeats is counted. What remains is what a person reviews.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kubelet_conformance.reports.safe import safe
from kubelet_conformance.trace.bodies import (
    CreateContainerRequest,
    ExecSyncReply,
    ExecSyncRequest,
    PullImageRequest,
    RunPodSandboxRequest,
    StopContainerRequest,
)
from kubelet_conformance.trace.learning import learn
from kubelet_conformance.trace.looking import keys_of, look
from kubelet_conformance.trace.reader import Reader
from kubelet_conformance.trace.records import (
    Call,
    Deleted,
    Event,
    Fault,
    Kubelet,
    PodChange,
    Reply,
    RuntimeEvent,
    Status,
    Unknown,
)
from kubelet_conformance.trace.world import World

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kubelet_conformance.trace.manifests import ContainerStatus, PodStatus
    from kubelet_conformance.trace.moment import Moment

__all__ = ("MUTATING", "Step", "behaviour", "steps")

MUTATING = frozenset(
    {
        "CreateContainer",
        "ExecSync",
        "PullImage",
        "RemoveContainer",
        "RemovePodSandbox",
        "RunPodSandbox",
        "StartContainer",
        "StopContainer",
        "StopPodSandbox",
    }
)
"""The calls that change something, or run something in a container."""
_PAUSE_SECONDS = 2.0
_FINE_UNTIL_SECONDS = 60.0


@dataclass(slots=True)
class Step:
    """One thing that was seen; `what` is the rpc, or the kind of the record."""

    t: float
    what: str
    whom: str
    detail: str = ""
    times: int = field(default=1, compare=False)

    @property
    def line(self) -> str:
        """As a line of text."""
        words = " ".join(filter(None, (self.what, self.whom, self.detail)))
        return f"{words} (x{self.times})" if self.times > 1 else words

    def same_as(self, other: Step) -> bool:
        """Whether the other says the same at another time."""
        return (self.what, self.whom, self.detail) == (other.what, other.whom, other.detail)


def behaviour(path: str) -> str:
    """The whole behaviour as text, a line a step."""
    lines: list[str] = []
    before = 0.0
    for step in _counted(steps(path)):
        pause = _folded(step.t - before)
        if pause:
            lines.append(f"      about {pause} s later")
        lines.append(step.line)
        before = step.t
    return "\n".join(lines) + "\n"


def _folded(seconds: float) -> int:
    """A pause in round seconds: 0 under two, by fives up to a minute, by thirties above."""
    if seconds < _PAUSE_SECONDS:
        return 0
    grain = 5 if seconds < _FINE_UNTIL_SECONDS else 30
    return max(grain * round(seconds / grain), 2)


def _counted(every: Iterator[Step]) -> Iterator[Step]:
    """Steps that repeat one after the other become one, with their count."""
    held: Step | None = None
    for step in every:
        if held is not None and held.same_as(step) and step.what in {"ExecSync", "Event"}:
            held.times += 1
            continue
        if held is not None:
            yield held
        held = step
    if held is not None:
        yield held


def steps(path: str) -> Iterator[Step]:
    """What is seen in a trace, in order; calls that run at once in the order of their names."""
    at_once: list[Step] = []
    for step, ends_group in _seen(path):
        if ends_group and at_once:
            yield from sorted(at_once, key=lambda each: (each.what, each.whom, each.detail))
            at_once = []
        if step is None:
            continue
        if step.what in MUTATING:
            at_once.append(step)
        else:
            yield step
    yield from sorted(at_once, key=lambda each: (each.what, each.whom, each.detail))


def _seen(path: str) -> Iterator[tuple[Step | None, bool]]:
    """Each step, and whether a group of calls that run at once ends before it."""
    with Reader(path) as reader:
        world = World(reader.header)
        shown: dict[str, str] = {}
        begun: dict[str, Step] = {}
        for record in reader:
            if isinstance(record, Unknown):
                continue
            moment = look(world, record, keys_of(record))
            if isinstance(record, Call):
                if record.rpc in MUTATING:
                    begun[record.id] = Step(record.t, record.rpc, *_asked(moment))
                    yield begun[record.id], False
            elif isinstance(record, Reply):
                step = begun.pop(record.call.id, None)
                if step is not None:
                    step.detail = " ".join(filter(None, (step.detail, _outcome(moment))))
                    yield None, True
            else:
                told = _told(moment, shown)
                if told is not None:
                    yield told, True
            learn(moment)


def _pod(moment: Moment, uid: str = "") -> str:
    pod = moment.pod or moment.world.pod_of_object(uid)
    return safe(pod.name) if pod is not None else "?"


def _asked(moment: Moment) -> tuple[str, str]:
    """Whom a call is about, and what it asks."""
    rpc = moment.call.rpc
    if rpc == "RunPodSandbox":
        metadata = moment.request(RunPodSandboxRequest).config.metadata
        return safe(f"{metadata.name}#{metadata.attempt}"), ""
    if rpc == "CreateContainer":
        meta = moment.request(CreateContainerRequest).config.metadata
        return safe(f"{_pod(moment)}/{meta.name}#{meta.attempt}"), ""
    if rpc == "PullImage":
        return safe(moment.request(PullImageRequest).image.image), ""
    if moment.container is not None:
        whom = f"{_pod(moment)}/{safe(moment.container.name)}#{moment.container.attempt}"
    elif moment.sandbox is not None:
        whom = f"{_pod(moment)}#{moment.sandbox.attempt}"
    else:
        whom = "an unknown id"
    if rpc == "StopContainer":
        return whom, f"timeout {moment.request(StopContainerRequest).timeout}"
    if rpc == "ExecSync":
        return whom, f"`{safe(' '.join(moment.request(ExecSyncRequest).cmd))}`"
    return whom, ""


def _outcome(moment: Moment) -> str:
    reply = moment.reply
    if reply.error is not None:
        return f"-> {safe(reply.error.code)}"
    if reply.call.rpc == "ExecSync":
        return f"-> {moment.response(ExecSyncReply).exit_code}"
    return ""


def _told(moment: Moment, shown: dict[str, str]) -> Step | None:
    """What a record that is no call tells; None where it tells nothing new."""
    record = moment.record
    if isinstance(record, Status):
        text = "" if moment.status is None else _status(moment.status)
        if shown.get(record.uid) == text:
            return None
        shown[record.uid] = text
        return Step(record.t, "status", safe(record.name) or _pod(moment, record.uid), text)
    words = _words(moment)
    return None if words is None else Step(record.t, *words)


def _words(moment: Moment) -> tuple[str, str, str] | None:
    """The kind of a record, whom it is about, and what it says."""
    words: tuple[str, str, str] | None
    match moment.record:
        case PodChange() as record:
            words = "pod", *_change(moment, record)
        case Event() as record:
            where = f" {safe(record.container)}" if record.container else ""
            words = "Event", _pod(moment, record.uid) + where, f"{record.type} {record.reason}"
        case Deleted() as record:
            words = "deleted", _pod(moment, record.uid), ""
        case RuntimeEvent() as record:
            words = "runtime", _by_itself(moment, record), safe(record.op)
        case Fault() as record:
            words = "fault", safe(record.what), ""
        case Kubelet() as record:
            words = "kubelet", safe(record.op), ""
        case _:
            words = None
    return words


def _change(moment: Moment, record: PodChange) -> tuple[str, str]:
    if moment.manifest is None:
        return safe(record.name or _pod(moment)), f"removed from {record.source}"
    metadata = moment.manifest.metadata
    if metadata.deletion_timestamp:
        return safe(metadata.name), f"to be deleted, grace {metadata.deletion_grace_period_seconds}"
    return safe(metadata.name), f"wanted from {record.source}"


def _by_itself(moment: Moment, record: RuntimeEvent) -> str:
    if moment.container is not None:
        code = "" if record.exit_code is None else f" code {record.exit_code}"
        return f"{_pod(moment)}/{safe(moment.container.name)}#{moment.container.attempt}{code}"
    if moment.sandbox is not None:
        return f"{_pod(moment)}#{moment.sandbox.attempt}"
    return safe(record.name)


def _status(status: PodStatus) -> str:
    each = (*(status.init_container_statuses or ()), *(status.container_statuses or ()))
    debug = status.ephemeral_container_statuses or ()
    states = ", ".join(_state(one) for one in (*each, *debug))
    true = " ".join(sorted(one.type for one in status.conditions or () if one.status == "True"))
    why = f" {safe(status.reason)}" if status.reason else ""
    return f"{safe(status.phase)}{why}; {states}; {true or 'nothing'} true"


def _state(status: ContainerStatus) -> str:
    state = status.state
    if state.terminated is not None:
        now = f"terminated {state.terminated.exit_code} {state.terminated.reason}"
    elif state.running is not None:
        now = "ready" if status.ready else "running"
    else:
        now = f"waiting {state.waiting.reason if state.waiting else ''}".rstrip()
    return safe(f"{status.name}#{status.restart_count} {now}", 200)
