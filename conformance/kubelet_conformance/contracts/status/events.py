"""EVENTS: which events the kubelet writes about its pods, about which container, and in which order."""

import base64
import binascii
from collections.abc import Iterator

from kubelet_conformance.contract import Container, Finding, Kind, Moment, Note, Pod
from kubelet_conformance.contract.applicability import CRI, EVENTS, EVERY_EVENT, PODS, since
from kubelet_conformance.contract.definition import KEPT, Findings, answered, broken, contract, observer
from kubelet_conformance.contract.patterns import call, done, event, failed
from kubelet_conformance.contracts.containers.image_volumes import shows_images
from kubelet_conformance.contracts.facts import pod as pods
from kubelet_conformance.contracts.facts.timing import REACTION, SAME_MOMENT
from kubelet_conformance.contracts.runtime.expected import judges_waits
from kubelet_conformance.trace.format.bodies import ExecSyncReply
from kubelet_conformance.trace.format.records import Event, Reply

_NORMAL = frozenset(
    {"Created", "DeadlineExceeded", "Killing", "Pulled", "Pulling", "SandboxChanged", "Started"},
)
_WARNING = frozenset(
    {
        "ErrImageNeverPull",
        "Evicted",
        "ExceededGracePeriod",
        "Failed",
        "FailedCreatePodContainer",
        "FailedCreatePodSandBox",
        "FailedKillPod",
        "FailedMount",
        "FailedPodSandBoxStatus",
        "FailedPostStartHook",
        "FailedPreStopHook",
        "FailedStatusPodSandBox",
        "FailedSync",
        "FailedValidation",
        "InspectFailed",
        "NetworkNotReady",
        "NodeShutdown",
        "Preempting",
        "ProbeWarning",
        "Unhealthy",
    }
)
_OF_A_CONTAINER = frozenset(
    {
        "BackOff",
        "Created",
        "ErrImageNeverPull",
        "FailedPostStartHook",
        "FailedPreStopHook",
        "InspectFailed",
        "Killing",
        "ProbeWarning",
        "Pulled",
        "Pulling",
        "Started",
        "Unhealthy",
    }
)
"""Reasons that are about a container (events/event.go)."""
_LISTS: dict[Kind, str] = {
    "app": "spec.containers",
    "init": "spec.initContainers",
    "sidecar": "spec.initContainers",
    "ephemeral": "spec.ephemeralContainers",
}


@contract("EVENTS-01", on=event(*sorted(_NORMAL | _WARNING | {"BackOff"})), needs=(EVENTS,))
def events_have_their_type(_: Moment, event: Event) -> Findings:
    """An event's type follows from its reason: regular steps are Normal, failures are Warning; BackOff is
    Normal for an image and Warning for a restart.
    """
    if not event.type:
        return None
    if event.reason == "BackOff":
        expected = "Normal" if "pulling image" in event.message else "Warning"
    else:
        expected = "Normal" if event.reason in _NORMAL else "Warning"
    if event.type != expected:
        return broken(f"event {event.reason} is {event.type}, expected {expected}")
    return KEPT


@events_have_their_type.clause("reason", on=event(""))
def every_event_has_a_reason(_: Moment) -> Findings:
    """Every event has a reason."""
    return broken("an event has no reason")


class _Alike(Note):
    """How often an event of a pod has come with the same reason and message in the same moment."""

    what: tuple[str, str, str] = ("", "", "")
    t: float = float("-inf")
    count: int = 0


_IN_A_MOMENT = 20
"""An event that comes so often in a moment is written by a loop that does not wait."""


@events_have_their_type.clause("flood", on=event(*sorted(_NORMAL | _WARNING | {"BackOff"})))
def events_do_not_flood(m: Moment, pod: Pod, event: Event) -> Findings:
    """No event of a pod comes twenty times in one moment."""
    alike, what = pod.note(_Alike), (event.reason, event.container or "", event.message)
    if alike.what != what or m.t - alike.t > SAME_MOMENT:
        alike.what, alike.t, alike.count = what, m.t, 0
    alike.count += 1
    return (
        broken(f"event {event.reason} has come {alike.count} times") if alike.count == _IN_A_MOMENT else None
    )


judges_waits(events_have_their_type)


@contract("EVENTS-02", on=event(*sorted(_OF_A_CONTAINER)), needs=(CRI, PODS, EVENTS))
def container_events_name_their_container(m: Moment, pod: Pod, event: Event) -> Findings:
    """An event about a container names it by the list of the manifest that holds it, such as
    spec.initContainers{i1}.
    """
    # Events about the image of a volume are the pod's.
    if pod.manifest is None or (not event.container and shows_images(pod)):
        return None
    if not event.container:
        return broken(f"event {event.reason} does not say which container it is about")
    path, _, rest = event.container.partition("{")
    name = rest.rstrip("}")
    kind = pod.kind_of(name)
    if kind == "unknown":
        return None
    if path != _LISTS.get(kind):
        container = pod.newest(name)
        was_stopped = container is not None and any(stop.is_done for stop in container.stops)
        if path == _LISTS["app"] and (pods.may_be_unknown(pod, m.node) or (was_stopped and not pod.wanted)):
            return None  # A pod that no source has is known from its records alone, and these name no list.
        return broken(f"event {event.reason} is about {event.container}, expected {_LISTS[kind]}{{{name}}}")
    return KEPT


