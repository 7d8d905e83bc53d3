"""What a trace shows, step by step, in names and an order that do not differ from run to run.

Ids become names (`web/c1#1` is the second instance of c1 in pod web), reads are left out, and calls that run
at once stand in one canonical order. Two runs, two kubelets or two versions can be compared by their steps.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from kubelet_conformance.reports.safe import safe
from kubelet_conformance.reports.told import told
from kubelet_conformance.trace.bodies import (
    CreateContainerRequest,
    ExecSyncReply,
    ExecSyncRequest,
    PullImageRequest,
    RunPodSandboxRequest,
    StopContainerRequest,
)
from kubelet_conformance.trace.errors import BodyError
from kubelet_conformance.trace.learning import learn
from kubelet_conformance.trace.looking import key_of, look
from kubelet_conformance.trace.moment import Moment
from kubelet_conformance.trace.reader import Reader
from kubelet_conformance.trace.records import Call, Record, Reply, Unknown
from kubelet_conformance.trace.world import World

MUTATING = frozenset(
    {
        "CreateContainer",
        "ExecSync",
        "PullImage",
        "RemoveContainer",
        "RemoveImage",
        "RemovePodSandbox",
        "RunPodSandbox",
        "StartContainer",
        "StopContainer",
        "StopPodSandbox",
        "UpdateContainerResources",
    }
)
"""The calls that change something, or run something in a container."""
STIMULI = frozenset({"fault", "kubelet", "pod", "runtime"})
"""The kinds of step that the kubelet answers to."""
_AT_ONCE_SECONDS = 0.05
"""Calls that begin this close together, none of them answered yet, run at once."""


@dataclass(slots=True)
class Step:
    """One thing that was seen.

    Attributes:
        t: seconds since the start.
        what: the rpc, or the kind of the record.
        whom: the name of what it is about.
        detail: what was asked and how it ended, or what the record says.
    """

    t: float
    what: str
    whom: str
    detail: str = ""

    @property
    def line(self) -> str:
        """As a line of text."""
        return " ".join(filter(None, (self.what, self.whom, self.detail)))


def steps(path: str) -> list[Step]:
    """What is seen in a trace, in order, with an `end` at its end; raises TraceError where it is none."""
    reading = _Reading()
    last: Record | None = None
    with Reader(path) as reader:
        world = World(reader.header)
        for record in reader:
            last = record
            if isinstance(record, Unknown):
                continue
            try:
                moment = look(world, record, key_of(record))
                reading.take(moment)
                learn(moment)
            except BodyError as error:
                raise reader.bad(error.problem, error.remedy) from None
    return [*reading.whole(), Step(last.t if last is not None else 0.0, "end", "")]


@dataclass(slots=True)
class _Reading:
    """Steps so far, and the group of calls that run at once, with what was told meanwhile."""

    done: list[Step] = field(default_factory=list[Step])
    calls: list[Step] = field(default_factory=list[Step])
    meanwhile: list[Step] = field(default_factory=list[Step])
    closed: bool = False
    """One call of the group was answered: nothing later runs at once with it."""
    open: dict[str, Step] = field(default_factory=dict[str, Step])
    names: dict[str, str] = field(default_factory=dict[str, str])
    """By id, what a container or sandbox is called: its record may be gone when it is removed again."""
    shown: dict[str, str] = field(default_factory=dict[str, str])

    def whole(self) -> list[Step]:
        """Everything."""
        self._close()
        return self.done

    def take(self, moment: Moment) -> None:
        """Take in the next record."""
        record = moment.record
        if isinstance(record, Call):
            if record.rpc in MUTATING:
                self._begin(moment, record)
        elif isinstance(record, Reply):
            self._end(moment, record)
        else:
            words = told(moment, self.shown)
            if words is not None:
                self._tell(Step(record.t, *words))

    def _begin(self, moment: Moment, call: Call) -> None:
        step = self.open[call.id] = Step(call.t, call.rpc, *self._asked(moment))
        if self.closed or not self._at_once(step):
            self._close()
        self.calls.append(step)

    def _end(self, moment: Moment, reply: Reply) -> None:
        step = self.open.pop(reply.call.id, None)
        if step is not None:
            step.detail = " ".join(filter(None, (step.detail, _outcome(moment))))
            self.closed = self.closed or any(step is each for each in self.calls)

    def _tell(self, step: Step) -> None:
        """What is told between calls that run at once stands behind them; a stimulus stands where it is."""
        if self.closed or step.what in STIMULI or not self._at_once(step):
            self._close()
        (self.meanwhile if self.calls else self.done).append(step)

    def _at_once(self, step: Step) -> bool:
        return bool(self.calls) and step.t - self.calls[0].t <= _AT_ONCE_SECONDS

    def _close(self) -> None:
        self.done += sorted(self.calls, key=lambda each: (each.what, each.whom, each.detail))
        self.done += self.meanwhile
        self.calls, self.meanwhile, self.closed = [], [], False

    def _asked(self, moment: Moment) -> tuple[str, str]:
        """Whom a call is about, and what it asks."""
        match moment.call.rpc:
            case "RunPodSandbox":
                metadata = moment.request(RunPodSandboxRequest).config.metadata
                return safe(f"{metadata.name}#{metadata.attempt}"), ""
            case "CreateContainer":
                asked = moment.request(CreateContainerRequest)
                made = asked.config.metadata
                return safe(f"{asked.sandbox_config.metadata.name}/{made.name}#{made.attempt}"), ""
            case "PullImage":
                return safe(moment.request(PullImageRequest).image.image), ""
            case "StopContainer":
                return self._named(moment), f"timeout {moment.request(StopContainerRequest).timeout}"
            case "ExecSync":
                return self._named(moment), f"`{safe(' '.join(moment.request(ExecSyncRequest).cmd))}`"
            case _:
                return self._named(moment), ""

    def _named(self, moment: Moment) -> str:
        """The name of the container or sandbox that a call names by its id."""
        request = moment.call.request.json()
        asked = str(request.get("container_id") or request.get("pod_sandbox_id") or "")
        pod = moment.pod.name if moment.pod is not None else "?"
        if moment.container is not None:
            self.names[asked] = safe(f"{pod}/{moment.container.name}#{moment.container.attempt}")
        elif moment.sandbox is not None:
            self.names[asked] = safe(f"{pod}#{moment.sandbox.attempt}")
        return self.names.get(asked, "an unknown id")


def _outcome(moment: Moment) -> str:
    reply = moment.reply
    if reply.error is not None:
        return f"-> {safe(reply.error.code)}"
    if reply.call.rpc == "ExecSync":
        return f"-> {moment.response(ExecSyncReply).exit_code}"
    return ""
