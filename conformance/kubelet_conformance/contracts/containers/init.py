"""INIT: the order in which regular init containers run, and when they run again."""

from collections.abc import Iterator

from kubelet_conformance.contract import Container, Exit, Finding, Manifest, Moment, Pod, Sandbox
from kubelet_conformance.contract.applicability import CRI, PODS
from kubelet_conformance.contract.definition import KEPT, Findings, answered, broken, contract
from kubelet_conformance.contract.patterns import call, exited
from kubelet_conformance.contracts.facts import container as containers
from kubelet_conformance.contracts.facts.backoff import no_pull, restart_bound
from kubelet_conformance.contracts.facts.pod import TERMINATION_ASKED, at_its_end, left_created
from kubelet_conformance.contracts.tables.container import INITS, InitSeen
from kubelet_conformance.trace.format.manifests import ContainerSpec
from kubelet_conformance.trace.world.kubelet_view import receives_events


def _earlier_inits(pod: Pod, name: str) -> tuple[ContainerSpec, ...]:
    """The regular init containers that come before this regular init or app container."""
    kind, inits = pod.kind_of(name), containers.regular_inits(pod)
    if kind == "app":
        return inits
    return inits[: [spec.name for spec in inits].index(name)] if kind == "init" else ()


def _done_with(pod: Pod, name: str, sandbox: Sandbox | None) -> bool:
    """The init container completed in this sandbox, or a later container proves that it did."""
    own = containers.made_in(pod, name, sandbox)
    if own is not None and containers.completed(own):
        return True
    return any(
        containers.made_in(pod, spec.name, sandbox)
        for spec in containers.following(pod, name)
        if not spec.is_sidecar or own is None
    )


def _inits_in(pod: Pod, sandbox: Sandbox | None) -> list[Container]:
    """The newest instances of the regular init containers that were created in this sandbox."""
    newest = [pod.newest(spec.name) for spec in containers.regular_inits(pod)]
    return [one for one in newest if one is not None and one.sandbox is sandbox]


@contract("INIT-01", on=call("CreateContainer"), needs=(CRI, PODS))
def one_at_a_time_in_order(m: Moment, pod: Pod, sandbox: Sandbox) -> Findings:
    """Init containers run one after the other, in the order of the spec, each until it has exited with 0.

    App containers come once the last of them has.
    """
    if not pod.born or not sandbox.born:
        return None
    name = containers.asked(m).metadata.name
    earlier = _earlier_inits(pod, name)
    if not earlier or left_created(pod, sandbox) or containers.sees_stale_init_record(pod, sandbox):
        return None
    for spec in earlier:
        if not _done_with(pod, spec.name, sandbox):
            return broken(
                f"{name} is created, expected init container {spec.name} to complete first", pod.set_seq
            )
    return KEPT


@one_at_a_time_in_order.clause("next-follows", on=containers.OWN_END)
def _(m: Moment, pod: Pod, container: Container, ended: Exit) -> Findings:
    """The container after an init container is created once that one has completed."""
    if container.kind != "init":
        return None
    sandbox = container.sandbox
    if sandbox is None or sandbox.state != "ready" or sandbox.stops:
        return None
    failed = ended.code != 0 or ended.reason == "OOMKilled"
    if INITS.decide(InitSeen("exited", pod.restart_policy, failed=failed)) != "go on":
        return None
    missing = containers.first_missing(pod, container.name, sandbox)
    if missing is None or no_pull(m, pod, missing):
        return None
    if at_its_end(pod) or containers.sees_stale_init_record(pod, sandbox):
        return None  # What was stopped for the new sandbox ended well, and is not run again.
    return answered(
        by=containers.start_of(missing),
        within=restart_bound(m, missing),
        unless=containers.HELD_UP,
        text=f"{missing} is created after {container.name} has completed",
    )


