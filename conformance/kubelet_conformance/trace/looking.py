"""Find the entities a record is about, before anything is learned from it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kubelet_conformance.trace.bodies import (
    ContainerRequest,
    ContainerStatusReply,
    CreateContainerReply,
    CreateContainerRequest,
    ExecSyncRequest,
    PodSandboxStatusReply,
    PullImageRequest,
    RunPodSandboxReply,
    RunPodSandboxRequest,
    SandboxRequest,
    StopContainerRequest,
)
from kubelet_conformance.trace.manifests import Manifest, PodStatus
from kubelet_conformance.trace.moment import Moment
from kubelet_conformance.trace.records import (
    Body,
    Call,
    Deleted,
    Event,
    Kubelet,
    PodChange,
    Reply,
    RuntimeEvent,
    Status,
)
from kubelet_conformance.trace.views import Exit

if TYPE_CHECKING:
    from collections.abc import Callable

    from kubelet_conformance.trace.records import Record
    from kubelet_conformance.trace.views import Container, Pod
    from kubelet_conformance.trace.world import World

    Sight = Callable[[Moment], None]

__all__ = ("EXIT_AFTER_STOP_SECONDS", "STATIC_SOURCES", "full_name", "keys_of", "look")

EXIT_AFTER_STOP_SECONDS = 1.0
"""An exit recorded this long after a stop was answered still counts as caused by it."""

STATIC_SOURCES = frozenset({"file", "http"})
"""Where static pods come from."""
_REQUESTS: dict[str, type[ContainerRequest | StopContainerRequest | ExecSyncRequest]] = {
    "StopContainer": StopContainerRequest,
    "ExecSync": ExecSyncRequest,
}
_RPC_KEYS: dict[str, tuple[tuple[str], tuple[str], tuple[str]]] = {}
_RPC_KEYS_MAX = 1000


def keys_of(record: Record) -> tuple[str, ...]:
    """The words a record answers to, without what looking at its body may add."""
    if type(record) is Call:
        return (_RPC_KEYS.get(record.rpc) or _rpc_keys(record.rpc))[0]
    if type(record) is Reply:
        rpc = record.call.rpc
        return (_RPC_KEYS.get(rpc) or _rpc_keys(rpc))[1 if record.error is None else 2]
    # isinstance() is slow where it says no: these are msgspec's structs.
    if type(record) is Event:
        return (f"event:{record.reason}",)
    if type(record) is PodChange or type(record) is Kubelet or type(record) is RuntimeEvent:
        return (f"{record.kind}:{record.op}",)
    return (record.kind,)


def _rpc_keys(rpc: str) -> tuple[tuple[str], tuple[str], tuple[str]]:
    keys = (f"call:{rpc}",), (f"done:{rpc}",), (f"failed:{rpc}",)
    if len(_RPC_KEYS) < _RPC_KEYS_MAX:
        _RPC_KEYS[rpc] = keys
    return keys


def look(world: World, record: Record, keys: tuple[str, ...]) -> Moment:
    """The record in its context."""
    moment = Moment(world, record, keys)
    if type(record) is Reply:
        moment.reply, moment.call = record, record.call
    elif type(record) is Call:
        moment.call = record
    else:
        _look_at_other(moment, record)
        return moment
    for see in _SIGHTS.get(keys[0], ()):
        see(moment)
    return moment


def _look_at_other(moment: Moment, record: Record) -> None:
    """What is no call and no reply."""
    if type(record) is Status:
        _look_at_status(moment, record)
    elif type(record) is RuntimeEvent:
        _look_at_runtime(moment, record)
    elif type(record) is PodChange:
        _look_at_pod(moment, record)
    elif type(record) is Deleted:
        moment.pod = moment.world.pod_of_object(record.uid)
    elif type(record) is Event:
        moment.pod = moment.world.pods.get(record.uid)


def _about_container(moment: Moment) -> None:
    call, world = moment.call, moment.world
    # Each request is read as one type only, so that it is parsed once.
    container_id = moment.request(_REQUESTS.get(call.rpc, ContainerRequest)).container_id
    # One that went while the call was under way is still what the answer is about.
    container = world.containers.get(container_id) or world.called.get(call.id)
    if container is not None:
        moment.container, moment.sandbox, moment.pod = container, container.sandbox, container.pod


def _about_sandbox(moment: Moment) -> None:
    sandbox = moment.world.sandboxes.get(moment.request(SandboxRequest).pod_sandbox_id)
    if sandbox is not None:
        moment.sandbox, moment.pod = sandbox, sandbox.pod


def _about_new_container(moment: Moment) -> None:
    asked, world = moment.request(CreateContainerRequest), moment.world
    sandbox = moment.sandbox = world.sandboxes.get(asked.pod_sandbox_id)
    moment.pod = sandbox.pod if sandbox else world.pods.get(asked.sandbox_config.metadata.uid)


def _about_new_sandbox(moment: Moment) -> None:
    moment.pod = moment.world.pod_of(moment.request(RunPodSandboxRequest).config.metadata)


def _about_image(moment: Moment) -> None:
    moment.pod = moment.world.pods.get(moment.request(PullImageRequest).sandbox_config.metadata.uid)


def _made_sandbox(moment: Moment) -> None:
    moment.sandbox = moment.world.sandboxes.get(moment.response(RunPodSandboxReply).pod_sandbox_id)


def _made_container(moment: Moment) -> None:
    moment.container = moment.world.containers.get(moment.response(CreateContainerReply).container_id)


def _read_sandbox(moment: Moment) -> None:
    record, sandbox = moment.response(PodSandboxStatusReply).status, moment.sandbox
    if (
        record is not None
        and sandbox is not None
        and sandbox.state == "ready"
        and record.state == "SANDBOX_NOTREADY"
        and not sandbox.stops
    ):
        moment.keys = (*moment.keys, "fact:sandbox-died")
    _read(moment)


def _read_container(moment: Moment) -> None:
    _look_at_container_status(moment)
    _read(moment)


def _read(moment: Moment) -> None:
    moment.world.readings.take(moment)


_ABOUT: dict[str, Sight] = {
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
}
"""Finds what a call is about, from its request."""
_ANSWERED: dict[str, Sight] = {
    "RunPodSandbox": _made_sandbox,
    "CreateContainer": _made_container,
    "ContainerStatus": _read_container,
    "PodSandboxStatus": _read_sandbox,
    "ListContainers": _read,
    "ListPodSandbox": _read,
}
"""Finds what a good reply adds."""
_SIGHTS: dict[str, tuple[Sight, ...]] = {
    **{f"{begins}:{rpc}": (about,) for begins in ("call", "failed") for rpc, about in _ABOUT.items()},
    **{
        f"done:{rpc}": tuple(see for see in (_ABOUT.get(rpc), _ANSWERED.get(rpc)) if see is not None)
        for rpc in (*_ABOUT, *_ANSWERED)
    },
}
"""What is looked at, by the key of a call or of its end."""


def _look_at_container_status(moment: Moment) -> None:
    record = moment.response(ContainerStatusReply).status
    container = moment.container
    if (
        record is None
        or container is None
        or record.state != "CONTAINER_EXITED"
        or container.state != "running"
    ):
        return
    moment.exit = Exit(
        moment.t,
        moment.seq,
        code=record.exit_code,
        reason=record.reason,
        commanded=commanded(container, moment.t),
    )
    moment.keys = (*moment.keys, "fact:exited")


def commanded(container: Container, t: float) -> bool:
    """An exit at `t` follows a stop of the container or of its sandbox."""
    stops = [*container.stops, *(container.sandbox.stops if container.sandbox else ())]
    return any(stop.end_t is None or t - stop.end_t <= EXIT_AFTER_STOP_SECONDS for stop in stops)


def _look_at_runtime(moment: Moment, record: RuntimeEvent) -> None:
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


def _look_at_pod(moment: Moment, record: PodChange) -> None:
    world = moment.world
    if record.op == "remove":
        name = full_name(world, record.source, record.name)
        # What goes at the API server is no static pod, whose mirror it may be.
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
    if pod is None or not pod.wanted or not pod.uid or pod.manifest == manifest:
        moment.pod = pod if pod is not None and pod.wanted else None
    else:
        moment.replaced = pod


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


def _look_at_status(moment: Moment, record: Status) -> None:
    moment.status = Body(record.status).view(PodStatus)
    moment.pod = moment.world.pod_of_object(record.uid, record.namespace, record.name)
