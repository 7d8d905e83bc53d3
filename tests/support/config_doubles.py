"""Doubles for the tests of the reference's config: pods in one line, a small API server, a list of events."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import Any, NoReturn

import msgspec
from lightkube.models.core_v1 import ConfigMap, Node, Pod, Secret
from lightkube.models.node_v1 import RuntimeClass

from kubelet_reference.api import pods
from kubelet_reference.api.events import Recorder
from kubelet_reference.config import Mux, PodUpdate
from kubelet_reference.util.ports import ApiError, PodEvent, WatchEvent


def a_pod(
    name: str = "web",
    *,
    uid: str = "",
    spec: Mapping[str, Any] | None = None,
    status: Mapping[str, Any] | None = None,
    **metadata: Any,
) -> Pod:
    """A pod with one container, unless `spec` says more; `metadata` as in the API."""
    data = {
        "metadata": {"name": name, "namespace": "default", **({"uid": uid} if uid else {}), **metadata},
        "spec": {"containers": [{"name": "c1", "image": "img:1"}], **(spec or {})},
        "status": status,
    }
    return msgspec.convert(data, Pod)


def a_node(name: str = "node-1", **metadata: Any) -> Node:
    """A node's object."""
    return msgspec.convert({"metadata": {"name": name, "uid": "node-uid", **metadata}}, Node)


class Events:
    """An event sink that keeps what it gets."""

    def __init__(self) -> None:
        self.emitted: list[PodEvent] = []
        self.recorder = Recorder(self)

    def emit(self, event: PodEvent) -> None:
        """Keep the event."""
        self.emitted.append(event)

    @property
    def reported(self) -> list[tuple[str, str, str]]:
        """Type, reason and pod of each event."""
        return [(event.type, event.reason, pods.key(event.pod)) for event in self.emitted]


def drain(mux: Mux) -> list[PodUpdate]:
    """The updates that wait in the mux, taken out."""
    found: list[PodUpdate] = []
    while not mux.updates.empty():
        found.append(mux.updates.get_nowait())
    return found


def drained(mux: Mux) -> list[tuple[str, list[str]]]:
    """The same as op and names."""
    return [(update.op.name, [pods.name(pod) for pod in update.pods]) for update in drain(mux)]


class SmallApi:
    """An API server with what a test puts into it; while `down` is set, every call fails with that error."""

    def __init__(self) -> None:
        self.down: ApiError | None = None
        self.pods: dict[tuple[str, str], Pod] = {}
        self.nodes: dict[str, Node] = {}
        self.config_maps: dict[str, ConfigMap] = {}
        self.secrets: dict[str, Secret] = {}
        self.classes: dict[str, RuntimeClass] = {}
        self.asked: list[str] = []
        self.watch: asyncio.Queue[WatchEvent | ApiError | None] = asyncio.Queue()
        """What the watch brings next: an event, an error, or None for its end."""

    def _ask(self, what: str) -> None:
        self.asked.append(what)
        if self.down:
            raise self.down

    def _missing(self, what: str) -> NoReturn:
        raise ApiError(404, "NotFound", f"{what} not found")

    async def list_pods(self, node_name: str) -> tuple[list[Pod], str]:
        """All pods; the version is always 1."""
        self._ask(f"list {node_name}")
        return list(self.pods.values()), "1"

    async def watch_pods(self, node_name: str, resource_version: str) -> AsyncIterator[WatchEvent]:
        """What the test puts into `watch`."""
        self._ask(f"watch {node_name} {resource_version}")
        while (found := await self.watch.get()) is not None:
            if isinstance(found, ApiError):
                raise found
            yield found

    async def get_pod(self, namespace: str, name: str) -> Pod:
        """The pod of that name."""
        self._ask(f"get {namespace}/{name}")
        return self.pods.get((namespace, name)) or self._missing(name)

    async def create_pod(self, pod: Pod) -> Pod:
        """Keep the pod under a UID of the server."""
        self._ask(f"create {pods.key(pod)}")
        key = (pods.namespace(pod), pods.name(pod))
        if key in self.pods:
            raise ApiError(409, "AlreadyExists", "it is there")
        metadata = msgspec.structs.replace(pods.metadata(pod), uid=f"api-{len(self.asked)}")
        self.pods[key] = msgspec.structs.replace(pod, metadata=metadata)
        return self.pods[key]

    async def patch_pod_status(self, namespace: str, name: str, patch: Mapping[str, object]) -> Pod:
        """Nobody asks here."""
        raise NotImplementedError

    async def delete_pod(self, namespace: str, name: str, *, grace_seconds: int, uid: str | None) -> None:
        """Remove the pod if it is the one that is meant."""
        self._ask(f"delete {namespace}/{name} {grace_seconds} {uid}")
        pod = await self.get_pod(namespace, name)
        if uid and pods.uid(pod) != uid:
            raise ApiError(409, "Conflict", "another one")
        del self.pods[namespace, name]

    async def get_node(self, name: str) -> Node:
        """The node's object."""
        self._ask(f"node {name}")
        return self.nodes.get(name) or self._missing(name)

    async def get_config_map(self, namespace: str, name: str) -> ConfigMap:
        """The config map, of whatever namespace."""
        self._ask(f"configmap {namespace}/{name}")
        return self.config_maps.get(name) or self._missing(name)

    async def get_secret(self, namespace: str, name: str) -> Secret:
        """The secret, of whatever namespace."""
        self._ask(f"secret {namespace}/{name}")
        return self.secrets.get(name) or self._missing(name)

    async def get_runtime_class(self, name: str) -> RuntimeClass:
        """The runtime class."""
        self._ask(f"runtimeclass {name}")
        return self.classes.get(name) or self._missing(name)
