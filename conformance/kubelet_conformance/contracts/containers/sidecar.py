"""SIDECAR: when restartable init containers are started and restarted, and what waits for them."""

from collections.abc import Iterator

from kubelet_conformance.contract import Container, Finding, Manifest, Moment, Note, Pod, PodSpec, Sandbox
from kubelet_conformance.contract.applicability import CRI, PODS, since
from kubelet_conformance.contract.definition import KEPT, Findings, answered, broken, contract, observer
from kubelet_conformance.contract.patterns import call, done, exited, failed, happened, pod_set
from kubelet_conformance.contracts.facts.backoff import no_pull, restart_bound, retry_bound
from kubelet_conformance.contracts.facts.container import (
    CALLED_OFF,
    FREE_CHANGE,
    HELD_UP,
    OWN_END,
    REMAKING,
    asked,
    completed,
    creation_of,
    first_missing,
    following,
    in_place,
    left_created_state,
    made_in,
    recorded,
    sees_stale_init_record,
    sidecars,
    start_of,
    stop_of,
    to_watch,
    unread_end,
)
from kubelet_conformance.contracts.facts.kills import reasons
from kubelet_conformance.contracts.facts.pod import (
    another_image,
    at_its_end,
    hook_command,
    left_created,
    stop_asked,
    was_seen_started,
)
from kubelet_conformance.contracts.facts.probe import PROBES, has_other_probes, probe_at
from kubelet_conformance.contracts.facts.timing import REACTION, TOGETHER
from kubelet_conformance.contracts.tables.container import INITS, InitSeen
from kubelet_conformance.trace.format.bodies import ExecSyncReply
from kubelet_conformance.trace.world.kubelet_view import receives_events

_ON = since("1.29")


def _before(pod: Pod, name: str) -> list[str]:
    """The sidecars that come before this init or app container."""
    names = [spec.name for spec in sidecars(pod)]
    if pod.kind_of(name) == "app":
        return names
    return [one for one in names if any(spec.name == name for spec in following(pod, one))]


def _app_runs(pod: Pod, sandbox: Sandbox | None) -> bool:
    return any(one.sandbox is sandbox and one.state == "running" for one in pod.of_kind("app"))


def _apps_made(pod: Pod, sandbox: Sandbox | None) -> bool:
    return any(one.sandbox is sandbox for one in pod.of_kind("app"))


def _ended(m: Moment) -> Container | None:
    """The sidecar that ended by itself here (OWN_END), in a pod that is not being terminated."""
    container, pod = m.container, m.pod
    if container is None or pod is None or m.exit is None or container.kind != "sidecar":
        return None
    seen = InitSeen("exited", pod.restart_policy, sidecar=True, failed=m.exit.code != 0)
    comes_back = INITS.decide(seen) == "start" and not at_its_end(pod)
    return container if comes_back and in_place(container) else None


class _Startup(Note):
    """What the startup probe of a sidecar's instance has found."""

    passed: bool = False


@contract("SIDECAR-02", on=call("CreateContainer"), needs=(CRI, PODS), versions=_ON)
def next_once_it_runs(m: Moment, pod: Pod, sandbox: Sandbox) -> Findings:
    """What comes after a sidecar is created once the kubelet has read that it runs.

    If it has a startup probe, that has succeeded by then. Readiness and liveness do not matter.
    """
    if not sandbox.born or receives_events(m):
        return None
    name = asked(m).metadata.name
    earlier = [] if sees_stale_init_record(pod, sandbox) else _before(pod, name)
    if not earlier or made_in(pod, name, sandbox) or _apps_made(pod, sandbox) or left_created(pod, sandbox):
        return None
    earlier = [one for one in earlier if not _restart_failed(pod, one, name, sandbox)]
    for sidecar in (made_in(pod, one, sandbox) for one in earlier):
        if sidecar is None or not (sidecar.started_t is not None or sidecar.seen_running):
            return broken(f"{name} is created before the sidecars {earlier} were started", pod.set_seq)
        if sidecar.attempt == 0 and not sidecar.seen_running:
            return broken(f"{name} is created before it is read that {sidecar.name} runs", sidecar.start)
        if _awaits_startup(sidecar):
            return broken(
                f"{name} is created before the startup probe of {sidecar.name} succeeded", sidecar.start
            )
    return KEPT


