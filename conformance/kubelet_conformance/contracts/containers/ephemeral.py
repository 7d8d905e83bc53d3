"""EPH: ephemeral containers are started once; phase, readiness and the pod's end ignore them."""

from collections.abc import Iterator

from kubelet_conformance.contract import Container, Exit, Finding, Manifest, Moment, Pod, PodStatus, Sandbox
from kubelet_conformance.contract.applicability import CRI, PODS, STATUS, since
from kubelet_conformance.contract.definition import KEPT, Findings, answered, broken, contract
from kubelet_conformance.contract.patterns import call, exited, failed, happened, sandbox_died, status
from kubelet_conformance.contracts.facts import container as containers
from kubelet_conformance.contracts.facts.backoff import restart_bound
from kubelet_conformance.contracts.facts.pod import LAST_END, TERMINATION_ASKED, at_its_end, hook_command
from kubelet_conformance.contracts.facts.status import was_lost
from kubelet_conformance.contracts.facts.timing import REACTION

_ON = since("1.23")


def _added(m: Moment) -> list[str]:
    """The ephemeral containers that this manifest (FREE_CHANGE) adds to a pod whose sandbox is ready."""
    pod, manifest = m.pod, m.manifest
    if pod is None or manifest is None or manifest.metadata.deletion_timestamp:
        return []
    if pod.sandbox is None or pod.sandbox.state != "ready" or pod.sandbox.stops or at_its_end(pod):
        return []
    every = manifest.spec.ephemeral_containers or ()
    # One that is to look into a container waits until there is such a container (EPH-07).
    ready = [
        spec for spec in every if not spec.target_container_name or pod.newest(spec.target_container_name)
    ]
    return [spec.name for spec in ready if pod.container_spec(spec.name) is None]


def _is_started(name: str, within: float = REACTION) -> Finding:
    return answered(
        by=containers.start_of(name),
        within=within,
        unless=containers.HELD_UP.either(LAST_END),
        text=f"ephemeral container {name} is created",
    )


@contract("EPH-01", on=call("CreateContainer"), needs=(CRI, PODS), versions=_ON)
def started_once(m: Moment, pod: Pod) -> Findings:
    """An ephemeral container is started once: only if there is no record of that name."""
    name = containers.asked(m).metadata.name
    if pod.kind_of(name) != "ephemeral":
        return None
    for older in pod.containers.get(name, ()):
        if older.state != "removed":
            return broken(f"ephemeral container {name} is created again", older.create)
    return KEPT


@contract("EPH-02", on=containers.OWN_END, needs=(CRI, PODS), versions=_ON)
def ended_one_is_left_alone(_: Moment, container: Container) -> Findings:
    """An ephemeral container that exited or is in an unknown state is neither stopped nor created again."""
    if container.kind != "ephemeral":
        return None
    return answered(
        by=TERMINATION_ASKED.either(call("StopPodSandbox")),
        unless=happened("removed"),
        not_before=containers.stop_of(container).either(containers.creation_of(container.name)),
        text=f"ephemeral container {container.name} is left alone",
    )


@ended_one_is_left_alone.clause("unknown", on=call("StopContainer"))
def _(m: Moment, pod: Pod, container: Container) -> Findings:
    """An ephemeral container in an unknown state is not stopped for that."""
    if container.kind != "ephemeral" or container.record is None:
        return None
    if container.record.state != "CONTAINER_UNKNOWN" or not containers.to_watch(m) or at_its_end(pod):
        return None
    if container.sandbox is None or container.sandbox.state != "ready":
        return None
    return broken(f"ephemeral container {container.name} is stopped for its unknown state", container.create)


@contract("EPH-03", on=containers.FREE_CHANGE, needs=(CRI, PODS), versions=_ON)
def does_not_wait_for_init(m: Moment) -> Iterator[Finding]:
    """An ephemeral container that is added while an init container runs is started all the same."""
    pod = m.pod
    if pod is not None and any(one.state == "running" for one in pod.of_kind("init")):
        for name in _added(m):
            yield _is_started(name)