@contract("INIT-02", on=call("CreateContainer"), needs=(CRI, PODS))
def end_was_read_before_next(m: Moment, pod: Pod, sandbox: Sandbox) -> Findings:
    """What comes after an init container is created only when the kubelet has read that it exited."""
    if receives_events(m):
        return None
    name = containers.asked(m).metadata.name
    if containers.made_in(pod, name, sandbox) or containers.sees_stale_init_record(pod, sandbox):
        return None
    before = (containers.made_in(pod, spec.name, sandbox) for spec in _earlier_inits(pod, name))
    standing = [one for one in before if one is not None and one.born and one.state != "removed"]
    for one in standing:
        if not one.listed_exited and (one.record is None or one.record.state != "CONTAINER_EXITED"):
            return broken(f"{name} is created before the kubelet has read that {one.name} exited", one.create)
    return KEPT if standing else None


@contract("INIT-03", on=exited(), needs=(CRI, PODS))
def nothing_else_meanwhile(_: Moment, pod: Pod, container: Container) -> Findings:
    """While an init container runs, only ephemeral containers and sidecars before it may be created."""
    if container.kind != "init" or container.start is None or container.started_t is None:
        return None
    if containers.sees_stale_init_record(pod, container.sandbox):
        return None
    for other in _must_wait(pod, container):
        if other.create and other.create.seq > container.start.seq and other.sandbox is container.sandbox:
            return broken(f"{other.name} was created while {container.name} ran", other.create.seq)
    return KEPT


@nothing_else_meanwhile.clause("at-once", on=call("CreateContainer"))
def _(m: Moment, pod: Pod, sandbox: Sandbox) -> Findings:
    """No later container is created while an init container runs."""
    if containers.sees_stale_init_record(pod, sandbox):
        return None
    name = containers.asked(m).metadata.name
    for init in _inits_in(pod, sandbox):
        if init.state == "running" and name in _later(pod, init):
            return broken(f"{name} is created while {init.name} runs", init.create)
    return None


def _later(pod: Pod, init: Container) -> set[str]:
    """What may not be created while it runs, itself included."""
    return {spec.name for spec in (*containers.following(pod, init.name), *containers.regular_inits(pod))}


def _must_wait(pod: Pod, init: Container) -> Iterator[Container]:
    later = _later(pod, init)
    return (other for other in pod.every_container() if other is not init and other.name in later)


@contract("INIT-04", on=call("CreateContainer"), needs=(CRI, PODS))
def removed_records_do_not_count(m: Moment, pod: Pod, sandbox: Sandbox) -> Findings:
    """An init container that completed is not run again because its record was removed.

    A later container with a record in the sandbox is proof enough.
    """
    gone = [one for one in _inits_in(pod, sandbox) if one.state == "removed" and containers.completed(one)]
    proven = [one.name for one in gone if _recorded_after(pod, one, sandbox)]
    if not proven:
        return None
    name = containers.asked(m).metadata.name
    if name in proven:
        return broken(f"{name} had completed and is run again, with a later container on record", pod.set_seq)
    return KEPT if pod.kind_of(name) in {"init", "app"} else None


def _recorded_after(pod: Pod, init: Container, sandbox: Sandbox) -> bool:
    after = (
        containers.recorded(pod, spec.name)
        for spec in containers.following(pod, init.name)
        if not spec.is_sidecar
    )
    return any(one is not None and one.sandbox is sandbox for one in after)


@contract("INIT-05", on=call("CreateContainer"), needs=(CRI, PODS))
def running_app_ends_initialization(m: Moment, pod: Pod, sandbox: Sandbox) -> Findings:
    """While any app container runs no regular init container is created, whatever init records are left."""
    if sandbox.state != "ready" or not containers.regular_inits(pod):
        return None
    apps = (one for one in pod.of_kind("app") if one.sandbox is sandbox and one.state == "running")
    running = next(apps, None)
    if running is None:
        return None
    name = containers.asked(m).metadata.name
    if pod.kind_of(name) == "init":
        return broken(f"init container {name} is created while {running.name} runs", running.create)
    return KEPT


