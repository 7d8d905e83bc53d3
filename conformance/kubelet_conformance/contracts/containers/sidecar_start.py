"""SIDECAR: whether sidecars run at all, what their failures delay, and what shows that all have started.

SIDECAR: how restartable init containers show in the status of their pod.
"""

from collections.abc import Iterator

from kubelet_conformance.contract import Container, Finding, Moment, Pod, Sandbox
from kubelet_conformance.contract.applicability import CRI, PODS, STATUS, ByVersion, since
from kubelet_conformance.contract.definition import KEPT, Findings, answered, broken, contract
from kubelet_conformance.contract.patterns import call, done, exited, failed, pod_set, status
from kubelet_conformance.contracts.facts import container as containers
from kubelet_conformance.contracts.facts.backoff import restart_bound
from kubelet_conformance.contracts.facts.kills import stopped_for_itself
from kubelet_conformance.contracts.facts.kubelet import final_phase_is_written, sees_a_ready_runtime
from kubelet_conformance.contracts.facts.pod import TERMINATION_ASKED, at_its_end, new_pod, stop_asked
from kubelet_conformance.contracts.facts.status import UNREADY_AS, carries_on, is_lost
from kubelet_conformance.trace.format.manifests import ContainerSpec, ContainerStatus, Manifest, PodStatus
from kubelet_conformance.trace.world.kubelet_view import informed_by

_ON = since("1.29")
_GATE = "SidecarContainers"
_ON_BY_DEFAULT = (1, 29)
_FORBIDDEN = "InitContainerRestartPolicyForbidden"


def _gate_is_off(m: Moment) -> bool:
    usual = m.kubernetes is not None and m.kubernetes >= _ON_BY_DEFAULT
    return not m.header.feature_gates.get(_GATE, usual)


@contract("SIDECAR-01", on=pod_set(), needs=(CRI, PODS, STATUS), versions=since("1.28"))
def refused_without_the_gate(m: Moment, manifest: Manifest) -> Findings:
    """With the gate SidecarContainers off a pod with sidecars is refused, and nothing of it is started.

    The reason is InitContainerRestartPolicyForbidden.
    """
    pod = new_pod(m)
    if pod is None or pod.source != "api" or not _gate_is_off(m) or not sees_a_ready_runtime(m):
        return None
    if not manifest.spec.sidecars:
        return None

    def ends(now: Moment) -> bool:
        return pod.is_about(now) and now.status is not None and now.status.terminal

    def refused(now: Moment) -> bool:
        return ends(now) and now.status is not None and now.status.reason == _FORBIDDEN

    return answered(
        by=status().where(refused),
        within=final_phase_is_written(m),
        unless=TERMINATION_ASKED.either(status().where(ends)),
        not_before=call("RunPodSandbox").where(pod.asked),
        whole_node=True,
        text=f"pod {pod.name}, which has sidecars, is refused",
    )


@contract(
    "SIDECAR-08",
    on=failed("CreateContainer", "StartContainer", "PullImage"),
    needs=(CRI, PODS),
    versions=_ON,
)
def failing_one_holds_up_no_other(m: Moment, pod: Pod) -> Iterator[Finding]:
    """A sidecar that cannot be started does not keep the sidecars after it from being run again."""
    name = containers.failing_start(m)
    if pod.kind_of(name) != "sidecar" or not containers.to_watch(m) or at_its_end(pod):
        return
    for spec in containers.following(pod, name):
        due = containers.recorded(pod, spec.name)
        if spec.is_sidecar and due is not None and _is_due(due):
            yield answered(
                by=containers.start_of(due.name),
                within=restart_bound(m, due.name),
                unless=containers.HELD_UP.either(exited()),
                text=f"sidecar {due.name} is created again though {name} cannot be started",
            )


def _is_due(container: Container) -> bool:
    """The kubelet knows that it ended by itself, and its sandbox is there."""
    own_end = container.exit is not None and not container.exit.commanded
    is_reported = containers.last_read_as(container, "EXITED")
    return container.state == "exited" and is_reported and own_end and containers.in_place(container)


@contract("SIDECAR-26", on=call("CreateContainer"), needs=(CRI, PODS), versions=_ON)
def ended_apps_prove_nothing(m: Moment, pod: Pod, sandbox: Sandbox) -> Findings:
    """App containers that ended in an old sandbox do not show that a pod with sidecars is initialized.

    In the new sandbox its init containers run, and its sidecars start, before the first app container.
    """
    if pod.spec is None or not sandbox.born or not sandbox.attempt:
        return None
    if pod.kind_of(containers.asked(m).metadata.name) != "app" or not any(containers.sidecars(pod)):
        return None
    apps = list(pod.of_kind("app"))
    if not apps or any(one.sandbox is sandbox or one.state != "exited" for one in apps):
        return None
    if containers.sees_stale_init_record(pod, sandbox):
        return None
    for spec in pod.spec.init_containers or ():
        if not _is_through(pod, spec, sandbox):
            return broken(
                f"{containers.asked(m).metadata.name} is created in the new sandbox "
                f"before {spec.name} is done",
                pod.set_seq,
            )
    return KEPT


def _is_through(pod: Pod, spec: ContainerSpec, sandbox: Sandbox) -> bool:
    own = containers.made_in(pod, spec.name, sandbox)
    if own is None:
        return False
    was_started = own.started_t is not None or own.seen_running
    return was_started if spec.is_sidecar else containers.completed(own)


