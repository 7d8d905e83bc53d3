"""The fake API server as a kubelet and as the world see it, everything on the record."""

from collections.abc import AsyncIterator, Generator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeVar

from lightkube.models.core_v1 import ConfigMap, Node, Pod, Secret
from lightkube.models.node_v1 import RuntimeClass

from kubelet_conformance.targets.controls import (
    OF_THE_CLUSTER,
    ActiveCallFault,
    ActiveFault,
    Fault,
    InjectedFault,
    ObjectKind,
)
from kubelet_conformance.trace.format.recorder import Recorder
from kubelet_fakes.api import Answer, ApiCore, ApiStatusError, Change, Connection, FrozenDict, Request
from kubelet_fakes.api.errors import gone
from kubelet_reference.api import pods
from kubelet_reference.api.models import as_json, as_model
from kubelet_reference.server.api_client.tokens import service_account, token_request
from kubelet_reference.util.ports import ApiError, PodEvent, WatchEvent

Json = dict[str, Any]
T = TypeVar("T")
_KUBELET = "kubelet"
_WRITES = frozenset({"create", "update", "patch", "delete"})
_NOT_FOUND = 404
_ENDED = frozenset({"Succeeded", "Failed"})
_RESOURCES: dict[ObjectKind, str] = {
    "ConfigMap": "configmaps",
    "Secret": "secrets",
    "Node": "nodes",
    "RuntimeClass": "runtimeclasses",
}


class RecordedApi:
    """An API server for the kubelet of one node; what becomes of the node's pods is on the record.

    Attributes:
        connection: the kubelet's way to it.
        world: what users and controllers do there.
    """

    def __init__(self, core: ApiCore, recorder: Recorder, node_name: str) -> None:
        record_pods(core, recorder, node_name)
        self.connection = Connection(core, _KUBELET)
        self.connection.on_answer.append(partial(_record_answer, recorder))
        self.world = WorldApi(core, self.connection, node_name)


def record_pods(core: ApiCore, recorder: Recorder, node_name: str) -> None:
    """Record what becomes of this node's pods: what the world wants, what the kubelet wrote, what is gone."""

    def record(change: Change) -> None:
        if change.resource == "pods" and change.object["spec"].get("nodeName") == node_name:
            _record(recorder, change)

    core.on_change.append(record)


def _record(recorder: Recorder, change: Change) -> None:
    metadata = change.object["metadata"]
    whom = {"namespace": metadata["namespace"], "name": metadata["name"]}
    if change.type == "DELETED":
        if change.by != _KUBELET:
            recorder.record("pod", op="remove", source="api", uid=metadata["uid"], **whom)
        recorder.record("deleted", uid=metadata["uid"])
    elif change.by != _KUBELET:
        with_status = change.subresource == "status" or _has_relevant_status(change.object)
        recorder.record("pod", op="set", source="api", pod=_wanted(change.object, with_status=with_status))
    elif change.subresource == "status":
        recorder.record(
            "status",
            uid=metadata["uid"],
            **whom,
            status=change.object.get("status", {}),
            deletion=metadata.get("deletionTimestamp"),
        )


def _wanted(stored: FrozenDict, *, with_status: bool) -> Json:
    """A pod as it is sent to the kubelet, with its status if that is to be sent too."""
    return {name: value for name, value in stored.items() if name != "status" or with_status}


def _has_relevant_status(stored: FrozenDict) -> bool:
    """The status matters, also if the kubelet did not write it: the pod has ended, or has gates."""
    return bool(stored.get("status", {}).get("phase") in _ENDED or stored["spec"].get("readinessGates"))


def _record_answer(recorder: Recorder, answer: Answer) -> None:
    """Record what the kubelet writes of pods, and that it asks for one that is not there."""
    request = answer.request
    is_missed = request.verb == "get" and answer.code == _NOT_FOUND
    if request.resource != "pods" or (request.verb not in _WRITES and not is_missed):
        return
    body = request.body or None
    named = answer.object["metadata"]["uid"] if answer.object is not None else None
    precondition = request.uid or (body or {}).get("metadata", {}).get("uid")
    recorder.record(
        "api",
        verb=request.verb,
        resource=request.resource,
        subresource=request.subresource or None,
        uid=named or precondition,
        precondition=precondition,
        grace=request.grace_seconds,
        body=body,
        code=answer.code,
        **({"namespace": request.namespace, "name": request.name} if is_missed else {}),
    )


