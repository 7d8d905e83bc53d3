"""PLEG with container events instead of relists: the event stream, its loss, and its order."""

from collections import deque
from collections.abc import Iterator

from kubelet_conformance.contract import Finding, Moment, Note, Pod
from kubelet_conformance.contract.applicability import CRI, PODS, STATUS, since
from kubelet_conformance.contract.definition import KEPT, Findings, answered, broken, contract, observer
from kubelet_conformance.contract.patterns import call, failed, kubelet, listed_all, status
from kubelet_conformance.contracts.facts import pod as pods
from kubelet_conformance.contracts.facts.sandbox import CONTAINER_EVENT
from kubelet_conformance.contracts.facts.timing import API_POLL, KUBELET_START, REACTION, RELIST
from kubelet_conformance.contracts.sync_loop.kubelet_restart import LIFE_ENDS
from kubelet_conformance.contracts.sync_loop.pleg import lists_all_sandboxes
from kubelet_conformance.trace.format import bodies
from kubelet_conformance.trace.format.manifests import ContainerStatus, PodStatus
from kubelet_conformance.trace.world.kubelet_view import kubelet_view
from kubelet_conformance.trace.world.missed_updates import is_outdated
from kubelet_conformance.trace.world.runtime_reports import event_of

GATE = "EventedPLEG"
_STREAM = "GetContainerEvents"
_REACTS_WITHIN = 7.0
"""How late the reaction to an event may be: a worker may wait for the cache to count as new, every 5 s."""
_TRIES = 5
"""How often the stream may fail before it is given up (evented.go)."""
_WINDOW = 100.0
_LISTINGS_MAX = 20
"""How often all sandboxes may be listed within the window; a relist a second makes five times as many.

Containers are listed more often: statistics, which are read every 10 s, ask twice each time.
"""


class _Stream:
    """The event stream of this kubelet instance, and how often everything was listed beside it."""

    def __init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        self.failures = 0
        self.opened_t: float | None = None
        """When the stream that is open was opened; None while there is none."""
        self.listed = deque[tuple[float, int]](maxlen=_LISTINGS_MAX + 1)


_OPENS, _BREAKS, _BEGINS = call(_STREAM), failed(_STREAM), kubelet("started")
_LISTS = call("ListPodSandbox").where(lists_all_sandboxes)


@observer(on=_OPENS, gate=GATE)
def _stream_opens(m: Moment) -> None:
    stream = m.node.note(_Stream)
    stream.opened_t = m.t
    stream.listed.clear()


@observer(on=_BREAKS, gate=GATE)
def _stream_breaks(m: Moment) -> None:
    stream = m.node.note(_Stream)
    stream.failures += 1
    stream.opened_t = None


@observer(on=_BEGINS, gate=GATE)
def _life_begins(m: Moment) -> None:
    m.node.note(_Stream).begin()


@observer(on=_LISTS, last=True, gate=GATE)
def _listed(m: Moment) -> None:
    m.node.note(_Stream).listed.append((m.t, m.seq))


@contract("PLEG-14", on=CONTAINER_EVENT, needs=(CRI, PODS), gate=GATE, clause="handled")
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
    if container is not pod.newest(container.name) or container.stops or pods.worker_is_busy(pod):
        return None
    if pod.finished or known.is_cut_off(m.t) or container.kind != "app":
        return None
    return answered(
        by=status().either(call("CreateContainer")).where(pods.of(pod)),
        within=_REACTS_WITHIN,
        unless=pods.TERMINATION_ASKED.either(_BREAKS),
        whole_node=True,
        text=f"the end of {container.name} is dealt with",
    )


@events_drive_the_workers.clause("seldom", on=_LISTS.either(pods.END))
def everything_is_listed_seldom(m: Moment) -> Findings:
    """While the stream is open the runtime is not listed each second."""
    stream = m.node.note(_Stream)
    if stream.opened_t is None or m.t - stream.opened_t < _WINDOW:
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