@contract("SIDECAR-24", on=exited(), needs=(CRI, PODS), versions=ByVersion({"1.29..1.36": True}))
def not_restarted_in_termination(m: Moment, pod: Pod, container: Container) -> Findings:
    """A sidecar that ends while its pod is being terminated is not run again."""
    if container.kind != "sidecar" or pod.termination is None:
        return None
    informed_t = informed_by(m, pod.termination.t)
    if not any(stop_asked(one, informed_t) for one in pod.every_container()):
        return None
    if stopped_for_itself(m, pod, container):
        return None
    return answered(
        by=done("StopPodSandbox"),
        unless=pod_set().where(lambda now: now.pod is not None and not now.pod.wanted),
        not_before=containers.creation_of(container.name),
        text=f"sidecar {container.name} is not created again in a pod that is being terminated",
    )


def _sidecar_statuses(pod: Pod, now: PodStatus) -> list[ContainerStatus]:
    return [one for one in now.init_container_statuses or () if pod.kind_of(one.name) == "sidecar"]


def _app_runs_or_ended(now: PodStatus) -> bool:
    """One that is shown as ended only because its pod has, and was never created, does not count."""
    apps = [one for one in now.container_statuses or () if not is_lost(one)]
    return any(one.state.running or one.state.terminated for one in apps)


def _app_has_run(now: PodStatus) -> bool:
    return _app_runs_or_ended(now) or any(one.last_state.terminated for one in now.container_statuses or ())


def _stays_initialized(m: Moment, pod: Pod) -> bool:
    """Where statuses carry on what was said before, a pod that was initialized stays so."""
    was = pod.status.condition("Initialized") if pod.status is not None else None
    return was is not None and was.status == "True" and carries_on(m)


@contract("SIDECAR-17", on=status(), needs=(PODS, STATUS), versions=_ON)
def counts_for_readiness(m: Moment, pod: Pod, status: PodStatus) -> Findings:
    """The readiness of sidecars counts for ContainersReady, and that they have started for Initialized.

    That a sidecar is no longer started is reported at once, and the condition follows with the next sync.
    """
    reported = _sidecar_statuses(pod, status)
    if not reported or status.terminal:
        return None
    ready, initialized = status.condition("ContainersReady"), status.condition("Initialized")
    unready = [one.name for one in reported if not one.ready]
    if unready and ready and ready.status == "True":
        return broken(f"ContainersReady is True though {unready[0]} is not ready")
    earlier = _sidecar_statuses(pod, pod.status) if pod.status is not None else []
    before = {one.name for one in earlier if one.started}
    late = {one.name for one in reported if not one.started and one.name not in before}
    if not late or initialized is None or initialized.status != "True" or _app_has_run(status):
        return KEPT
    if _stays_initialized(m, pod):
        return KEPT
    unseen = containers.may_have_started(pod, status)
    if late <= unseen.keys():
        return containers.starts_are_reported(unseen)
    return broken(f"Initialized is True though {min(late)} has not started")


@contract("SIDECAR-18", on=status(), needs=(PODS, STATUS), versions=_ON)
def stays_initialized(_: Moment, pod: Pod, status: PodStatus) -> Findings:
    """Once an app container has run, Initialized stays True whatever the sidecars do."""
    condition = status.condition("Initialized")
    if condition is None or not any(containers.sidecars(pod)) or not _app_runs_or_ended(status):
        return None
    if condition.status != "True":
        return broken(f"Initialized is {condition.status} though an app container has run")
    return KEPT


@contract("SIDECAR-19", on=status(), needs=(PODS, STATUS), versions=_ON)
def pending_until_they_started(_: Moment, pod: Pod, status: PodStatus) -> Findings:
    """Sidecars that have not started keep a pod Pending only until an app container has run."""
    reported = _sidecar_statuses(pod, status)
    if not reported or status.terminal or any(one.state == "unknown" for one in pod.of_kind("app")):
        return None  # What the runtime does not know has run, and is shown as an end that was made up.
    if not _app_has_run(status):
        if any(not one.started for one in reported) and status.phase != "Pending":
            return broken(f"phase {status.phase} before the sidecars have started")
        return KEPT
    apps = status.container_statuses or []
    if (
        _phase_is_held(pod, status)
        or not _app_runs_or_ended(status)
        or all(one.state.terminated for one in apps)
    ):
        # All wait to run again: the decision table has Pending then. Or a last phase may follow, after a
        # deadline perhaps: it is held back while anything runs, and what was Pending stays so.
        return None
    inits = [one for one in status.init_container_statuses or () if one not in reported]
    waiting = any(one.state.waiting and not one.last_state.terminated for one in (*apps, *reported))
    waiting = waiting or any(one.state.terminated is None for one in inits)
    if status.phase == "Pending" and not waiting:
        return broken("phase Pending though an app container has run and nothing waits")
    return KEPT


def _phase_is_held(pod: Pod, status: PodStatus) -> bool:
    """Pending may stand for a last phase that is held back: it was written last, or nothing was before."""
    if pod.status is not None:
        return pod.status.phase == "Pending"
    ready = status.condition("Ready")
    return ready is not None and ready.reason in UNREADY_AS.values()
