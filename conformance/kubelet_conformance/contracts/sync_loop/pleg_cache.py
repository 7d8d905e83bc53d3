"""PLEG: what happens to pods whose records go, stay as they are, or race with their inspection."""

from kubelet_conformance.contract import Container, Finding, Moment, Note, Pod, Predicate
from kubelet_conformance.contract.applicability import CRI, PODS, STATUS
from kubelet_conformance.contract.definition import KEPT, Findings, answered, broken, contract, observer
from kubelet_conformance.contract.patterns import call, done, failed, happened, pod_set, status
from kubelet_conformance.contracts.facts.container import last_read_as
from kubelet_conformance.contracts.facts.kubelet import is_informed
from kubelet_conformance.contracts.facts.pod import (
    TERMINATION_ASKED,
    believed_running,
    to_run,
    worker_is_busy,
)
from kubelet_conformance.contracts.facts.timing import KUBELET_START, REACTION
from kubelet_conformance.trace.format import bodies
from kubelet_conformance.trace.format.labels import Label
from kubelet_conformance.trace.format.manifests import ContainerStatus, Manifest, PodStatus
from kubelet_conformance.trace.world.kubelet_view import kubelet_view

_READING_FAILED = failed("ListPodSandbox", "ListContainers", "PodSandboxStatus", "ContainerStatus")
_DEALT_WITH = status().either(
    call("RunPodSandbox", "StopPodSandbox", "PullImage", "CreateContainer", "StopContainer")
)
"""A pod worker has handled its pod."""


def _sees(m: Moment) -> bool:
    """The kubelet is up for some time, and is informed of changes at the runtime and at the API server."""
    started_t = m.node.started_t
    return is_informed(m) and started_t is not None and m.t - started_t >= KUBELET_START


def _changed_t(pod: Pod) -> float:
    """When something about the pod last changed, as far as the trace shows."""
    times = [pod.changed_t, pod.status_t]
    times += [t for one in pod.every_container() for t in (one.created_t, one.started_t, one.removed_t)]
    times += [one.exit.t for one in pod.every_container() if one.exit is not None]
    times += [t for one in pod.sandboxes for t in (one.ready_t, one.died_t, one.removed_t)]
    return max((t for t in times if t is not None), default=0.0)


@contract("PLEG-03", on=happened("removed"), needs=(CRI, PODS, STATUS))
def running_container_that_went_has_died(m: Moment, pod: Pod, container: Container) -> Findings:
    """A container that ran and has no record any more has died: its pod's worker syncs at once."""
    if container.stops or not container.seen_running:
        return None
    if not to_run(m) or worker_is_busy(pod) or not _sees(m) or container is not pod.newest(container.name):
        return None
    if pod.sandbox is None or pod.sandbox.state != "ready" or not last_read_as(container, "RUNNING"):
        return None
    return answered(
        by=_DEALT_WITH,
        within=REACTION,
        unless=TERMINATION_ASKED.either(_READING_FAILED),
        text=f"{pod.name} is dealt with, of which the record of {container.name} went while it ran",
    )


@contract("PLEG-06", on=pod_set(), needs=(CRI, PODS))
def worker_of_an_unchanged_pod_goes_on(m: Moment, pod: Pod, manifest: Manifest) -> Findings:
    """The worker of a pod without changes is not held up: its deletion stops it within a relist."""
    if manifest.metadata.deletion_timestamp is None or not to_run(m):
        return None
    if pod.traits is None or "hook" in pod.traits or worker_is_busy(pod) or not _sees(m):
        return None
    if m.t - _changed_t(pod) < 2 * REACTION or not any(map(believed_running, pod.every_container())):
        return None
    return answered(
        by=call("StopContainer", "StopPodSandbox"),  # Its last container may have ended unseen.
        within=REACTION,
        unless=_READING_FAILED,
        text=f"{pod.name}, of which nothing had changed for long, is stopped",
    )


@contract("PLEG-07", on=happened("removed"), needs=(CRI, PODS))
def pod_without_records_is_empty(m: Moment, pod: Pod) -> Findings:
    """A pod of which no record is left has never run: it gets a first sandbox, and nothing is stopped."""
    if m.sandbox is None or m.container is not None or not to_run(m) or not _sees(m):
        return None
    if pod.restart_policy != "Always" or worker_is_busy(pod) or not _is_all_there_is(pod, m):
        return None
    return answered(
        by=call("RunPodSandbox").where(_is_the_first),
        not_before=call("RunPodSandbox", "StopPodSandbox", "StopContainer"),
        within=REACTION,
        unless=TERMINATION_ASKED.either(_READING_FAILED),
        text=f"{pod.name}, of which nothing is left, gets a first sandbox",
    )


