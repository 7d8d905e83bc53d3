"""CLEANUP: what the kubelet's housekeeping may kill, when, and what it leaves alone."""

from collections.abc import Iterator

from kubelet_conformance.contract import Container, Finding, Moment, Note, Pod, PodStatus, Sandbox
from kubelet_conformance.contract.applicability import CRI, EVERY_STATUS, PODS, STATUS, since
from kubelet_conformance.contract.definition import KEPT, Findings, answered, broken, contract, observer
from kubelet_conformance.contract.patterns import call, deleted
from kubelet_conformance.contracts.facts import pod as pods
from kubelet_conformance.contracts.facts.kills import explained, to_be_explained
from kubelet_conformance.contracts.facts.sandbox import FINISHED
from kubelet_conformance.contracts.facts.timing import API_POLL, HOUSEKEEPING, SAME_MOMENT
from kubelet_conformance.contracts.sync_loop.kubelet_restart import LIFE_ENDS
from kubelet_conformance.contracts.sync_loop.pleg import LISTED, LISTING_FAILED
from kubelet_conformance.trace.world.kubelet_view import kubelet_view


class _Mirror(Note):
    """The mirror of a static pod, and whether a client has deleted it."""

    deleted: bool = False


@contract("CLEANUP-01", on=call("StopContainer"), needs=(CRI, PODS, EVERY_STATUS), versions=since("1.28"))
def mirrors_go_before_unknown_pods(m: Moment) -> Findings:
    """Housekeeping deletes the mirrors left of static pods before it kills pods that no source has."""
    known, started_t = kubelet_view(m), m.node.started_t
    if not _kills_an_orphan(m) or known.api_away_t is not None or started_t is None:
        return None
    is_informed = m.t > known.informed_by(started_t, m.t) + API_POLL
    if known.api_was_faulty(started_t) and not is_informed:
        return None  # It may not have been sent the mirrors.
    left = [pod for pod in m.world.pods.values() if pod.static and pod.mirror_uid and not pod.wanted]
    left = [pod for pod in left if not pods.known_to_kubelet(pod, m.node) and not _is_desired_again(m, pod)]
    for pod in left:
        if not pod.note(_Mirror).deleted:
            text = f"container {m.container.name if m.container else ''}, whose pod no source has, is stopped"
            return broken(f"{text} before the mirror of {pod.name} is deleted", pod.set_seq)
    return KEPT if left else None


def _is_desired_again(m: Moment, pod: Pod) -> bool:
    """By another manifest of that name: the mirror is then its worker's (mirrors are looked up by name)."""
    newest = m.world.names.get((pod.namespace, pod.name))
    return newest is not None and newest.static and newest.wanted


@observer(on=pods.API_DELETE.either(deleted()))
def _mirror_is_deleted(m: Moment) -> None:
    """Record which mirrors are gone."""
    pod = pods.pod_of_write(m) or m.pod
    if pod is not None and pod.static:
        pod.note(_Mirror).deleted = True


_MAKES = call("RunPodSandbox", "CreateContainer", "StartContainer")


@contract("CLEANUP-06", on=LISTING_FAILED, needs=(CRI, PODS))
def failed_listing_ends_housekeeping(m: Moment) -> Findings:
    """As long as listings fail, housekeeping kills no pod that no source has."""
    if not m.node.kubelet_up or not _orphans(m):
        return None
    rpc = m.call.rpc
    return answered(
        by=LISTED.where(lambda n: n.call.rpc == rpc),
        not_before=call("StopContainer").where(_kills_an_orphan),
        whole_node=True,
        text=f"{rpc} succeeds",
    )


def _orphans(m: Moment) -> bool:
    every = m.world.containers.values()
    return any(c.state == "running" and c.pod and not pods.known_to_kubelet(c.pod, m.node) for c in every)