@contract("PLEG-15", on=_BREAKS, gate=GATE)
def broken_stream_is_made_up_for(m: Moment) -> Findings:
    """Each time that the stream breaks everything is listed; after five times it is, each second."""
    if m.reply.error is None:
        return None
    return answered(
        by=call("ListPodSandbox").where(lists_all_sandboxes),
        within=REACTION,
        whole_node=True,
        text="the runtime is listed after the stream of its events broke",
    )


@broken_stream_is_made_up_for.clause("again", on=_BREAKS)
def broken_stream_is_opened_again(m: Moment) -> Findings:
    """Up to the fifth time the stream is opened again."""
    if m.reply.error is None or not m.node.kubelet_up or m.node.note(_Stream).failures >= _TRIES:
        return None
    return answered(
        by=_OPENS,
        within=RELIST + REACTION,
        unless=LIFE_ENDS.either(failed("ListPodSandbox", "ListContainers"), pods.FAULT),
        whole_node=True,
        text="the stream of the runtime's events is opened again",
    )


@broken_stream_is_made_up_for.clause("given up", on=_OPENS)
def stream_is_given_up(m: Moment) -> Findings:
    """After the fifth time the stream is not opened any more."""
    failures = m.node.note(_Stream).failures
    return broken(f"the stream is opened, which has broken {failures} times") if failures >= _TRIES else None


@broken_stream_is_made_up_for.clause("fallback", on=listed_all("ListContainers"))
def runtime_is_listed_again(m: Moment) -> Findings:
    """Once the stream is given up the relists come at their usual pace."""
    if m.node.note(_Stream).failures < _TRIES:
        return None
    return answered(
        by=call("ListPodSandbox").where(lists_all_sandboxes),
        within=RELIST + REACTION,
        whole_node=True,
        text="the runtime is listed again, as the stream of its events was given up",
    )


class _Events(Note):
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
    events = _late_events(m)
    if events is None:
        return
    for said in status.every_container:
        late, newest = events.late.get(said.runtime_id), events.states.get(said.runtime_id)
        if late is None or newest is None or (late, newest) == ("CONTAINER_CREATED", "CONTAINER_EXITED"):
            continue
        shown = _shown(said)
        if shown == _SHOWN_AS.get(late) != _SHOWN_AS.get(newest):
            yield broken(f"{said.name} is {shown}, as only a late event has it", events.seq)
        else:
            yield KEPT


@late_event_changes_nothing.clause("no-second", on=call("CreateContainer"))
def no_second_one_is_made(m: Moment, pod: Pod) -> Findings:
    """No container is made beside one that runs and that a late event has as merely created."""
    events = _late_events(m)
    newest = pod.newest(m.request(bodies.CreateContainerRequest).config.metadata.name)
    if events is None or events.met_a_sync or newest is None or newest.id not in events.late:
        return None
    runs = events.states.get(newest.id) == "CONTAINER_RUNNING" and pods.believed_running(newest)
    return broken(f"{newest.name} runs, and only a late event has it otherwise", events.seq) if runs else None


_SHOWN_AS = {
    "CONTAINER_CREATED": "waiting",
    "CONTAINER_RUNNING": "running",
    "CONTAINER_EXITED": "terminated",
}


def _shown(said: ContainerStatus) -> str:
    if said.state.running is not None:
        return "running"
    return "terminated" if said.state.terminated is not None else "waiting"


def _late_events(m: Moment) -> _Events | None:
    events = m.pod.note(_Events) if m.pod is not None else None
    return events if events is not None and events.late and m.t - events.late_t <= REACTION else None


@observer(on=CONTAINER_EVENT, gate=GATE)
def _(m: Moment) -> None:
    event = event_of(m)
    reported = event.pod_sandbox_status if event is not None else None
    pod = m.world.pods.get(reported.metadata.uid) if reported is not None else None
    if event is None or pod is None:
        return
    events = pod.note(_Events)
    states = {one.id: one.state for one in event.containers_statuses}
    if event.created_at >= events.newest:
        events.newest, events.states = event.created_at, states
        since_t = pods.worker_busy_since(pod)
        events.met_a_sync = since_t is not None and m.t - since_t > API_POLL
        return
    events.late = {key: state for key, state in states.items() if events.states.get(key, state) != state}
    events.late_t, events.seq = m.t, m.seq
