"""INIT: what the kubelet does about a regular init container that failed.

INIT: how init containers appear in a pod's status.
"""

from collections.abc import Iterator

from kubelet_conformance.contract import Container, Exit, Finding, Moment, Note, Pod
from kubelet_conformance.contract.applicability import CRI, PODS, STATUS, ByVersion
from kubelet_conformance.contract.definition import KEPT, Findings, answered, broken, contract, observer
from kubelet_conformance.contract.patterns import call, exited, failed, read_as, status
from kubelet_conformance.contracts.facts import container as containers
from kubelet_conformance.contracts.facts.backoff import restart_bound
from kubelet_conformance.contracts.facts.pod import TERMINATION_ASKED, another_image, was_seen_started
from kubelet_conformance.contracts.facts.sandbox import FINISHED
from kubelet_conformance.contracts.facts.static_pod import has_come_back
from kubelet_conformance.contracts.facts.timing import REACTION, RETRY, RETRY_SLACK
from kubelet_conformance.contracts.status.conditions import stays_initialized
from kubelet_conformance.contracts.tables.container import INITS, InitAct, InitSeen
from kubelet_conformance.trace.format.bodies import ContainerStatusReply
from kubelet_conformance.trace.format.manifests import ContainerStatus, PodStatus


def _becomes(pod: Pod, code: int | None) -> InitAct | None:
    """What is done about a regular init container that ended with `code`; None where that is not known."""
    if code is None:
        return None
    return INITS.decide(InitSeen("exited", pod.restart_policy, failed=code != 0))


@contract("INIT-07", on=containers.OWN_END, needs=(CRI, PODS))
def failed_one_is_retried(m: Moment, pod: Pod, container: Container, ended: Exit) -> Findings:
    """Unless the policy is Never, a failed init container is run again after its back-off.

    No later container is created before that. A sandbox that replaces a dead one starts with the first init
    container again.
    """
    if container.kind != "init":
        return None
    if _becomes(pod, ended.code) != "start" or not containers.in_place(container):
        return None
    if containers.sees_stale_init_record(pod, container.sandbox):
        return None
    return answered(
        by=containers.start_of(container.name),
        within=restart_bound(m, container.name),
        unless=containers.HELD_UP.either(another_image(container)),
        not_before=containers.creation_of_kind("init", "app", besides=container.name),
        text=f"{container.name} is created again after it failed",
    )


@failed_one_is_retried.clause("end-was-read", on=containers.REMAKING)
def _(m: Moment, pod: Pod) -> Findings:
    """An init container is not created again before the kubelet has read its end."""
    one = containers.recorded(pod, containers.asked(m).metadata.name)
    if one is None or one.kind != "init" or not containers.unread_end(m, one):
        return None
    return broken(f"{one.name} is created again though the kubelet has not read its end", one.create)


@contract("INIT-08", on=containers.OWN_END, needs=(CRI, PODS))
def failure_under_never_ends_the_pod(_: Moment, pod: Pod, container: Container, ended: Exit) -> Findings:
    """Under policy Never a failed init container is not retried: the pod is killed and ends as Failed."""
    if container.kind != "init":
        return None
    if _becomes(pod, ended.code) != "end the pod":
        return None
    return answered(
        by=call("StopPodSandbox"),
        within=REACTION,
        unless=TERMINATION_ASKED,
        not_before=containers.creation_of_kind("init", "app"),
        text="the pod is killed after its init container failed",
    )


@failure_under_never_ends_the_pod.clause("never-retried", on=call("CreateContainer"))
def _(m: Moment, pod: Pod) -> Findings:
    """No init or app container is created after an init container failed under policy Never."""
    if pod.restart_policy != "Never" or pod.kind_of(containers.asked(m).metadata.name) not in {"init", "app"}:
        return None
    inits = (containers.recorded(pod, spec.name) for spec in containers.regular_inits(pod))
    bad = next(
        (one for one in inits if one is not None and one.state == "exited" and containers.failed_run(one)),
        None,
    )
    if bad is None or bad.exit is None or bad.exit.commanded:
        return None
    return broken(
        f"{containers.asked(m).metadata.name} is created though {bad.name} failed under policy Never",
        bad.exit.seq,
    )


@failure_under_never_ends_the_pod.clause("phase", on=FINISHED)
def _(_: Moment, pod: Pod, status: PodStatus) -> Findings:
    """The pod ends as Failed."""
    if not status.terminal or pod.restart_policy != "Never":
        return None
    for reported in status.init_container_statuses or ():
        ended = reported.state.terminated
        if pod.kind_of(reported.name) == "init" and ended and ended.exit_code:
            if status.phase != "Failed":
                return broken(f"phase {status.phase} though {reported.name} exited with {ended.exit_code}")
            return KEPT
    return None


