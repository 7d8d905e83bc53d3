"""Finds the pod, sandbox and container that a record is about, before the world is updated from it."""

from collections.abc import Callable, Sequence

from kubelet_conformance.trace.format.bodies import (
    ClaimsRequest,
    ContainerRecord,
    ContainerRequest,
    ContainerStatusReply,
    CreateContainerReply,
    CreateContainerRequest,
    ExecSyncRequest,
    ListContainersReply,
    ListContainersRequest,
    ListPodSandboxReply,
    ListPodSandboxRequest,
    PodSandboxStatusReply,
    PullImageRequest,
    RunPodSandboxReply,
    RunPodSandboxRequest,
    SandboxRecord,
    SandboxRequest,
    StopContainerRequest,
)
from kubelet_conformance.trace.format.labels import STATIC_SOURCES
from kubelet_conformance.trace.format.manifests import Manifest, PodStatus
from kubelet_conformance.trace.format.records import (
    Body,
    Call,
    Deleted,
    Event,
    Kubelet,
    Message,
    PodChange,
    Probe,
    Record,
    Reply,
    RuntimeEvent,
    Status,
    Unknown,
)
from kubelet_conformance.trace.world.moment import Moment
from kubelet_conformance.trace.world.runtime_reports import CONTAINER_STATES, event_of
from kubelet_conformance.trace.world.views import Container, Execution, Exit, Pod
from kubelet_conformance.trace.world.world import World, seen_at

Resolver = Callable[[Moment], None]


EXIT_AFTER_STOP_SECONDS = 1.0
"""An exit recorded this long after a stop was answered still counts as caused by it."""

LATE_SECONDS = 1.0
"""An answer that takes longer delays its caller (s): most take some milliseconds."""
_REQUESTS: dict[str, type[ContainerRequest | StopContainerRequest | ExecSyncRequest]] = {
    "StopContainer": StopContainerRequest,
    "ExecSync": ExecSyncRequest,
}
_RPC_KEYS_MAX = 1000


class _RpcKeys(dict[str, str]):
    """The key of each rpc, computed once."""

    def __init__(self, how: str) -> None:
        super().__init__()
        self._how = how

    def __missing__(self, rpc: str) -> str:
        key = f"{self._how}:{rpc}"
        if len(self) < _RPC_KEYS_MAX:
            self[rpc] = key
        return key


_CALLED, _DONE, _FAILED = _RpcKeys("call"), _RpcKeys("done"), _RpcKeys("failed")
_LATE, _ALL = _RpcKeys("late"), _RpcKeys("all")


def key_of(record: Record) -> str:
    """The key by which judges subscribe to it; empty for an unknown kind. Its body may add other keys."""
    # isinstance() is slow where it says no: these are msgspec's structs.
    if type(record) is Call:
        return _CALLED[record.rpc]
    if type(record) is Reply:
        return _DONE[record.call.rpc] if record.error is None else _FAILED[record.call.rpc]
    if type(record) is Event:
        return f"event:{record.reason}"
    if type(record) is PodChange or type(record) is Kubelet or type(record) is RuntimeEvent:
        return f"{record.kind}:{record.op}"
    return "" if type(record) is Unknown else record.kind


def moment_of(world: World, record: Record, key: str) -> Moment:
    """The record in its context; `key` is its `key_of`."""
    if type(record) is Reply:
        call, t = record.call, record.t
        keys = (key, _LATE[call.rpc]) if t - call.t > LATE_SECONDS else (key,)
        moment = Moment(world, world.node, record, record.seq, t, keys, call, record)
    elif type(record) is Call:
        moment = Moment(world, world.node, record, record.seq, record.t, (key,), record)
    else:
        moment = Moment(world, world.node, record, record.seq, record.t, (key,))
        _resolve_other(moment, record)
        return moment
    resolve = _RESOLVERS.get(key)
    if resolve is not None:
        resolve(moment)
    return moment


def _resolve_other(moment: Moment, record: Record) -> None:
    """Observe a record that is no call and no reply."""
    if type(record) is Status:
        _resolve_status(moment, record)
    elif type(record) is RuntimeEvent:
        _resolve_runtime_event(moment, record)
    elif type(record) is PodChange:
        _resolve_pod(moment, record)
    elif type(record) is Deleted:
        moment.pod = moment.world.pod_of_object(record.uid)
    elif type(record) is Message:
        event = event_of(moment)
        if event is not None and event.pod_sandbox_status is not None:
            moment.pod = moment.world.pods.get(event.pod_sandbox_status.metadata.uid)
    elif type(record) is Event or type(record) is Probe:
        moment.pod = moment.world.pods.get(record.uid)
    elif type(record) is Kubelet and record.op == "started":
        moment.world.begin_release(record.kubernetes)