def _made_seq(container: Container) -> int:
    return container.create.seq if container.create is not None else 0


@contract(
    "EVENTS-03",
    on=event("Failed", "Killing", "FailedPostStartHook", "FailedPreStopHook"),
    needs=(CRI, EVENTS),
)
def messages_name_no_container_id(_: Moment, pod: Pod, event: Event) -> Findings:
    """The message of a container's event holds no container id, so that like events count as one.

    A runtime that refuses to create a container, as its name is reserved, names the one that has it.
    """
    if not event.container:
        return None
    for container in pod.every_container():
        refused = pod.create_failed.get(container.name)
        if event.reason == "Failed" and refused is not None and refused.seq >= _made_seq(container):
            continue
        if container.id and container.id in event.message:
            return broken(f"the message of {event.reason} holds the id of {container.name}", container.create)
    return KEPT


class _Outputs(Note):
    """What the latest failing hooks of a pod have printed, by container."""

    of: dict[str, tuple[str, int]] = {}


_SHORTEST = 3
"""A shorter output may be part of any text."""


@contract(
    "EVENTS-04",
    on=event("FailedPostStartHook", "FailedPreStopHook"),
    needs=(CRI, PODS, EVENTS),
    versions=since("1.26"),
)
def hook_events_hold_no_output(_: Moment, pod: Pod, event: Event) -> Iterator[Finding]:
    """The event of a failed hook does not hold what the hook has printed."""
    for name, (text, seq) in pod.note(_Outputs).of.items():
        if f"{{{name}}}" not in (event.container or ""):
            continue
        if text in event.message:
            yield broken(f"the message of {event.reason} holds the output of the hook", seq)
        else:
            yield KEPT


@observer(on=done("ExecSync"))
def _hook_prints(m: Moment, pod: Pod, container: Container) -> None:
    """Record what failing hooks print."""
    if m.reply.response is None:
        return
    if m.response(ExecSyncReply).exit_code == 0 or not (pods.runs_post_start(m) or pods.runs_pre_stop(m)):
        return
    found = m.reply.response.json()
    try:
        text = base64.b64decode(f"{found.get('stdout', '')}{''}").decode(errors="replace").strip()
    except (binascii.Error, ValueError):
        return
    if len(text) >= _SHORTEST:
        pod.note(_Outputs).of[container.name] = text, m.seq


class _Reported(Note):
    """How many events of a start a pod's containers have had, by field path."""

    created: dict[str, int] = {}
    started: dict[str, int] = {}
    failing: set[str] = set()


@contract("EVENTS-06", on=event("Started"), needs=(CRI, PODS, EVERY_EVENT), clause="start")
def events_come_in_order(m: Moment, pod: Pod, event: Event) -> Findings:
    """Each Started of a container comes after its Created, and the Killing of one whose liveness probe failed
    after an Unhealthy.
    """
    if not pod.born or not event.container or not m.header.from_start:
        return None
    reported, path = pod.note(_Reported), event.container
    reported.started[path] = reported.started.get(path, 0) + event.count
    if reported.started[path] > reported.created.get(path, 0):
        return broken(f"Started of {path} before its Created")
    return KEPT


@events_come_in_order.clause("kill", on=event("Killing"))
def unhealthy_comes_before_killing(m: Moment, pod: Pod, event: Event) -> Findings:
    """A container that is killed for its liveness probe has an event Unhealthy before."""
    if not pod.born or "liveness" not in event.message or not m.header.from_start:
        return None
    if event.container in pod.note(_Reported).failing:
        return KEPT
    return broken(f"Killing of {event.container} for its liveness probe without an Unhealthy")


@observer(on=event("Created", "Unhealthy"))
def _event_is_sent(_: Moment, pod: Pod, event: Event) -> None:
    """Record events."""
    if not event.container:
        return
    reported = pod.note(_Reported)
    if event.reason == "Created":
        reported.created[event.container] = reported.created.get(event.container, 0) + event.count
    else:
        reported.failing.add(event.container)


@events_come_in_order.clause("reported", on=done("StartContainer"))
def start_has_an_event(_: Moment, pod: Pod, container: Container) -> Findings:
    """A container that was started gets its Started event."""
    if not container.born or pod.termination is not None:
        return None
    return answered(
        by=event("Started").where(pods.is_on(container.name)),
        within=REACTION,
        unless=pods.TERMINATION_ASKED.either(pods.FAULT),
        text=f"a Started event of {container.name}",
    )