@contract("INIT-09", on=read_as("exited"), needs=(CRI, PODS))
def out_of_memory_is_a_failure(m: Moment, pod: Pod, container: Container) -> Findings:
    """An init container with reason OOMKilled failed, whatever its exit code.

    It is run again, or under policy Never the pod is killed.
    """
    reported = m.response(ContainerStatusReply).status
    if reported is None or reported.reason != "OOMKilled":
        return None
    if reported.state != "CONTAINER_EXITED" or reported.exit_code or container.kind != "init":
        return None
    if not containers.to_watch(m):
        return None
    if not containers.in_place(container):
        return None
    if containers.last_read_as(container, "EXITED"):
        return None
    never = INITS.decide(InitSeen("exited", pod.restart_policy, failed=True)) == "end the pod"
    return answered(
        by=call("StopPodSandbox") if never else containers.start_of(container.name),
        within=REACTION if never else restart_bound(m, container.name),
        unless=containers.HELD_UP,
        not_before=containers.creation_of_kind("init", "app", besides="" if never else container.name),
        text=f"{container.name} counts as failed",
    )


@contract("INIT-11", on=containers.REMAKING, needs=(CRI, PODS))
def unknown_one_is_stopped_first(m: Moment, pod: Pod) -> Findings:
    """An init container whose state is unknown is stopped before it is created again.

    Under policy Never it is not created again.
    """
    one = containers.recorded(pod, containers.asked(m).metadata.name)
    if one is None or one.kind != "init" or one.record is None:
        return None
    if one.record.state != "CONTAINER_UNKNOWN":
        return None
    if INITS.decide(InitSeen("unknown", pod.restart_policy)) == "end the pod":
        return broken(f"{one.name} is created again under policy Never", one.create)
    if not any(stop.is_done for stop in one.stops):
        return broken(f"{one.name} is created again before its unknown instance was stopped", one.create)
    return KEPT


@contract("INIT-14", on=exited(), needs=(CRI, PODS))
def only_newest_dead_instance_is_kept(m: Moment, pod: Pod, container: Container) -> Findings:
    """Of each init container only the newest dead instance is kept.

    When another has ended, the older ones are removed in the next sync.
    """
    if container.kind not in {"init", "sidecar"}:
        return None
    every = pod.containers.get(container.name, ())
    dead = [one for one in every if one is not container and one.state == "exited"]
    if not dead or not containers.to_watch(m):
        return None
    return [
        answered(
            by=containers.removal_of(older),
            within=REACTION,
            unless=containers.HELD_UP,
            text=f"instance {older.attempt} of {older.name} is removed",
        )
        for older in dead
    ]


@contract("INIT-18", on=failed("StartContainer"), needs=(CRI, PODS))
def created_one_is_tried_again(m: Moment, pod: Pod, container: Container) -> Findings:
    """An init container that was created but could not be started is created again, before any later one."""
    if container.kind != "init" or not containers.to_watch(m):
        return None
    if (
        not containers.in_place(container)
        or was_seen_started(container)
        or containers.sees_stale_init_record(pod, container.sandbox)
    ):
        return None  # An event has reported that it runs after all, or the kubelet goes by another record.
    return answered(
        by=containers.start_of(container.name),
        within=restart_bound(m, container.name) + RETRY + RETRY_SLACK,
        unless=containers.HELD_UP.either(containers.left_created_state(container), another_image(container)),
        not_before=containers.creation_of_kind("init", "app", besides=container.name),
        text=f"{container.name} is created again after its start failed",
    )


_STAYS_INITIALIZED = ByVersion({"<=1.26": False, ">=1.28": True})
"""Whether Initialized stays True once an app container has run, whatever the pod's init containers do."""


_UNSEEN_FAILURES = frozenset(
    {"CreateContainerConfigError", "ErrImageNeverPull", "ImageInspectError", "InvalidImageName"}
)
"""Why a container could not be started, where no failed call shows that it was tried for this pod."""


def _initialized(m: Moment, pod: Pod, now: PodStatus) -> bool | None:
    """What the Initialized condition must say; None where that is not known, as if apps only ran before."""
    apps = now.container_statuses or ()
    if _STAYS_INITIALIZED.at(m.kubernetes):
        if [one for one in apps if one.state.running or one.state.terminated]:
            return True
        if [one for one in apps if one.last_state.terminated]:
            return None
    stays = stays_initialized(m, pod, now)
    if stays is not False:
        return stays
    ready = {one.name: one.ready for one in _init_statuses(pod, now)}
    return all(ready.get(spec.name, False) for spec in containers.regular_inits(pod))


