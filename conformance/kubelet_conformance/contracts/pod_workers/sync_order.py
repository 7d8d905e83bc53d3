"""SYNC: what a failing step of a sync keeps from being done, and what it does not."""

from kubelet_conformance.contract import Container, Moment, Note, Pattern, Pod, PodSpec, Sandbox
from kubelet_conformance.contract.applicability import CRI, EVERY_EVENT, PODS, STATUS, since
from kubelet_conformance.contract.definition import KEPT, Findings, answered, broken, contract, observer
from kubelet_conformance.contract.patterns import call, deleted, done, event, failed, sandbox_died
from kubelet_conformance.contracts.facts.backoff import retry_bound
from kubelet_conformance.contracts.facts.container import (
    asked,
    creation_of,
    failing_start,
    left_created_state,
)
from kubelet_conformance.contracts.facts.disk import files
from kubelet_conformance.contracts.facts.pod import NOBODY, to_run, was_seen_started, will_not_restart
from kubelet_conformance.contracts.facts.sandbox import FINISHED, GONE
from kubelet_conformance.contracts.facts.timing import RETRY, RETRY_SLACK, SAME_MOMENT
from kubelet_conformance.contracts.pod_workers.sync import CUT_OFF
from kubelet_conformance.contracts.runtime.expected import judges_waits
from kubelet_conformance.trace.format.bodies import PodSandboxStatusReply
from kubelet_conformance.trace.format.records import Event

MOUNT_WAIT = 123.0
"""How long one sync waits for volumes (volumemanager)."""
KNOWN = 2.0
"""After this long the kubelet knows of a change or a deletion, and has begun no sync without it."""
_NOT_MOUNTED = "Unable to attach or mount volumes"
"""How a sync reports that its wait for volumes timed out; the mounter's own events say something else."""

_STEP_FAILED: Pattern = event(
    "NetworkNotReady", "FailedMount", "FailedToMakePodDataDirectories", "FailedPrepareDynamicResources"
)
_RUNTIME_STEPS: Pattern = call("RunPodSandbox", "PullImage", "CreateContainer", "StartContainer")


class _Failed(Note):
    """The latest step of the pod's syncs that failed, and whether a later sync has been seen."""

    reason: str = ""
    t: float = 0.0
    seq: int = 0


def _wait_timed_out(m: Moment) -> bool:
    return isinstance(m.record, Event) and m.record.message.startswith(_NOT_MOUNTED)


@observer(on=_STEP_FAILED)
def _step_failed(m: Moment, pod: Pod, event: Event) -> None:
    if event.reason == "FailedMount" and not _wait_timed_out(m):
        return
    memory = pod.note(_Failed)
    memory.reason, memory.t, memory.seq = event.reason, m.t, m.seq


def _follows_a_failed_step(m: Moment, *reasons: str) -> Findings:
    """Whether this step of the runtime belongs to a sync that has failed before it."""
    memory = m.pod.note(_Failed) if m.pod is not None else None
    if memory is None or not memory.seq or (reasons and memory.reason not in reasons):
        return None
    if m.t - memory.t < SAME_MOMENT:
        return broken(f"{m.call.rpc} follows {memory.reason} at once", memory.seq)
    return KEPT


@contract("SYNC-02", on=_RUNTIME_STEPS, needs=(CRI, PODS, EVERY_EVENT))
def failed_step_ends_the_sync(m: Moment) -> Findings:
    """The steps of a sync have an order, and one that fails keeps those after it from being taken.

    Before the runtime is asked for anything come the network, the data folders, the volumes and prepared
    resources.
    """
    return _follows_a_failed_step(m)


@contract("SYNC-10", on=call("RunPodSandbox", "CreateContainer"), needs=(CRI, PODS, EVERY_EVENT))
def nothing_runs_without_volumes(m: Moment) -> Findings:
    """While a pod's volumes are not mounted a FailedMount event is sent, and neither sandbox nor container is
    made.

        The sync is tried again.
    """
    return _follows_a_failed_step(m, "FailedMount")


@nothing_runs_without_volumes.clause("again", on=event("FailedMount").where(_wait_timed_out))
def volumes_are_waited_for_again(m: Moment) -> Findings:
    """After a wait for volumes that timed out comes another one."""
    if not to_run(m):
        return None
    return answered(
        by=event("FailedMount").either(call("RunPodSandbox", "CreateContainer")),
        within=MOUNT_WAIT + RETRY + RETRY_SLACK,
        unless=GONE,
        text="the volumes are waited for again",
    )


judges_waits(nothing_runs_without_volumes)


@contract("SYNC-11", on=call("CreateContainer"), needs=(CRI, PODS))
def data_folders_come_before_containers(m: Moment, pod: Pod) -> Findings:
    """A pod's data folder, and those for volumes and plugins in it, are there before its containers."""
    known = files(m)
    if not pod.born or not m.node.born or not known.folders:
        return None
    folder = known.folder_of(pod.uid)
    for path in (folder, f"{folder}/volumes", f"{folder}/plugins"):
        if path not in known.folders:
            return broken(
                f"{asked(m).metadata.name} is made, and the folder {path or 'of its pod'} is missing"
            )
    return KEPT