def _about_container(moment: Moment) -> None:
    call, world = moment.call, moment.world
    # Each request is read as one type only, so that it is parsed once.
    container_id = moment.request(_REQUESTS.get(call.rpc, ContainerRequest)).container_id
    # One that went while the call was under way is still what the answer is about.
    container = world.containers.get(container_id) or world.called.get(call.id)
    if container is not None:
        moment.container, moment.sandbox, moment.pod = container, container.sandbox, container.pod


def _about_sandbox(moment: Moment) -> None:
    call, world = moment.call, moment.world
    sandbox_id = moment.request(SandboxRequest).pod_sandbox_id
    # As with containers: it may have gone meanwhile.
    sandbox = world.sandboxes.get(sandbox_id) or world.called_sandboxes.get(call.id)
    if sandbox is not None:
        moment.sandbox, moment.pod = sandbox, sandbox.pod


def _about_new_container(moment: Moment) -> None:
    asked, world = moment.request(CreateContainerRequest), moment.world
    sandbox, config = world.sandboxes.get(asked.pod_sandbox_id), asked.sandbox_config
    if sandbox is None and not world.past_known and asked.pod_sandbox_id:
        pod = world.pod_of(config.metadata, seen_at(world.header, config.annotations))
        sandbox = world.stray_sandbox(asked.pod_sandbox_id, pod)
    moment.sandbox = sandbox
    moment.pod = sandbox.pod if sandbox else world.pods.get(config.metadata.uid)


def _about_new_sandbox(moment: Moment) -> None:
    config, world = moment.request(RunPodSandboxRequest).config, moment.world
    world.compare_node(config)
    moment.pod = world.pod_of(config.metadata, seen_at(world.header, config.annotations))


def _about_image(moment: Moment) -> None:
    moment.pod = moment.world.pods.get(moment.request(PullImageRequest).sandbox_config.metadata.uid)


def _about_claims(moment: Moment) -> None:
    """The pod that has the claims, if it is the only one."""
    asked = {(one.namespace, one.name) for one in moment.request(ClaimsRequest).claims}
    users = [pod for pod in moment.world.pods.values() if not asked.isdisjoint(pod.claims)]
    if len(users) == 1:
        moment.pod = users[0]


def _made_sandbox(moment: Moment) -> None:
    _about_new_sandbox(moment)
    moment.sandbox = moment.world.sandboxes.get(moment.response(RunPodSandboxReply).pod_sandbox_id)


def _made_container(moment: Moment) -> None:
    _about_new_container(moment)
    moment.container = moment.world.containers.get(moment.response(CreateContainerReply).container_id)


def _read_sandbox(moment: Moment) -> None:
    _about_sandbox(moment)
    record, sandbox = moment.response(PodSandboxStatusReply).status, moment.sandbox
    if (
        record is not None
        and sandbox is not None
        and sandbox.state == "ready"
        and record.state == "SANDBOX_NOTREADY"
        and not sandbox.stops
    ):
        moment.keys = (*moment.keys, "fact:sandbox-died")
    if not moment.world.readings.knows(moment.reply, moment.world.changed_seq):
        _report_sandboxes(moment, (record,) if record is not None else (), whole=True)


def _read_container(moment: Moment) -> None:
    _about_container(moment)
    record, container = moment.response(ContainerStatusReply).status, moment.container
    if (
        record is not None
        and container is not None
        and record.state == "CONTAINER_EXITED"
        and container.state == "running"
    ):
        moment.exit = reported_exit(moment, container, record)
        moment.keys = (*moment.keys, "fact:exited")
    if record is not None:
        moment.keys = (*moment.keys, f"read:{CONTAINER_STATES.get(record.state, 'unknown')}")
    if not moment.world.readings.knows(moment.reply, moment.world.changed_seq):
        _report_containers(moment, (record,) if record is not None else (), whole=True)


def reported_exit(moment: Moment, container: Container, record: ContainerRecord) -> Exit:
    """The exit of a container as a status or an event reports it now."""
    by_stop = commanded(container, moment.t)
    return Exit(moment.t, moment.seq, code=record.exit_code, reason=record.reason, commanded=by_stop)