def _restart_failed(pod: Pod, sidecar: str, name: str, sandbox: Sandbox) -> bool:
    """Another instance of the sidecar could not be started, and an init container after it is done.

    The kubelet goes on by the last init container alone, and a sidecar that fails to start is skipped
    (computeInitContainerActions, SyncPod).
    """
    newest = made_in(pod, sidecar, sandbox)
    if newest is None or not newest.attempt or not newest.start_failed:
        return False
    last = {name, *(spec.name for spec in following(pod, name))}
    between = (made_in(pod, spec.name, sandbox) for spec in following(pod, sidecar) if spec.name not in last)
    return any(one is not None and one.kind == "init" and completed(one) for one in between)


def _awaits_startup(container: Container) -> bool:
    """The sidecar has an exec startup probe, and no instance of it has passed it."""
    spec, pod = container.spec, container.pod
    probe = spec.startup_probe if spec else None
    if probe is None or probe.exec is None or pod is None:
        return False
    return not any(one.note(_Startup).passed for one in pod.containers.get(container.name, ()))


@observer(on=done("ExecSync"))
def _(m: Moment, container: Container) -> None:
    probe = container.spec.startup_probe if container and container.spec else None
    if probe is None or probe.exec is None:
        return
    probed = container.probes.get(tuple(probe.exec.command))
    if probed is not None and probed.call is m.call and m.response(ExecSyncReply).exit_code == 0:
        container.note(_Startup).passed = True


@next_once_it_runs.clause("next-follows", on=done("StartContainer"))
def _(m: Moment, pod: Pod, container: Container) -> Findings:
    """The container after a sidecar is created soon after the sidecar runs, unless it has a startup probe."""
    if container.kind != "sidecar" or not to_watch(m):
        return None
    sandbox, spec = container.sandbox, container.spec
    if sandbox is None or spec is None or not in_place(container) or sees_stale_init_record(pod, sandbox):
        return None
    seen = InitSeen("running", pod.restart_policy, sidecar=True, started=spec.startup_probe is None)
    if INITS.decide(seen) != "go on":
        return None
    missing = first_missing(pod, container.name, sandbox)
    if missing is None or spec.lifecycle.post_start is not None or no_pull(m, pod, missing):
        return None
    return answered(
        by=start_of(missing),
        within=max(REACTION, restart_bound(m, missing)),
        unless=HELD_UP.either(exited()),
        text=f"{missing} is created after {container.name} runs",
    )


@contract("SIDECAR-03", on=call("CreateContainer"), needs=(CRI, PODS), versions=_ON)
def post_start_comes_first(m: Moment, pod: Pod) -> Findings:
    """Nothing after a sidecar is created before its postStart hook is over."""
    name = asked(m).metadata.name
    kept = False
    for one in _before(pod, name):
        sidecar = recorded(pod, one)
        command = hook_command(sidecar, "post_start") if sidecar else None
        if sidecar is None or command is None or sidecar.state != "running" or made_in(pod, name, m.sandbox):
            continue
        hooks = [hook for hook in sidecar.hooks if hook.cmd == command]
        if not hooks and not sidecar.born:
            continue
        if not hooks or hooks[0].end_t is None:
            return broken(f"{name} is created before the postStart hook of {one} is over", sidecar.start)
        kept = True
    return KEPT if kept else None


_STOP_OF_AN_APP = call("StopContainer").where(lambda m: m.container is not None and m.container.kind == "app")


def _apps_go(pod: Pod) -> bool:
    """App containers are being stopped, or may be at any time: the pod has a deadline."""
    deadline = pod.spec is not None and pod.spec.active_deadline_seconds is not None
    return deadline or any(one.state == "running" and stop_asked(one) for one in pod.of_kind("app"))


def _fails_itself(m: Moment) -> bool:
    """A probe or hook of its own, or what else the trace shows, is reason enough to stop the container."""
    is_probed_unseen = m.container is not None and has_other_probes(m.container, "liveness", "startup")
    return is_probed_unseen or bool(reasons(m))


