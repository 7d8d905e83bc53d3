"""PLEG with container events instead of relists: the event stream, its loss, and its order."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from kubelet_conformance.contract import Finding, Moment, Note, Pattern, Pod, Predicate
from kubelet_conformance.contract.applicability import CRI, PODS, STATUS, since
from kubelet_conformance.contract.definition import KEPT, Findings, answered, broken, contract, observer
from kubelet_conformance.contract.patterns import call, failed, kubelet, listed_all, status
from kubelet_conformance.contracts.facts import pod as pods
from kubelet_conformance.contracts.facts.timing import API_POLL, KUBELET_START, REACTION, RELIST
from kubelet_conformance.contracts.sync_loop.kubelet_restart import LIFE_ENDS
from kubelet_conformance.trace.format import bodies
from kubelet_conformance.trace.format.manifests import ContainerStatus, PodStatus
from kubelet_conformance.trace.world.kubelet_view import kubelet_view
from kubelet_conformance.trace.world.missed_updates import is_outdated
from kubelet_conformance.trace.world.runtime_reports import event_of

GATE = "EventedPLEG"
_STREAM = "GetContainerEvents"
_TOLD = Pattern(frozenset({"message"}))
_HEARD = 7.0
"""How late the reaction to an event may be: a worker may wait for the cache to count as new, every 5 s."""
_TRIES = 5
"""How often the stream may fail before it is given up (evented.go)."""
_WINDOW = 100.0
_LISTINGS_MAX = 20
"""How often everything may be listed within the window; a relist a second makes five times as many."""


def _lists_all_containers(m: Moment) -> bool:
    return m.request(bodies.ListContainersRequest).everything


def _lists_all_sandboxes(m: Moment) -> bool:
    return m.request(bodies.ListPodSandboxRequest).everything


class _Stream:
    """The event stream of this kubelet instance, and how often everything was listed beside it."""

    def __init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        self.failures = 0
        self.heard_t: float | None = None
        """When the stream that is open was opened; None while there is none."""
        self.listed = deque[tuple[float, int]](maxlen=_LISTINGS_MAX + 1)


_OPENS, _BREAKS, _BEGINS = call(_STREAM), failed(_STREAM), kubelet("started")
_BOTH_LISTS = call("ListContainers").where(_lists_all_containers)


@observer(on=_OPENS)
def _stream_opens(m: Moment) -> None:
    stream = m.node.note(_Stream)
    stream.heard_t = m.t
    stream.listed.clear()


@observer(on=_BREAKS)
def _stream_breaks(m: Moment) -> None:
    stream = m.node.note(_Stream)
    stream.failures += 1
    stream.heard_t = None


@observer(on=_BEGINS)
def _life_begins(m: Moment) -> None:
    m.node.note(_Stream).begin()


@observer(on=_BOTH_LISTS, last=True)
def _listed(m: Moment) -> None:
    m.node.note(_Stream).listed.append((m.t, m.seq))


@contract("PLEG-14", on=_TOLD, needs=(CRI, PODS), gate=GATE, clause="heard")
def events_drive_the_workers(m: Moment) -> Findings:
    """The kubelet handles what the stream reports, and while the stream is open it lists everything only now
    and then.
    """
    event = event_of(m)
    if event is None or event.container_event_type != "CONTAINER_STOPPED_EVENT":
        return None
    container, known = m.world.containers.get(event.container_id), kubelet_view(m)
    pod = container.pod if container is not None else None
    if container is None or pod is None or not pod.born or not pod.wanted or pod.termination is not None:
        return None
    if is_outdated(m.node, pod, m.t):
        return None  # Something newer may be known.
    if (
        container is not pod.newest(container.name)
        or container.stops
        or pods.worker_is_busy(pod)
        or pod.finished
    ):
        return None
    if known.is_cut_off(m.t) or container.kind != "app":
        return None
    return answered(
        by=status().either(call("CreateContainer")).where(_is_about(pod)),
        within=_HEARD,
        unless=pods.TERMINATION_ASKED.either(_BREAKS),
        whole_node=True,
        text=f"the end of {container.name} is dealt with",
    )


@events_drive_the_workers.clause("seldom", on=_BOTH_LISTS.either(pods.END))
def everything_is_listed_seldom(m: Moment) -> Findings:
    """While the stream is open the runtime is not listed each second."""
    stream = m.node.note(_Stream)
    if stream.heard_t is None or m.t - stream.heard_t < _WINDOW:
        return None
    if len(stream.listed) <= _LISTINGS_MAX:
        return KEPT
    first_t, seq = stream.listed[0]
    if m.t - first_t < _WINDOW:
        return broken(f"everything was listed {len(stream.listed)} times in {m.t - first_t:.0f} s", seq)
    return KEPT


_OPENED = since("1.26")
"""Whether the feature gate has an effect (KEP-3386)."""


@events_drive_the_workers.clause("opened", on=_BEGINS)
def stream_is_opened(m: Moment) -> Findings:
    """A kubelet that starts opens the stream."""
    if not _OPENED.get(m.kubernetes):
        return None
    return answered(
        by=_OPENS,
        within=KUBELET_START,
        unless=pods.FAULT.either(LIFE_ENDS),
        whole_node=True,
        text="the stream of the runtime's events is opened",
    )


def _is_about(pod: Pod) -> Predicate:
    return lambda m: m.pod is pod


@contract("PLEG-15", on=_BREAKS, gate=GATE)
def broken_stream_is_made_up_for(m: Moment) -> Findings:
    """Each time that the stream breaks everything is listed; after five times it is, each second."""
    if m.reply.error is None:
        return None
    return answered(
        by=call("ListPodSandbox").where(_lists_all_sandboxes),
        within=REACTION,
        whole_node=True,
        text="the runtime is listed after the stream of its events broke",
    )


@broken_stream_is_made_up_for.clause("fallback", on=listed_all("ListContainers"))
def runtime_is_listed_again(m: Moment) -> Findings:
    """Once the stream is given up the relists come at their usual pace."""
    if m.node.note(_Stream).failures < _TRIES:
        return None
    return answered(
        by=call("ListPodSandbox").where(_lists_all_sandboxes),
        within=RELIST + REACTION,
        whole_node=True,
        text="the runtime is listed again, as the stream of its events was given up",
    )


class _Heard(Note):
    """What the newest event of a pod reported, and what an older event that came after it reported."""

    newest: int = 0
    states: dict[str, str] = {}
    met_a_sync: bool = False
    """A sync waited for an answer when the newest event came: it continues with what was known before."""
    late: dict[str, str] = {}
    """By container, whose state only a late event reports."""
    late_t: float = 0.0
    seq: int = 0


@contract("PLEG-16", on=status(), needs=(CRI, STATUS), gate=GATE)
def late_event_changes_nothing(m: Moment, status: PodStatus) -> Iterator[Finding]:
    """An event that comes after a newer one of the same pod changes nothing that the newer one reported."""
    heard = _heard_late(m)
    if heard is None:
        return
    for said in status.every_container:
        late, newest = heard.late.get(said.runtime_id), heard.states.get(said.runtime_id)
        if late is None or newest is None or (late, newest) == ("CONTAINER_CREATED", "CONTAINER_EXITED"):
            continue
        shown = _shown(said)
        if shown == _SHOWN_AS.get(late) != _SHOWN_AS.get(newest):
            yield broken(f"{said.name} is {shown}, as only a late event has it", heard.seq)
        else:
            yield KEPT


@late_event_changes_nothing.clause("no-second", on=call("CreateContainer"))
def no_second_one_is_made(m: Moment, pod: Pod) -> Findings:
    """No container is made beside one that runs and that a late event has as merely created."""
    heard = _heard_late(m)
    newest = pod.newest(m.request(bodies.CreateContainerRequest).config.metadata.name)
    if heard is None or heard.met_a_sync or newest is None or newest.id not in heard.late:
        return None
    runs = heard.states.get(newest.id) == "CONTAINER_RUNNING" and pods.believed_running(newest)
    return broken(f"{newest.name} runs, and only a late event has it otherwise", heard.seq) if runs else None


_SHOWN_AS = {
    "CONTAINER_CREATED": "waiting",
    "CONTAINER_RUNNING": "running",
    "CONTAINER_EXITED": "terminated",
}


def _shown(said: ContainerStatus) -> str:
    if said.state.running is not None:
        return "running"
    return "terminated" if said.state.terminated is not None else "waiting"


def _heard_late(m: Moment) -> _Heard | None:
    heard = m.pod.note(_Heard) if m.pod is not None else None
    return heard if heard is not None and heard.late and m.t - heard.late_t <= REACTION else None


@observer(on=_TOLD)
def _(m: Moment) -> None:
    event = event_of(m)
    reported = event.pod_sandbox_status if event is not None else None
    pod = m.world.pods.get(reported.metadata.uid) if reported is not None else None
    if event is None or pod is None:
        return
    heard = pod.note(_Heard)
    states = {one.id: one.state for one in event.containers_statuses}
    if event.created_at >= heard.newest:
        heard.newest, heard.states = event.created_at, states
        since_t = pods.worker_busy_since(pod)
        heard.met_a_sync = since_t is not None and m.t - since_t > API_POLL
        return
    heard.late = {key: state for key, state in states.items() if heard.states.get(key, state) != state}
    heard.late_t, heard.seq = m.t, m.seq