@contract("INIT-06", on=call("CreateContainer"), needs=(CRI, PODS))
def all_records_gone_begins_anew(m: Moment, pod: Pod, sandbox: Sandbox) -> Findings:
    """If all init and app records are gone and the sandbox is ready, init starts again with the first."""
    if pod.spec is None or sandbox.state != "ready":
        return None
    inits = pod.spec.init_containers or []
    if not inits:
        return None
    is_known, name = False, containers.asked(m).metadata.name
    for spec in (*inits, *pod.spec.containers):
        one = containers.made_in(pod, spec.name, sandbox)
        if one is not None and one.state != "removed":
            return None
        is_known = is_known or one is not None
    if not is_known or pod.kind_of(name) == "ephemeral":
        return None
    if name != inits[0].name:
        return broken(f"{name} is created though every record is gone, expected {inits[0].name}", pod.set_seq)
    return KEPT


@contract("INIT-10", on=call("CreateContainer"), needs=(CRI, PODS))
def success_is_not_rerun(m: Moment, pod: Pod, sandbox: Sandbox) -> Findings:
    """An init container that exited with 0 is not run again in its sandbox, even under policy Always."""
    if sandbox.state != "ready" or sandbox.stops:
        return None
    name = containers.asked(m).metadata.name
    finished = [one for one in _inits_in(pod, sandbox) if one.state == "exited" and _succeeded(one)]
    for one in finished:
        if one.name == name:
            return broken(f"{name} is created again though it exited with 0", one.exit)
    return KEPT if finished else None


def _succeeded(init: Container) -> bool:
    """The init container exited with 0 by its latest record; of one that it lost the runtime says 255."""
    reported, ended = init.record, init.exit
    if reported is not None and reported.state == "CONTAINER_EXITED":
        return containers.completed(init) and reported.exit_code == 0
    return containers.completed(init) and ended is not None and ended.code == 0


@contract("INIT-12", on=call("CreateContainer"), needs=(CRI, PODS))
def new_sandbox_runs_init_again(m: Moment, pod: Pod, sandbox: Sandbox) -> Findings:
    """In a sandbox that replaces another one, every init container runs again before the app containers."""
    if not sandbox.born or not sandbox.attempt:
        return None
    name = containers.asked(m).metadata.name
    inits = list(containers.regular_inits(pod))
    if not inits or pod.kind_of(name) != "app" or left_created(pod, sandbox):
        return None
    if containers.sees_stale_init_record(pod, sandbox):
        return None
    for spec in inits:
        own = containers.made_in(pod, spec.name, sandbox)
        if own is None or not containers.completed(own):
            return broken(
                f"{name} is created in the new sandbox, where {spec.name} has not completed", pod.set_seq
            )
    return KEPT


@contract("INIT-13", on=containers.FREE_CHANGE, needs=(CRI, PODS))
def changed_init_image_restarts_nothing(_: Moment, pod: Pod, manifest: Manifest) -> Iterator[Finding]:
    """A changed image of a regular init container restarts nothing in a pod whose app containers run."""
    if pod.spec is None:
        return
    new = {spec.name: spec.image for spec in manifest.spec.init_containers or ()}
    changed = [spec for spec in containers.regular_inits(pod) if new.get(spec.name, spec.image) != spec.image]
    if not changed or manifest.spec.containers != pod.spec.containers:
        return
    for one in pod.of_kind("app"):
        spec = one.spec
        if one.state == "running" and spec and not spec.liveness_probe and not spec.startup_probe:
            yield answered(
                by=TERMINATION_ASKED,
                unless=containers.CALLED_OFF.either(exited()),
                not_before=containers.stop_of(one).either(containers.creation_of_kind("init")),
                text=f"{one.name} runs on with a new image of {changed[0].name}",
            )


@contract("INIT-20", on=exited(), needs=(CRI, PODS))
def no_hooks_or_probes(_: Moment, container: Container) -> Findings:
    """Hooks and probes of a regular init container are ignored: nothing is executed in it."""
    if container.kind != "init" or not container.born or container.spec is None:
        return None
    spec = container.spec
    hooks = (spec.lifecycle.post_start, spec.lifecycle.pre_stop)
    given = any((*hooks, spec.liveness_probe, spec.readiness_probe, spec.startup_probe))
    if not given or container.hooks or container.probes:
        return None
    return KEPT


@no_hooks_or_probes.clause("executed", on=call("ExecSync"))
def _(_: Moment, container: Container) -> Findings:
    """No command is executed in a regular init container."""
    if container.kind != "init":
        return None
    return broken(f"a command is executed in init container {container.name}", container.create)