def _was_to_go(m: Moment) -> bool:
    """The kubelet knew that the pod is to be terminated when its sandbox failed."""
    end = m.pod.termination if m.pod is not None else None
    return m.pod is not None and m.pod.born and end is not None and m.t - end.t >= KNOWN


_OVER: Pattern = FINISHED.either(deleted())


@contract(
    "SYNC-14", on=failed("RunPodSandbox"), needs=(CRI, PODS, STATUS, EVERY_EVENT), versions=since("1.22")
)
def failed_sandbox_of_a_deleted_pod_is_not_reported(m: Moment) -> Findings:
    """A sandbox that fails when its pod is to go already is no failure: no event reports it."""
    if not _was_to_go(m):
        return None
    return answered(
        by=_OVER,
        not_before=event("FailedCreatePodSandBox"),
        text="the pod, which is to go, ends without an event about its sandbox",
    )


@contract(
    "SYNC-19", on=failed("RunPodSandbox"), needs=(CRI, PODS, STATUS, EVERY_EVENT), versions=since("1.22")
)
def deleted_pod_goes_on_terminating(m: Moment, pod: Pod) -> Findings:
    """After a RunPodSandbox that fails when the pod is to go the pod is terminated.

    The failure is not reported, and no other sandbox is run.
    """
    if not _was_to_go(m) or (pod.spec is not None and pod.spec.volumes):
        return None
    if (pod.static and not pod.mirror_uid) or pod.deleted_t is not None:
        return None  # Nothing of it shows its end.
    return answered(
        by=_OVER,
        not_before=event("FailedCreatePodSandBox").either(call("RunPodSandbox")),
        within=RETRY + RETRY_SLACK,
        text="the pod, which is to go, ends",
    )


def _has_no_status(m: Moment) -> bool:
    return m.response(PodSandboxStatusReply).status is None


def _read(sandbox: Sandbox) -> Pattern:
    def has_status(m: Moment) -> bool:
        return m.sandbox is sandbox and not _has_no_status(m)

    return done("PodSandboxStatus").where(has_status)


@contract(
    "SYNC-21",
    on=done("PodSandboxStatus").where(_has_no_status),
    needs=(CRI, PODS),
    versions=since("1.24"),
)
def empty_sandbox_status_is_an_error(m: Moment, sandbox: Sandbox) -> Findings:
    """A PodSandboxStatus that succeeds and has no status of a new sandbox is an error.

    No container is made, and no other sandbox run, before the sandbox was read. What a status cannot do
    without is its id, its names, the time when it was made, and of a container the image.
    """
    if not to_run(m) or not sandbox.born or sandbox.status_t is not None or sandbox.stops:
        return None
    return answered(
        by=_read(sandbox),
        not_before=call("CreateContainer", "RunPodSandbox"),
        within=RETRY + RETRY_SLACK,
        unless=GONE.either(sandbox_died(), failed("PodSandboxStatus")),
        text="the new sandbox is read",
    )


judges_waits(empty_sandbox_status_is_an_error)


def _comes_again(pod: Pod, name: str, container: Container | None) -> bool:
    """What could not be made or started is due once more.

    An ephemeral one with a record is not, nor what was stopped for a change and does not run again by the
    restart policy.
    """
    kind = pod.kind_of(name)
    return (kind == "app" and not will_not_restart(pod, name)) or (kind == "ephemeral" and container is None)


@contract("SYNC-23", on=failed("CreateContainer", "StartContainer"), needs=(CRI, PODS, STATUS))
def failed_start_fails_the_pass(m: Moment, pod: Pod) -> Findings:
    """A pass in which one container could not be started has failed, and so comes again within 16 s.

    The other containers are tried all the same.
    """
    name = failing_start(m)
    if not to_run(m) or not _comes_again(pod, name, m.container):
        return None
    if m.container is not None and was_seen_started(m.container):
        return None  # An event has reported that the start took place.
    # A start whose answer was lost may have taken place.
    started = left_created_state(m.container) if m.container is not None and m.reply.effect else NOBODY
    return answered(
        by=creation_of(name).either(call("PullImage")),
        within=retry_bound(m, name),
        unless=CUT_OFF.either(started, failed("ContainerStatus")),
        text=f"{name}, which could not be started, is tried again",
    )


def _untried(pod: Pod, name: str) -> bool:
    return pod.newest(name) is None and name not in pod.create_failed


@failed_start_fails_the_pass.clause("others", on=failed("CreateContainer"))
def failed_ephemeral_keeps_no_other_up(m: Moment, pod: Pod, spec: PodSpec) -> Findings:
    """An ephemeral container that could not be made does not keep the next from being tried."""
    name = failing_start(m)
    if not to_run(m) or pod.kind_of(name) != "ephemeral":
        return None
    if pod.changed_t is None or m.t - pod.changed_t < KNOWN:
        return None  # This sync may have begun with an older spec.
    names = [one.name for one in spec.ephemeral_containers or ()]
    following = next((one for one in names[names.index(name) + 1 :] if _untried(pod, one)), None)
    if following is None:
        return None
    return answered(
        by=creation_of(following).either(call("PullImage"), event("InspectFailed")),
        within=RETRY,
        not_before=creation_of(name),
        unless=CUT_OFF,
        text=f"the next ephemeral container, {following}, is tried",
    )