_CUT_SHORT = TERMINATION_ASKED.either(sandbox_died(), failed("PodSandboxStatus", "ContainerStatus"))
"""After this the containers of the pod need not be started, whatever else its worker does."""


@contract(
    "EPH-04",
    on=failed("PullImage", "CreateContainer", "StartContainer"),
    needs=(CRI, PODS),
    versions=_ON,
)
def failed_one_harms_no_other(m: Moment, pod: Pod) -> Findings:
    """An ephemeral container that cannot be started keeps no other container of its pod from starting."""
    name = containers.failing_start(m)
    if pod.kind_of(name) != "ephemeral" or not containers.to_watch(m) or at_its_end(pod):
        return None
    due = _next_ephemeral(pod, name) or _ended_app(pod)
    if due is None or pod.sandbox is None or pod.sandbox.state != "ready" or pod.sandbox.stops:
        return None
    return answered(
        by=containers.start_of(due),
        within=restart_bound(m, due),
        unless=_CUT_SHORT,
        text=f"{due} is created though ephemeral container {name} cannot be started",
    )


def _next_ephemeral(pod: Pod, failing: str) -> str | None:
    """The next ephemeral container that has not been tried."""
    names = [one.name for one in (pod.spec.ephemeral_containers or () if pod.spec else ())]
    later = names[names.index(failing) + 1 :] if failing in names else []
    return next((one for one in later if one not in pod.containers and one not in pod.create_failed), None)


def _ended_app(pod: Pod) -> str | None:
    """An app container that ended by itself, as the kubelet knows, and that is to be restarted."""
    for one in pod.of_kind("app"):
        reported = containers.last_read_as(one, "EXITED")
        own_end = one.exit is not None and not one.exit.commanded
        if one is pod.newest(one.name) and one.state == "exited" and reported and own_end:
            return one.name if containers.wants_restart(pod, one) else None
    return None


@contract("EPH-05", on=call("CreateContainer"), needs=(CRI, PODS), versions=_ON)
def not_carried_to_a_new_sandbox(m: Moment, pod: Pod, sandbox: Sandbox) -> Findings:
    """With a new sandbox an ephemeral container that has a record in the old one is not started again."""
    if not sandbox.attempt:
        return None
    old = [one for one in pod.of_kind("ephemeral") if one.sandbox is not sandbox and one.state != "removed"]
    name = containers.asked(m).metadata.name
    for one in old:
        if one.name == name:
            return broken(f"ephemeral container {name} is created again in the new sandbox", one.create)
    return KEPT if old else None


@contract("EPH-06", on=exited(), needs=(CRI, PODS, STATUS), versions=_ON)
def does_not_keep_the_pod(m: Moment, pod: Pod, container: Container, ended: Exit) -> Findings:
    """An ephemeral container does not keep a pod alive, nor count for its readiness and phase."""
    if container.kind != "app" or not containers.to_watch(m):
        return None
    running = [one for one in pod.of_kind("ephemeral") if one.state == "running"]
    sandbox = container.sandbox
    if not running or sandbox is None or sandbox.state != "ready" or sandbox.stops:
        return None
    if not at_its_end(pod, container, ended.code):
        return None
    return answered(
        by=containers.stop_of(running[-1]).either(call("StopPodSandbox")),
        within=REACTION,
        text="the pod is killed though an ephemeral container runs",
    )


@does_not_keep_the_pod.clause("readiness", on=status())
def _(_: Moment, pod: Pod, status: PodStatus) -> Findings:
    """ContainersReady is True when all but the ephemeral containers are ready."""
    if not status.ephemeral_container_statuses or status.phase != "Running":
        return None
    condition = status.condition("ContainersReady")
    if condition is None or not _others_ready(pod, status):
        return None
    if condition.status != "True":
        return broken("ContainersReady is not True though all but ephemeral containers are ready")
    return KEPT