def _list_containers(moment: Moment) -> None:
    if moment.request(ListContainersRequest).everything:
        moment.keys = (*moment.keys, _ALL["ListContainers"])
    if not moment.world.readings.knows(moment.reply, moment.world.changed_seq):
        _report_containers(moment, moment.response(ListContainersReply).containers, whole=False)
        moment.keys = (*moment.keys, "reported:list")


def _list_sandboxes(moment: Moment) -> None:
    if moment.request(ListPodSandboxRequest).everything:
        moment.keys = (*moment.keys, _ALL["ListPodSandbox"])
    if not moment.world.readings.knows(moment.reply, moment.world.changed_seq):
        _report_sandboxes(moment, moment.response(ListPodSandboxReply).items, whole=False)
        moment.keys = (*moment.keys, "reported:list")


def _report_containers(moment: Moment, records: Sequence[ContainerRecord], *, whole: bool) -> None:
    """Put the news of containers into the moment, with the key that judges subscribe to."""
    news = moment.world.readings.containers(moment.reply, records, whole=whole)
    if news:
        moment.containers_reported = news
        moment.keys = (*moment.keys, "reported:container")


def _report_sandboxes(moment: Moment, records: Sequence[SandboxRecord], *, whole: bool) -> None:
    """Put the news of sandboxes into the moment, with the key that judges subscribe to."""
    news = moment.world.readings.sandboxes(moment.reply, records, whole=whole)
    if news:
        moment.sandboxes_reported = news
        moment.keys = (*moment.keys, "reported:sandbox")


_ABOUT: dict[str, Resolver] = {
    "StopPodSandbox": _about_sandbox,
    "RemovePodSandbox": _about_sandbox,
    "PodSandboxStatus": _about_sandbox,
    "StartContainer": _about_container,
    "StopContainer": _about_container,
    "RemoveContainer": _about_container,
    "ContainerStatus": _about_container,
    "ExecSync": _about_container,
    "Exec": _about_container,
    "Attach": _about_container,
    "UpdateContainerResources": _about_container,
    "ReopenContainerLog": _about_container,
    "ContainerStats": _about_container,
    "CheckpointContainer": _about_container,
    "CreateContainer": _about_new_container,
    "RunPodSandbox": _about_new_sandbox,
    "PullImage": _about_image,
    "NodePrepareResources": _about_claims,
    "NodeUnprepareResources": _about_claims,
}
"""Finds what a call is about, from its request."""
_RESOLVERS: dict[str, Resolver] = {
    **{f"{how}:{rpc}": about for how in ("call", "done", "failed") for rpc, about in _ABOUT.items()},
    "done:RunPodSandbox": _made_sandbox,
    "done:CreateContainer": _made_container,
    "done:ContainerStatus": _read_container,
    "done:PodSandboxStatus": _read_sandbox,
    "done:ListContainers": _list_containers,
    "done:ListPodSandbox": _list_sandboxes,
}
"""Finds what a call or its end is about, and what a good reply adds, by its key."""


def commanded(container: Container, t: float) -> bool:
    """An exit at `t` comes while the kubelet kills the container: in its preStop hook, or with the stop."""
    return is_stopped(container, t) or any(_lasts(hook.end_t, t) for hook in _pre_stops(container))


def is_stopped(container: Container, t: float) -> bool:
    """An exit at `t` follows a stop of the container or of its sandbox."""
    stops = [*container.stops, *(container.sandbox.stops if container.sandbox else ())]
    return any(_lasts(stop.end_t, t) for stop in stops)


def _lasts(end_t: float | None, t: float) -> bool:
    return end_t is None or t - end_t <= EXIT_AFTER_STOP_SECONDS


def _pre_stops(container: Container) -> list[Execution]:
    """The runs of its preStop hook: all but the first, where its postStart hook has the same command."""
    lifecycle = container.spec.lifecycle if container.spec is not None else None
    hook, first = (lifecycle.pre_stop, lifecycle.post_start) if lifecycle is not None else (None, None)
    if hook is None or hook.exec is None:
        return []
    found = [one for one in container.hooks if one.cmd == hook.exec.command]
    return found[1:] if first is not None and first.exec == hook.exec else found