def _init_statuses(pod: Pod, now: PodStatus) -> list[ContainerStatus]:
    return [one for one in now.init_container_statuses or () if pod.kind_of(one.name) == "init"]


@contract("INIT-15", on=status(), needs=(PODS, STATUS), versions=_STAYS_INITIALIZED)
def ready_by_exit_code(_: Moment, pod: Pod, status: PodStatus) -> Iterator[Finding]:
    """A regular init container that ended is ready when its exit code is 0.

    Initialized is True when all are ready, and until then False with reason ContainersNotInitialized. From
    1.36 on it stays True.
    """
    for reported in _init_statuses(pod, status):
        ended = reported.state.terminated
        if ended is not None:
            if reported.ready != (ended.exit_code == 0):
                yield broken(f"{reported.name} exited with {ended.exit_code} and has ready {reported.ready}")
            else:
                yield KEPT


@ready_by_exit_code.clause("condition", on=status())
def _(m: Moment, pod: Pod, status: PodStatus) -> Findings:
    """Initialized is True when all are ready, and until then False with reason ContainersNotInitialized."""
    condition = status.condition("Initialized") if status else None
    if condition is None or status.phase == "Succeeded":
        return None
    if not containers.regular_inits(pod) or containers.sidecars(pod):
        return None
    expected = _initialized(m, pod, status)
    if expected is None:
        return None
    if (condition.status == "True") != expected:
        return broken(f"Initialized is {condition.status}, expected {expected}")
    if not expected and condition.reason != "ContainersNotInitialized":
        return broken(f"Initialized has reason {condition.reason!r}, expected ContainersNotInitialized")
    return KEPT


class _Failed(Note):
    """The containers of a pod that could not be created: the status says why until they are."""

    names: set[str] = set()
    initialized: bool = False
    """Its init containers were done once: the status still says why its app containers did not start
    then, until they do (reason_cache.go), though another sandbox begins with the init containers again.
    """


@contract("INIT-16", on=status(), needs=(PODS, STATUS))
def apps_wait_for_initializing(m: Moment, pod: Pod, status: PodStatus) -> Findings:
    """Until the init containers are done, app containers that never ran wait for PodInitializing."""
    if status.terminal or not pod.born:
        return None
    inits = _init_statuses(pod, status)
    if all(one.state.terminated and one.state.terminated.exit_code == 0 for one in inits):
        return None
    tried = {*pod.containers, *pod.note(_Failed).names}
    apps = [one for one in status.container_statuses or () if one.name not in tried]
    for reported in apps:
        if not reported.container_id and has_come_back(m, pod):
            continue  # Reasons are kept by the pod's UID, longer than its statuses.
        reason = reported.state.waiting.reason if reported.state.waiting else "none"
        if pod.note(_Failed).initialized and (
            reason in _UNSEEN_FAILURES or _waits_for_a_failed_pull(pod, reported.name, reason)
        ):
            continue
        if reason != "PodInitializing":
            return broken(f"{reported.name} waits for {reason}, expected PodInitializing")
    return KEPT if apps else None


def _waits_for_a_failed_pull(pod: Pod, name: str, reason: str) -> bool:
    """The image could not be pulled for another container of the pod, so its pull is backing off."""
    spec = pod.container_spec(name)
    pulls = pod.pulls.get(spec.image) if spec is not None else None
    return reason == "ImagePullBackOff" and pulls is not None and bool(pulls.failed_seq)


@observer(on=failed("CreateContainer", "PullImage"))
def _(m: Moment, pod: Pod) -> None:
    pod.note(_Failed).names.add(containers.failing_start(m))


@observer(on=exited())
def _takes_in_the_last_init(_: Moment, pod: Pod, container: Container, ended: Exit) -> None:
    """Record that the last init container completed: app containers may be tried from here on."""
    if ended.code != 0:
        return
    if [spec.name for spec in containers.regular_inits(pod)][-1:] == [container.name]:
        pod.note(_Failed).initialized = True


@contract("INIT-17", on=status(), needs=(PODS, STATUS))
def statuses_in_order(_: Moment, pod: Pod, status: PodStatus) -> Findings:
    """Init container statuses stand in the order of the spec, app container statuses sorted by name."""
    if pod.spec is None:
        return None
    spec = [one.name for one in pod.spec.init_containers or ()]
    inits = [one.name for one in status.init_container_statuses or ()]
    apps = [one.name for one in status.container_statuses or ()]
    if inits != [name for name in spec if name in inits]:
        return broken(f"the init statuses are {inits}, the spec has {spec}", pod.set_seq)
    if apps != sorted(apps):
        return broken(f"the app statuses are {apps}, expected them sorted by name", pod.set_seq)
    return KEPT if len(inits) > 1 or len(apps) > 1 else None