@contract("SIDECAR-06", on=done("StopContainer"), needs=(CRI, PODS), versions=_ON)
def killed_one_comes_back_alone(m: Moment, pod: Pod, container: Container) -> Findings:
    """A sidecar that is killed for its probe is created again, and nothing else is stopped."""
    if container.kind != "sidecar":
        return None
    if not to_watch(m) or not in_place(container) or not _app_runs(pod, container.sandbox) or _apps_go(pod):
        return None
    since_t = m.t

    def is_for_this(now: Moment) -> bool:
        return now.t - since_t <= TOGETHER and not _fails_itself(now)

    return answered(
        by=start_of(container.name),
        within=restart_bound(m, container.name),
        unless=CALLED_OFF.either(
            exited(), _STOP_OF_AN_APP.where(lambda now: not is_for_this(now)), another_image(container)
        ),
        not_before=_STOP_OF_AN_APP.where(is_for_this),
        text=f"sidecar {container.name} is created again",
    )


@killed_one_comes_back_alone.clause("alone", on=PROBES)
def _(m: Moment, pod: Pod) -> Findings:
    """A sidecar whose liveness probe fails is stopped, and no app container before it."""
    probed = probe_at(m)
    if probed is None or probed.name != "liveness" or probed.outcome != "failure":
        return None
    container = probed.container
    if container.kind != "sidecar" or not probed.reached or not to_watch(m) or not in_place(container):
        return None
    if not _app_runs(pod, container.sandbox) or container.state != "running" or at_its_end(pod):
        return None
    if _apps_go(pod) or container.spec is None or container.spec.lifecycle.pre_stop is not None:
        return None
    return answered(
        by=stop_of(container),
        within=REACTION,
        unless=CALLED_OFF.either(exited(), pod_set(), _STOP_OF_AN_APP.where(_fails_itself)),
        not_before=_STOP_OF_AN_APP.where(lambda now: not _fails_itself(now)),
        text=f"sidecar {container.name} is stopped, alone, after its liveness probe failed",
    )


@contract("SIDECAR-07", on=OWN_END, needs=(CRI, PODS), versions=_ON)
def exited_one_is_restarted(m: Moment, pod: Pod) -> Findings:
    """A sidecar that exits is restarted while its pod is to run, whatever its code and the pod's policy."""
    container = _ended(m)
    if container is None or not _app_runs(pod, container.sandbox):
        return None
    return _comes_back(m, container)


def _comes_back(m: Moment, container: Container) -> Finding:
    return answered(
        by=start_of(container.name),
        within=restart_bound(m, container.name),
        unless=HELD_UP.either(
            exited().where(lambda now: now.container is not container), another_image(container)
        ),
        text=f"sidecar {container.name} is created again",
    )


@exited_one_is_restarted.clause("end-was-read", on=REMAKING)
def _(m: Moment, pod: Pod) -> Findings:
    """A sidecar is not created again before the kubelet has read its end."""
    one = recorded(pod, asked(m).metadata.name)
    if one is None or one.kind != "sidecar" or not unread_end(m, one):
        return None
    return broken(f"sidecar {one.name} is created again though the kubelet has not read its end", one.start)


@contract("SIDECAR-09", on=happened("removed"), needs=(CRI, PODS), versions=_ON)
def lost_one_is_started(m: Moment, pod: Pod, container: Container) -> Findings:
    """After initialization a sidecar whose record was lost is started again."""
    if container.kind != "sidecar" or not to_watch(m):
        return None
    if container is not pod.newest(container.name) or not _app_runs(pod, container.sandbox):
        return None
    return answered(
        by=start_of(container.name),
        within=REACTION,
        unless=HELD_UP.either(exited()),
        text=f"sidecar {container.name} is created again after its record was lost",
    )