class KubeletApi:
    """The kubelet's way to the API server: the reference's port `ApiServer`."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self._pods = _Pods()

    async def list_pods(self, node_name: str) -> tuple[list[Pod], str]:
        """The pods bound to the node, and the resourceVersion to watch from."""
        found = await self._ask("list", "pods", fields={"spec.nodeName": node_name})
        return [self._pods.of(each) for each in found["items"]], found["metadata"]["resourceVersion"]

    async def watch_pods(self, node_name: str, resource_version: str) -> AsyncIterator[WatchEvent]:
        """Each change after `resource_version`."""
        fields = {"spec.nodeName": node_name}
        try:
            watch = self.connection.watch("pods", resource_version, fields=fields)
        except ApiStatusError as error:
            raise _refused(error) from None
        try:
            async for event in watch:
                yield WatchEvent(event.type, self._pods.of(event.object))
                if event.type == "DELETED":
                    self._pods.forget(event.object)
        except ApiStatusError as error:
            raise _refused(error) from None
        finally:
            watch.stop()

    async def get_pod(self, namespace: str, name: str) -> Pod:
        """The stored pod."""
        return self._pods.of(await self._ask("get", "pods", namespace, name))

    async def create_pod(self, pod: Pod) -> Pod:
        """Create a mirror pod."""
        return self._pods.of(await self._ask("create", "pods", body=as_json(pod)))

    async def patch_pod_status(self, namespace: str, name: str, patch: Mapping[str, object]) -> Pod:
        """Merge into a pod's status."""
        return self._pods.of(await self._ask("patch", "pods", namespace, name, "status", patch))

    async def delete_pod(self, namespace: str, name: str, *, grace_seconds: int, uid: str | None) -> None:
        """Delete a pod."""
        await self._ask("delete", "pods", namespace, name, grace_seconds=grace_seconds, uid=uid)

    async def get_node(self, name: str) -> Node:
        """The node's object."""
        return as_model(Node, await self._ask("get", "nodes", "", name))

    async def get_config_map(self, namespace: str, name: str) -> ConfigMap:
        """A configMap."""
        return as_model(ConfigMap, await self._ask("get", "configmaps", namespace, name))

    async def get_secret(self, namespace: str, name: str) -> Secret:
        """A secret."""
        return as_model(Secret, await self._ask("get", "secrets", namespace, name))

    async def get_runtime_class(self, name: str) -> RuntimeClass:
        """A runtime class."""
        return as_model(RuntimeClass, await self._ask("get", "runtimeclasses", "", name))

    async def _ask(self, *request: Any, **fields: Any) -> FrozenDict:  # noqa: ANN401 - see `Request`
        try:
            return await self.connection.ask(Request(*request, **fields))
        except ApiStatusError as error:
            raise _refused(error) from None


class KubeletTokens:
    """Tokens of service accounts, each asked for once: the reference's port `ServiceAccountTokens`."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._kept: dict[tuple[str, str, int | None], str] = {}

    async def get(self, pod: Pod, audience: str, seconds: int | None) -> str:
        """A token of the pod's account, bound to the pod."""
        key = pods.uid(pod), audience, seconds
        if key not in self._kept:
            names = (pods.namespace(pod), service_account(pod), "token")
            body = token_request(pod, audience, seconds)
            try:
                made = await self._connection.ask(Request("create", "serviceaccounts", *names, body))
            except ApiStatusError as error:
                raise _refused(error) from None
            self._kept[key] = made["status"]["token"]
        return self._kept[key]


def _refused(error: ApiStatusError) -> ApiError:
    return ApiError(error.code, error.reason, str(error))


class _Pods:
    """Stored pods as lightkube's: each version of one is converted once, for all readers."""

    def __init__(self) -> None:
        self._latest: dict[str, tuple[FrozenDict, Pod]] = {}

    def of(self, stored: FrozenDict) -> Pod:
        """The pod; callers must not change it."""
        uid = stored["metadata"]["uid"]
        latest = self._latest.get(uid)
        if latest is None or latest[0] is not stored:
            latest = self._latest[uid] = stored, as_model(Pod, stored)
        return latest[1]

    def forget(self, stored: FrozenDict) -> None:
        """The pod is gone."""
        self._latest.pop(stored["metadata"]["uid"], None)