def _kills_an_orphan(m: Moment) -> bool:
    container, pod = m.container, m.pod
    if container is None or pod is None or container.state != "running" or container.stops:
        return False
    return not pods.known_to_kubelet(pod, m.node)


@contract("CLEANUP-07", on=FINISHED, needs=(CRI, PODS, STATUS))
def finished_pod_is_not_run_again(_: Moment, pod: Pod, status: PodStatus) -> Findings:
    """A pod whose phase is terminal is neither synced nor started again."""
    if not status.terminal or pod.finished or not pod.born or pod.static:
        return None
    return answered(
        by=LIFE_ENDS.either(deleted().where(pods.of(pod))),
        not_before=_MAKES.where(pods.of(pod)),
        whole_node=True,
        text=f"nothing of {pod.name}, which is {status.phase}, is started again",
    )


@finished_pod_is_not_run_again.clause("later", on=_MAKES)
def ended_pod_is_not_made_again(m: Moment, pod: Pod) -> Findings:
    """A kubelet that starts later does not start a finished pod again either."""
    if not pod.finished or pod.static or not pod.born or not pod.wanted:
        return None
    return broken(f"{m.call.rpc} for {pod.name}, which is {pod.finished}", pod.status_seq)


@contract("CLEANUP-08", on=call("StopContainer"), needs=(CRI, PODS), clause="not-early")
def orphans_are_not_killed_at_once(m: Moment, pod: Pod, container: Container) -> Findings:
    """A kubelet that starts kills pods that no source has at its first housekeeping, 2 s after its start at
    the earliest; the sandbox is stopped after the containers.
    """
    started = m.node.started_t
    if started is None or pods.known_to_kubelet(pod, m.node):
        return None
    if container.state != "running" or container.stops or container.started_t is None:
        return None
    if container.started_t >= started:
        return None  # This kubelet started it, and need not notice that no source has it.
    if pod.termination is not None and pod.termination.seq > m.node.started_seq:
        return None  # It was removed at the moment of the start: this kubelet may have received it.
    if m.t - started < HOUSEKEEPING - SAME_MOMENT:
        return broken(f"{pod.name}, which no source has, is killed {m.t - started:.1f} s after the start")
    return KEPT


@orphans_are_not_killed_at_once.clause("order", on=call("StopPodSandbox"))
def orphans_sandbox_is_stopped_last(m: Moment, pod: Pod, sandbox: Sandbox) -> Findings:
    """The sandbox is stopped after its containers."""
    if m.node.started_t is None or pods.known_to_kubelet(pod, m.node):
        return None
    if sandbox.state != "ready" or sandbox.stops or not sandbox.born:
        return None
    for container in sandbox.containers.values():
        if container.state == "running" and not container.stops:
            return broken(
                f"the sandbox of {pod.name} is stopped before {container.name}", container.started_seq
            )
    return KEPT if sandbox.containers else None


_YOUNG = 2 * HOUSEKEEPING
"""A container this young may be missing in the kubelet's runtime cache."""


@contract("CLEANUP-02", on=call("StopContainer"), needs=(CRI, PODS), clause="young")
def young_container_is_no_orphan(m: Moment, pod: Pod, container: Container) -> Findings:
    """A container that was just started is not taken for an orphan: housekeeping does not stop it."""
    if container.started_t is None or container.stops:
        return None
    if m.t - container.started_t > _YOUNG or pods.may_be_unknown(pod, m.node) or explained(m):
        return None
    return to_be_explained(m, f"there is a reason to stop {container.name}, which has just been started,")


@young_container_is_no_orphan.clause("lives-on", on=LIFE_ENDS)
def young_containers_live_on(m: Moment) -> Iterator[Finding]:
    """A young container still runs after the next housekeeping."""
    for container in m.world.containers.values():
        begun = container.started_t
        if begun is None or container.state != "running" or container.pod is None or not container.born:
            continue
        if pods.known_to_kubelet(container.pod, m.node) and m.t - begun > _YOUNG and not container.stops:
            yield KEPT