def _resolve_runtime_event(moment: Moment, record: RuntimeEvent) -> None:
    world = moment.world
    moment.container = world.containers.get(record.container_id)
    moment.sandbox = moment.container.sandbox if moment.container else world.sandboxes.get(record.sandbox_id)
    moment.pod = moment.sandbox.pod if moment.sandbox else moment.container.pod if moment.container else None
    container, sandbox = moment.container, moment.sandbox
    if record.op in {"exited", "oom"} and container and container.state in {"running", "created", "unseen"}:
        reason = "OOMKilled" if record.op == "oom" else ""
        by_stop = commanded(container, moment.t)
        moment.exit = Exit(moment.t, moment.seq, code=record.exit_code, reason=reason, commanded=by_stop)
        moment.keys = (*moment.keys, "fact:exited")
    elif record.op == "sandbox-died" and sandbox and sandbox.state == "ready":
        moment.keys = (*moment.keys, "fact:sandbox-died")


def _resolve_pod(moment: Moment, record: PodChange) -> None:
    world = moment.world
    if record.op == "remove":
        name = full_name(world, record.source, record.name)
        # An object that goes at the API server is no static pod, but may be the mirror of one.
        named = _of_such_a_source(world, record.source, record.namespace or "default", name)
        moment.pod = world.pods.get(record.uid) or named
        return
    manifest = moment.manifest = Body(record.pod).view(Manifest)
    meta = manifest.metadata
    namespace, name = meta.namespace or "default", full_name(world, record.source, meta.name)
    if meta.uid:
        moment.pod = world.pods.get(meta.uid)
        return
    pod = _of_such_a_source(world, record.source, namespace, name)
    former = _of_same_content(world, record.source, namespace, name, manifest)
    if pod is None or not pod.wanted or pod is former:
        moment.pod = former
    elif former is not None or pod.uid or pod.static:
        moment.pod, moment.replaced = former, pod
    else:
        moment.pod = pod


def _of_same_content(world: World, source: str, namespace: str, name: str, manifest: Manifest) -> Pod | None:
    """The pod that this manifest stands for again: the same content has the same UID (STATIC-02)."""
    key = namespace, name
    static = (pod for pod in world.pods.values() if pod.static and (pod.namespace, pod.name) == key)
    named = [pod for pod in (world.names.get(key),) if pod is not None and pod.wanted and pod.static]
    alike = (*named, *static, *(pod for pod in world.edited.get(key, ()) if not pod.uid))
    return next((pod for pod in alike if pod.source == source and pod.manifest == manifest), None)


def _of_such_a_source(world: World, source: str, namespace: str, name: str) -> Pod | None:
    """The pod of that name, but no API pod for a manifest, which may stand beside it, nor the reverse."""
    static, named = source in STATIC_SOURCES, world.names.get((namespace, name))
    if named is None or named.static is static:
        return named
    alike = (pod for pod in world.pods.values() if (pod.namespace, pod.name) == (namespace, name))
    return next((pod for pod in alike if pod.static is static and pod.wanted), None)


def full_name(world: World, source: str, name: str) -> str:
    """A static pod is called <manifest name>-<node> everywhere but in its manifest (config/common.go)."""
    node = world.header.node
    return f"{name}-{node.lower()}" if node and source in STATIC_SOURCES else name


def _resolve_status(moment: Moment, record: Status) -> None:
    moment.status = Body(record.status).view(PodStatus)
    pod = moment.world.pod_of_object(record.uid, record.namespace, record.name)
    moment.pod = _reported_version(moment, pod) if pod is not None and pod.static else pod


def _reported_version(moment: Moment, pod: Pod) -> Pod:
    """A version of a static pod may have the mirror of another one for a while.

    Its containers show which it is, by their ids or else by names that only the newest version has. One that
    shows none is the newest's, where that has begun to run and the other has gone.
    """
    every = moment.status.every_container if moment.status is not None else ()
    key = pod.namespace, pod.name
    known = (moment.world.containers.get(one.runtime_id) for one in every)
    for other in (container.pod for container in known if container is not None):
        if other is not None and other.static and (other.namespace, other.name) == key:
            return other
    newest = moment.world.names.get(key)
    if newest is None or not newest.static:
        return pod
    has_begun = bool(newest.sandboxes) and not pod.wanted and not any(one.runtime_id for one in every)
    is_named = {one.name for one in every} == _names(newest) != _names(pod)
    return newest if has_begun or is_named else pod


def _names(pod: Pod) -> set[str]:
    return set(pod.spec.entries) if pod.spec is not None else set()