@contract("SIDECAR-10", on=OWN_END, needs=(CRI, PODS), versions=_ON)
def kept_up_during_init(m: Moment, pod: Pod) -> Findings:
    """A sidecar that exits while a later init container runs is restarted while that one runs."""
    container = _ended(m)
    if container is None or _apps_made(pod, container.sandbox):
        return None
    later = {spec.name for spec in following(pod, container.name)}
    inits = (one for one in pod.of_kind("init") if one.name in later and one.sandbox is container.sandbox)
    if not any(one.state == "running" for one in inits):
        return None
    return _comes_back(m, container)


@contract("SIDECAR-20", on=FREE_CHANGE, needs=(CRI, PODS), versions=since("1.32"))
def changed_image_restarts(_: Moment, pod: Pod, manifest: Manifest) -> Iterator[Finding]:
    """A running sidecar whose image changed is stopped and created again, under every policy."""
    if manifest.metadata.deletion_timestamp:
        return
    for new in manifest.spec.init_containers or ():
        old, newest = pod.container_spec(new.name), pod.newest(new.name)
        if old is None or newest is None or not old.is_sidecar or old.image == new.image:
            continue
        if newest.state == "running" and in_place(newest) and _app_runs(pod, newest.sandbox):
            yield answered(
                by=stop_of(newest),
                within=REACTION,
                unless=HELD_UP.either(exited()),
                not_before=creation_of(new.name),
                text=f"sidecar {new.name} is stopped for its new image",
            )


@contract("SIDECAR-21", on=failed("StartContainer"), needs=(CRI, PODS), versions=_ON)
def created_one_is_started_again(m: Moment) -> Findings:
    """A sidecar that was created but could not be started gets a new instance."""
    container = m.container if m.container is not None and not was_seen_started(m.container) else None
    if container is None or container.kind != "sidecar" or not to_watch(m) or not in_place(container):
        return None
    return answered(
        by=start_of(container.name),
        within=retry_bound(m, container.name),
        unless=HELD_UP.either(left_created_state(container), another_image(container)),
        text=f"sidecar {container.name} is created again after its start failed",
    )


@contract("SIDECAR-22", on=REMAKING, needs=(CRI, PODS), versions=_ON)
def unknown_one_is_stopped_first(m: Moment, pod: Pod) -> Findings:
    """A sidecar whose state is unknown is stopped before another instance is created."""
    newest = recorded(pod, asked(m).metadata.name)
    if newest is None or newest.kind != "sidecar" or newest.record is None or newest.sandbox is not m.sandbox:
        return None
    if newest.record.state != "CONTAINER_UNKNOWN":
        return None
    if not any(stop.is_done for stop in newest.stops):
        return broken(f"{newest.name} is created before its unknown instance was stopped", newest.start)
    return KEPT


@contract("SIDECAR-23", on=call("CreateContainer"), needs=(CRI, PODS), versions=_ON)
def first_init_opens_a_sandbox(m: Moment, pod: Pod, spec: PodSpec, sandbox: Sandbox) -> Findings:
    """The first container of a sandbox is the first of the init containers, whether a sidecar or not.

    A pod whose app containers have all succeeded for good gets no new sandbox.
    """
    if not sandbox.born or not any(sidecars(pod)):
        return None
    if any(one.sandbox is sandbox for one in pod.every_container()):
        return None
    name, first = asked(m).metadata.name, (spec.init_containers or [])[0].name
    if name != first and pod.kind_of(name) != "ephemeral":
        return broken(f"{name} is created first in its sandbox, expected {first}", pod.set_seq)
    return KEPT


@first_init_opens_a_sandbox.clause("finished", on=call("RunPodSandbox"))
def _(_: Moment, pod: Pod) -> Findings:
    """A pod with sidecars whose app containers are done gets no new sandbox."""
    if not pod.born or not any(sidecars(pod)) or not at_its_end(pod):
        return None
    apps = [pod.newest(spec.name) for spec in pod.spec.containers] if pod.spec else []
    if any(one is None or one.record is None or one.record.state != "CONTAINER_EXITED" for one in apps):
        return None
    if any(one.exit is not None and one.exit.commanded for one in apps if one is not None):
        return None  # It was stopped for the new sandbox, and the sync that did so goes on.
    return broken("a new sandbox is run for a pod whose app containers are done", pod.set_seq)