def _is_all_there_is(pod: Pod, m: Moment) -> bool:
    others = (one for one in pod.sandboxes if one is not m.sandbox and one.state != "removed")
    strays = (c for c in pod.every_container() if c.sandbox is not m.sandbox and c.state != "removed")
    return not any(others) and not any(strays)


def _is_the_first(m: Moment) -> bool:
    return m.request(bodies.RunPodSandboxRequest).config.metadata.attempt == 0


class _Inspection(Note):
    """What the last listing of a pod said, and which containers the kubelet has inspected since."""

    listing: bodies.ListContainersReply | None = None
    asked: set[str] = set()

    def begin(self, listing: bodies.ListContainersReply) -> None:
        """A new listing: its containers will be inspected next."""
        self.listing = listing
        self.asked.clear()

    def named(self) -> frozenset[str]:
        """The containers that the listing names."""
        records = self.listing.containers if self.listing is not None else ()
        return frozenset(one.id for one in records)


def _inspected(m: Moment) -> Pod | None:
    """The pod of the inspected container, which may be gone."""
    if m.pod is not None:
        return m.pod
    asked = m.request(bodies.ContainerRequest).container_id
    return next((pod for pod in m.world.pods.values() if asked in pod.note(_Inspection).named()), None)


@contract("PLEG-11", on=failed("ContainerStatus"), needs=(CRI, PODS))
def record_that_is_gone_is_left_out(m: Moment) -> Findings:
    """A record that goes while its pod is inspected is left out: the other containers are inspected."""
    pod, error = _inspected(m), m.reply.error
    if pod is None or error is None or error.code != "NOT_FOUND" or pod.termination is not None:
        return None
    inspection = pod.note(_Inspection)
    left = (inspection.named() - inspection.asked) & m.world.containers.keys()
    if not left:
        return None
    return answered(
        by=call("ContainerStatus").where(_asks_about(left)),
        not_before=done("ListContainers").where(_lists(pod)),
        within=REACTION,
        unless=TERMINATION_ASKED,
        whole_node=True,
        text=f"the other containers of {pod.name} are inspected",
    )


@observer(on=done("ListContainers"))
def _(m: Moment) -> None:
    pod = m.world.pods.get(_pod_asked(m)) if "all:ListContainers" not in m.keys else None
    if pod is not None:
        pod.note(_Inspection).begin(m.response(bodies.ListContainersReply))


@observer(on=call("ContainerStatus"))
def _(m: Moment) -> None:
    pod = _inspected(m)
    if pod is not None:
        pod.note(_Inspection).asked.add(m.request(bodies.ContainerRequest).container_id)


def _pod_asked(m: Moment) -> str:
    return m.request(bodies.ListContainersRequest).filter.label_selector.get(Label.POD_UID, "")


def _lists(pod: Pod) -> Predicate:
    return lambda m: bool(pod.uid) and _pod_asked(m) == pod.uid


def _asks_about(ids: frozenset[str]) -> Predicate:
    return lambda m: m.request(bodies.ContainerRequest).container_id in ids


class _FirstRead(Note):
    """When the state of a container was first reported to the kubelet."""

    t: float | None = None


@contract("PLEG-12", on=status(), needs=(CRI, STATUS))
def newest_record_is_the_one_that_counts(m: Moment, pod: Pod, status: PodStatus) -> Findings:
    """Of several records of a container the one that was made last counts, however the runtime lists them."""
    if not pod.born:
        return None
    several = [one for one in status.every_container if len(pod.containers.get(one.name, ())) > 1]
    if not several or worker_is_busy(pod):
        return None
    return [finding for said in several if (finding := _judged(m, pod, said)) is not None]


def _judged(m: Moment, pod: Pod, said: ContainerStatus) -> Finding | None:
    reported = [one for one in pod.containers[said.name] if one.record is not None]
    shown = next((one for one in reported if one.id == said.runtime_id), None)
    if shown is None or len(reported) < 2:  # noqa: PLR2004 - one record has no order
        return None
    newer = [one for one in reported if _made_at(one) > _made_at(shown)]
    if not newer:
        return KEPT
    newest = max((one for one in newer if one.state != "removed"), key=_made_at, default=None)
    if newest is None:
        return None  # Their records have gone: what is left may be all that the kubelet sees.
    read_t = newest.note(_FirstRead).t
    view = kubelet_view(m)
    if read_t is None or view.made_since(m.t) - read_t < REACTION or view.api_was_faulty(read_t):
        return None
    return broken(
        f"the status shows instance {shown.attempt} of {said.name}, not the newer {newest.attempt}",
        newest.started_seq,
    )


@observer(on=done("ContainerStatus"))
def _(m: Moment, container: Container) -> None:
    read = container.note(_FirstRead)
    read.t = m.t if read.t is None else read.t


def _made_at(container: Container) -> int:
    return container.record.created_at if container.record is not None else 0