def _others_ready(pod: Pod, now: PodStatus) -> bool:
    """The status names every app container and sidecar, and each is ready."""
    reported = {one.name: one.ready for one in now.lasting_containers}
    spec = pod.spec
    names = [one.name for one in (*spec.containers, *(spec.init_containers or ()))] if spec else []
    return bool(names) and all(reported.get(name, False) for name in names)


@contract("EPH-07", on=call("CreateContainer"), needs=(CRI, PODS), versions=_ON)
def joins_its_target(m: Moment, pod: Pod) -> Findings:
    """With targetContainerName the process namespace is that of the newest instance of the target."""
    config = containers.asked(m)
    spec = pod.container_spec(config.metadata.name)
    if spec is None or not spec.target_container_name or not pod.born:
        return None
    options = config.linux.security_context.namespace_options
    target = pod.newest(spec.target_container_name)
    if options.pid != "TARGET" or target is None or options.target_id != target.id:
        expected = target.id if target else f"no container at all without {spec.target_container_name}"
        return broken(f"pid is {options.pid} of {options.target_id!r}, expected TARGET of {expected!r}")
    return KEPT


@contract("EPH-08", on=containers.FREE_CHANGE, needs=(CRI, PODS), versions=_ON)
def added_one_is_started(m: Moment) -> Iterator[Finding]:
    """Adding an ephemeral container starts a sync at once."""
    for name in _added(m):
        yield _is_started(name)


@contract("EPH-09", on=TERMINATION_ASKED, needs=(CRI, PODS), versions=_ON)
def stopped_with_the_pod(m: Moment, pod: Pod) -> Iterator[Finding]:
    """When its pod is terminated, a running ephemeral container is stopped like an app container."""
    if not containers.to_watch(m):
        return
    for one in pod.of_kind("ephemeral"):
        if one.state == "running" and not one.stops and hook_command(one, "pre_stop") is None:
            yield answered(
                by=containers.stop_of(one),
                within=REACTION,
                unless=containers.exit_of(one),
                not_before=call("StopPodSandbox"),
                text=f"ephemeral container {one.name} is stopped",
            )


@contract("EPH-10", on=containers.FREE_CHANGE, needs=(CRI, PODS), versions=_ON)
def change_restarts_nothing(_: Moment, pod: Pod, manifest: Manifest) -> Iterator[Finding]:
    """An ephemeral container is not created again when its definition changes."""
    if manifest.metadata.deletion_timestamp:
        return
    for new in manifest.spec.ephemeral_containers or ():
        old, newest = pod.container_spec(new.name), pod.newest(new.name)
        if old is None or newest is None or newest.state != "running" or old.image == new.image:
            continue
        yield answered(
            by=TERMINATION_ASKED,
            unless=containers.CALLED_OFF.either(exited(), happened("removed")),
            not_before=containers.stop_of(newest).either(containers.creation_of(new.name)),
            text=f"ephemeral container {new.name} runs on with its old image",
        )


@contract("EPH-11", on=status(), needs=(PODS, STATUS), versions=_ON)
def sorted_by_name(m: Moment) -> Findings:
    """Ephemeral container statuses are sorted by name, and their restartCount is 0.

    One that was lost while it ran counts as restarted.
    """
    reported = m.status.ephemeral_container_statuses if m.status else None
    if not reported:
        return None
    names = [one.name for one in reported]
    if names != sorted(names):
        return broken(f"the ephemeral statuses are {names}, expected them sorted by name")
    counted = [one.name for one in reported if one.restart_count and not was_lost(one)]
    return broken(f"{counted[0]} has a restartCount, expected 0") if counted else KEPT


@contract("EPH-12", on=status(), needs=(PODS, STATUS), versions=_ON)
def never_ready(m: Moment) -> Findings:
    """An ephemeral container's status has ready false and no started, running or not."""
    reported = m.status.ephemeral_container_statuses if m.status else None
    for one in reported or ():
        if one.ready or one.started is not None:
            return broken(f"{one.name} has ready {one.ready} and started {one.started}")
    return KEPT if reported else None