class RecordedEvents:
    """Where the kubelet's events go: onto the record."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder

    def emit(self, event: PodEvent) -> None:
        """Take the event."""
        metadata = event.pod.metadata
        self._recorder.record(
            "event",
            uid=metadata.uid if metadata is not None else "",
            type=event.type,
            reason=event.reason,
            message=event.message,
            count=1,
            container=event.field_path or None,
        )


@contextmanager
def _tolerant(core: ApiCore) -> Generator[None]:
    """What is invalid is stored all the same."""
    core.tolerant = True
    yield
    core.tolerant = False


class WorldApi:
    """The API server as users and controllers use it; pods are bound to the node as they are created."""

    def __init__(self, core: ApiCore, kubelet: Connection, node_name: str) -> None:
        self._core = core
        self._kubelet = kubelet
        self._node_name = node_name

    def create(self, manifest: Json) -> Json:
        """Create a pod bound to the node."""
        spec = {**manifest["spec"], "nodeName": self._node_name}
        return dict(self._core.create("pods", {**manifest, "spec": spec}))

    def needs_ordinary_pods(self) -> None:
        """They are."""

    def create_unbound(self, manifest: Json) -> Json:
        """Create a pod that no node has yet."""
        return dict(self._core.create("pods", manifest))

    def bind(self, namespace: str, name: str) -> None:
        """Give a pod to the node, as a scheduler does."""
        self._core.bind(name, self._node_name, namespace)

    def update(self, namespace: str, name: str, changes: Mapping[str, Any]) -> Json:
        """Merge changes into a pod."""
        return dict(self._core.patch("pods", name, changes, namespace))

    def update_status(self, namespace: str, name: str, changes: Mapping[str, Any]) -> Json:
        """Merge changes into a pod's status."""
        return dict(self._core.patch("pods", name, {"status": dict(changes)}, namespace, "status"))

    def resize(self, namespace: str, name: str, sizes: Mapping[str, Json]) -> Json:
        """Change the resources of containers."""
        return dict(self._core.resize(name, sizes, namespace))

    def add_ephemeral(self, namespace: str, name: str, container: Json) -> Json:
        """Add an ephemeral container."""
        return dict(self._core.add_ephemeral(name, container, namespace))

    def delete(self, namespace: str, name: str, grace_seconds: int | None = None) -> None:
        """Ask for deletion."""
        self._core.delete("pods", name, namespace, grace_seconds=grace_seconds)

    def get(self, namespace: str, name: str) -> Json | None:
        """The stored pod."""
        try:
            return dict(self._core.get("pods", name, namespace))
        except ApiStatusError:
            return None

    def pods(self) -> list[Json]:
        """The metadata of all stored pods."""
        found, _ = self._core.list_objects("pods")
        return [dict(each["metadata"]) for each in found]

    def put(self, kind: ObjectKind, manifest: Json) -> None:
        """Create or replace an object."""
        metadata = manifest["metadata"]
        namespace = "" if kind in OF_THE_CLUSTER else metadata.get("namespace", "default")
        try:
            self._core.get(_RESOURCES[kind], metadata["name"], namespace)
        except ApiStatusError:
            self._core.create(_RESOURCES[kind], manifest, namespace)
        else:
            self._core.update(
                _RESOURCES[kind], {**manifest, "metadata": {**metadata, "namespace": namespace}}
            )

    def remove(self, kind: ObjectKind, namespace: str, name: str) -> Json:
        """Remove an object; what was stored comes back."""
        namespace = "" if kind in OF_THE_CLUSTER else namespace
        stored = dict(self._core.get(_RESOURCES[kind], name, namespace))
        self._core.delete(_RESOURCES[kind], name, namespace)
        return stored

    def inject(self, fault: Fault) -> ActiveCallFault:
        """Let requests and watches of the kubelet fail or be late until healed."""
        return self._kubelet.faults.add(fault)

    def forget_history(self) -> None:
        """Watches break with 410 Gone: changes that they had not reported yet are lost."""
        self._core.forget_history()
        self._kubelet.break_watches(gone())

    def tolerate(self) -> ActiveFault:
        """What would be invalid is stored all the same until healed."""
        return InjectedFault(_tolerant(self._core))


def node_object(name: str) -> Json:
    """The Node that a kubelet of this name has registered."""
    labels = {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux"}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}}
