"""What a trace shows, step by step, in names and an order that do not differ from run to run.

Ids become names (`web/c1#1` is the second instance of c1 in pod web), reads are left out, and calls that run
at once stand in one canonical order. Two runs, two kubelets or two versions can be compared by their steps.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from io import BytesIO

from kubelet_conformance.reports.safe import safe
from kubelet_conformance.trace.format.bodies import (
    CreateContainerRequest,
    ExecSyncReply,
    ExecSyncRequest,
    PullImageRequest,
    RunPodSandboxRequest,
    StopContainerRequest,
)
from kubelet_conformance.trace.format.errors import BodyError
from kubelet_conformance.trace.format.manifests import Condition, ContainerStatus, Manifest, PodStatus
from kubelet_conformance.trace.format.reader import Reader
from kubelet_conformance.trace.format.records import (
    ApiWrite,
    Body,
    Call,
    Deleted,
    Event,
    Expect,
    Fault,
    Kubelet,
    PodChange,
    Probe,
    Reply,
    RuntimeEvent,
    Status,
)
from kubelet_conformance.trace.world.moment import Moment
from kubelet_conformance.trace.world.observe import moments

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
_OK = range(200, 300)
_STATUS_CHARS = 2000
_COMMAND_CHARS = 60
_ORDER = "init", "sidecar", "app", "ephemeral", "unknown"


@dataclass(slots=True)
class Step:
    """One thing that was seen.

    Attributes:
        t: seconds since the start.
        what: the rpc, or the kind of the record.
        whom: the name of what it is about.
        detail: what was asked and how it ended, or what the record says.
        namespace: of the pod that it is about, where there is one.
        role: the kind of the container that it is about, or `hook` for the command of one.
    """

    t: float
    what: str
    whom: str
    detail: str = ""
    namespace: str = ""
    role: str = ""

    @property
    def line(self) -> str:
        """As a line of text."""
        return " ".join(filter(None, (self.what, self.whom, self.detail)))


def steps(path: str, content: bytes | None = None) -> list[Step]:
    """What is seen in a trace, in order, with an `end` at its end; raises TraceError where it is none.

    With `content` that is read, and `path` only names it.
    """
    reading, end = _Reading(), Step(0.0, "end", "")
    with Reader(path, None if content is None else BytesIO(content)) as reader:
        try:
            for moment in moments(reader):
                reading.take(moment)
                end.t = moment.t
        except BodyError as error:
            raise reader.bad(error.problem, error.remedy) from None
    return [*reading.whole(), end]


@dataclass(slots=True)
class _Reading:
    """Steps so far, and the group of calls that run at once, with what was recorded meanwhile."""

    done: list[Step] = field(default_factory=list[Step])
    calls: list[Step] = field(default_factory=list[Step])
    meanwhile: list[Step] = field(default_factory=list[Step])
    closed: bool = False
    """One call of the group was answered: nothing later runs at once with it."""
    open: dict[str, Step] = field(default_factory=dict[str, Step])
    names: dict[str, str] = field(default_factory=dict[str, str])
    """By id, what a container or sandbox is called: its record may be gone when it is removed again."""
    owners: dict[str, tuple[str, str]] = field(default_factory=dict[str, tuple[str, str]])
    """By id, the namespace of its pod and the kind of the container."""
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
            words = _described(moment, self.shown)
            if words is not None:
                self._add(Step(record.t, *words, _namespace(moment)))

    def _begin(self, moment: Moment, call: Call) -> None:
        step = self.open[call.id] = Step(call.t, call.rpc, *self._asked(moment), *self._whose(moment))
        if self.closed or not self._at_once(step):
            self._close()
        self.calls.append(step)

    def _end(self, moment: Moment, reply: Reply) -> None:
        step = self.open.pop(reply.call.id, None)
        if step is not None:
            step.detail = " ".join(filter(None, (step.detail, _outcome(moment))))
            self.closed = self.closed or any(step is each for each in self.calls)

    def _add(self, step: Step) -> None:
        """What is recorded between calls that run in parallel comes after them; a stimulus stays in place."""
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

    def _whose(self, moment: Moment) -> tuple[str, str]:
        """The namespace of the pod that a call is about, and the role of its container."""
        request = moment.call.request.json()
        asked = str(request.get("container_id") or request.get("pod_sandbox_id") or "")
        match moment.call.rpc:
            case "RunPodSandbox":
                return moment.request(RunPodSandboxRequest).config.metadata.namespace, ""
            case "CreateContainer":
                made = moment.request(CreateContainerRequest)
                kind = "" if moment.pod is None else moment.pod.kind_of(made.config.metadata.name)
                return made.sandbox_config.metadata.namespace, kind
            case "PullImage":
                return moment.request(PullImageRequest).sandbox_config.metadata.namespace, ""
            case _:
                pass
        if moment.pod is not None:
            kind = "" if moment.container is None else moment.container.kind
            self.owners[asked] = moment.pod.namespace, kind
        namespace, role = self.owners.get(asked, ("", ""))
        # A hook has no timeout of its own, and a probe has one.
        hooked = moment.call.rpc == "ExecSync" and not moment.request(ExecSyncRequest).timeout
        return namespace, "hook" if hooked else role

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


def _described(moment: Moment, shown: dict[str, str]) -> tuple[str, str, str] | None:
    """The kind of a record, whom it is about, and what it says; None where it says nothing new.

    `shown` holds what was last said of each pod's status.
    """
    record = moment.record
    match record:
        case Status():
            return _status(moment, record, shown)
        case ApiWrite():
            return _write(moment, record)
        case _:
            return _words(moment)


def _words(moment: Moment) -> tuple[str, str, str] | None:
    words: tuple[str, str, str] | None
    match moment.record:
        case PodChange() as record:
            words = "pod", *_change(moment, record)
        case Event() as record:
            container = (record.container or "").rpartition("{")[2].rstrip("}")
            whom = _pod(moment, record.uid) + (f"/{safe(container)}" if container else "")
            words = (
                "event",
                whom,
                safe(record.reason if record.type == "Normal" else f"{record.type} {record.reason}"),
            )
        case Deleted() as record:
            words = "deleted", _pod(moment, record.uid), ""
        case RuntimeEvent() as record:
            words = "runtime", *_by_itself(moment, record)
        case Fault() as record:
            words = "fault", safe(record.what), _amounts(moment, record)
        case Probe() as record:
            words = "probe", safe(record.handler), f"-> {safe(record.outcome)}"
        case Kubelet() as record:
            words = "kubelet", safe(record.op), ""
        case Expect() as record:
            words = "awaited", safe(record.awaited), "came" if record.met else "timed out"
        case _:
            words = None
    return words


def _namespace(moment: Moment) -> str:
    """The namespace of the pod that a record is about."""
    record = moment.record
    if moment.manifest is not None:
        return moment.manifest.metadata.namespace or "default"
    pod = moment.pod or moment.world.pod_of_object(getattr(record, "uid", ""))
    return pod.namespace if pod is not None else str(getattr(record, "namespace", ""))


def _amounts(moment: Moment, record: Fault) -> str:
    whom = [_pod(moment, record.uid)] if record.uid else []
    named = (text if name in record.what else f"{name} {text}" for name, text in record.values.items())
    return ", ".join([*whom, *map(safe, named)])


def _pod(moment: Moment, uid: str = "") -> str:
    pod = moment.pod or moment.world.pod_of_object(uid)
    return safe(pod.name) if pod is not None else "?"


def _write(moment: Moment, record: ApiWrite) -> tuple[str, str, str] | None:
    """A write to the API server; of statuses only what was refused; what was stored has its own record."""
    refused = record.code is not None and record.code not in _OK
    if record.subresource == "status" and not refused:
        return None
    grace = "" if record.grace is None else f"grace {record.grace}"
    outcome = f"-> {record.code}" if refused else ""
    what = "/".join(filter(None, (record.resource, record.subresource)))
    name = _created(record) or _pod(moment, record.uid)
    return "api", safe(f"{record.verb} {what} {name}"), " ".join(filter(None, (grace, outcome)))


def _created(record: ApiWrite) -> str:
    """The name of what is created; no other record has that of a new mirror pod."""
    if record.verb != "create" or not record.body:
        return ""
    return Body(record.body).view(Manifest).metadata.name


def _change(moment: Moment, record: PodChange) -> tuple[str, str]:
    if moment.manifest is None:
        return safe(record.name or _pod(moment)), f"removed from {record.source}"
    manifest = moment.manifest
    metadata = manifest.metadata
    if metadata.deletion_timestamp:
        return safe(metadata.name), f"to be deleted, grace {metadata.deletion_grace_period_seconds}"
    before = moment.pod.manifest if moment.pod is not None else None
    if before is None:
        return safe(metadata.name), safe(f"wanted from {record.source}: {', '.join(_containers(manifest))}")
    new = [each for each in _containers(manifest) if each not in list(_containers(before))]
    return safe(metadata.name), safe(f"changed{': ' if new else ''}{', '.join(new)}")


def _containers(manifest: Manifest) -> Iterator[str]:
    """Its containers in a few words each: all that is usual goes without saying."""
    entries = manifest.spec.entries.items()
    for name, (kind, spec) in sorted(entries, key=lambda entry: _ORDER.index(entry[1][0])):
        of_kind = "" if kind == "app" else f" ({kind})"
        command = safe(" ".join(spec.command or ()), _COMMAND_CHARS)
        yield f"{name}{of_kind} {spec.image} `{command}`"
    if manifest.spec.restart_policy != "Always":
        yield f"restart {manifest.spec.restart_policy}"


def _by_itself(moment: Moment, record: RuntimeEvent) -> tuple[str, str]:
    code = "" if record.exit_code is None else f" with {record.exit_code}"
    said = safe(f"{record.op}{code}")
    if moment.container is not None:
        return safe(f"{_pod(moment)}/{moment.container.name}#{moment.container.attempt}"), said
    if moment.sandbox is not None:
        return f"{_pod(moment)}#{moment.sandbox.attempt}", said
    return safe(record.name), said


def _status(moment: Moment, record: Status, shown: dict[str, str]) -> tuple[str, str, str] | None:
    """A status without times: phase, containers, and all conditions behind a bar."""
    status = moment.status
    if status is None:
        return None
    conditions = " ".join(sorted(_condition(each) for each in status.conditions or ()))
    text = f"{_states(status)} | {safe(conditions, _STATUS_CHARS)}"
    if shown.get(record.uid) == text:
        return None
    shown[record.uid] = text
    return "status", safe(record.name) or _pod(moment, record.uid), text


def _condition(condition: Condition) -> str:
    reason = f":{condition.reason}" if condition.reason else ""
    return f"{condition.type}={condition.status}{reason}"


def _states(status: PodStatus) -> str:
    why = f" {status.reason}" if status.reason else ""
    states = ", ".join(_state(one) for one in status.every_container)
    return "; ".join(filter(None, (safe(f"{status.phase}{why}"), states)))


def _state(status: ContainerStatus) -> str:
    state = status.state
    if state.terminated is not None:
        now = f"terminated {state.terminated.exit_code} {state.terminated.reason}"
    elif state.running is not None:
        now = "ready" if status.ready else "running"
    else:
        now = f"waiting {state.waiting.reason if state.waiting else ''}".rstrip()
    return safe(f"{status.name}#{status.restart_count} {now}", 200)