@contract("EVENTS-07", on=event(*sorted(_NORMAL | _WARNING | {"BackOff"})), needs=(CRI, PODS, EVENTS))
def events_of_static_pods_carry_their_own_uid(m: Moment, event: Event) -> Findings:
    """Events about a static pod carry its own UID, not that of its mirror."""
    if m.pod is not None:
        return KEPT if m.pod.static else None
    mirrored = m.world.mirrors.get(event.uid)
    if mirrored is None or m.header.standalone:
        return None  # Without an API server there is no mirror.
    return broken(f"event {event.reason} carries the UID of the mirror of {mirrored.name}", mirrored.set_seq)


@contract("EVENTS-08", on=event("DeadlineExceeded"), needs=(PODS, EVERY_EVENT))
def deadline_event_is_repeated(_: Moment, pod: Pod) -> Findings:
    """An event DeadlineExceeded is written at each status computation past the deadline, not only once."""
    if not pod.born:
        return None
    reported = pod.note(_Deadlines)
    reported.count += 1
    if reported.count > 1 or not any(c.state == "running" for c in pod.every_container()):
        return None  # Of a pod that has ended by itself no status need be computed any more.
    return answered(
        by=event("DeadlineExceeded"),
        within=REACTION,
        unless=pods.TERMINATION_ASKED,
        text=f"another event DeadlineExceeded of {pod.name} is written",
    )


class _Deadlines(Note):
    """How many events DeadlineExceeded a pod has had."""

    count: int = 0


@contract("TERM-09", on=call("StopContainer"), needs=(CRI, PODS, EVERY_EVENT))
def each_kill_has_an_event(_: Moment, pod: Pod, container: Container) -> Findings:
    """Each container that is killed gets a Normal event Killing."""
    if pod.manifest is None or container.state != "running":
        return None
    if container.stops or not container.born or not pod.born or container.kind == "unknown":
        return None
    name = container.name
    if pod.note(_Kills).reported.pop(name, None) is not None:
        return KEPT
    return answered(
        by=event("Killing").where(pods.is_on(name)),
        within=REACTION,
        text=f"a Killing event of {name}",
    )


class _Kills(Note):
    """The Killing events that no StopContainer has followed yet, by container name."""

    reported: dict[str, int] = {}


@observer(on=event("Killing"))
def _kill_has_an_event(m: Moment, pod: Pod, event: Event) -> None:
    """Take Killing events in: they come before the preStop hook."""
    if event.container:
        name = event.container.partition("{")[2].rstrip("}")
        pod.note(_Kills).reported[name] = m.seq


def _is_on_a_container(m: Moment) -> bool:
    return isinstance(m.record, Event) and m.record.type == "Warning" and bool(m.record.container)


@contract("START-03", on=failed("CreateContainer", "StartContainer"), needs=(CRI, PODS, EVERY_EVENT))
def failed_start_has_an_event(m: Moment, pod: Pod) -> Findings:
    """A container that cannot be created or started gets a Warning event Failed."""
    if not pod.born or pod.manifest is None or pod.termination is not None:
        return None
    return answered(
        by=event("Failed").where(_is_on_a_container),
        within=REACTION,
        unless=pods.TERMINATION_ASKED,
        text=f"a Warning event Failed after {m.call.rpc} failed",
    )


class _LastFailure(Note):
    """The error of the runtime when it last refused to create or start a container of the pod."""

    message: str = ""
    seq: int = 0


@observer(on=failed("CreateContainer", "StartContainer"))
def _start_has_failed(m: Moment, pod: Pod) -> None:
    if m.reply.error is not None:
        memory = pod.note(_LastFailure)
        memory.message, memory.seq = m.reply.error.message, m.seq


@failed_start_has_an_event.clause("text", on=event("Failed"))
def failed_start_event_has_no_wrapper(_: Moment, pod: Pod, event: Event) -> Findings:
    """The event has the runtime's error message, without the gRPC wrapper."""
    last, said = pod.note(_LastFailure), event.message
    if not last.message or not said.startswith("Error: ") or not said.endswith(last.message):
        return None
    return broken(f"the event says {said!r}", last.seq) if _WRAPPER in said else KEPT


_WRAPPER = "rpc error: code ="
_UNANSWERED = frozenset({"DEADLINE_EXCEEDED", "UNAVAILABLE"})


def printed_error(reply: Reply) -> str:
    """The error that the runtime has answered, as gRPC prints it in events; "" without an answer.

    Then the client says in its own words what went wrong.
    """
    error = reply.error
    if error is None or not error.message or error.code in _UNANSWERED:
        return ""
    code = "".join(word.capitalize() for word in error.code.split("_"))
    return f"{_WRAPPER} {code.replace('Cancelled', 'Canceled')} desc = {error.message}"
