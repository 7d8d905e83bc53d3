"""The port `ApiServer` over HTTP, with the copies of objects that a kubelet keeps."""

from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing

from lightkube.models.core_v1 import ConfigMap, Node, Pod, Secret
from lightkube.models.node_v1 import RuntimeClass

from kubelet_reference.api.models import as_json, as_model
from kubelet_reference.server.api_client.client import ApiClient
from kubelet_reference.server.api_client.json_fields import part, text
from kubelet_reference.server.api_client.referenced_objects import CONFIG_MAPS, SECRETS, ReferencedObjects
from kubelet_reference.server.api_client.reflector import Informer, Reflector
from kubelet_reference.util.ports import NOT_FOUND, ApiError, Clock, Random, WatchEvent

PODS, NODES = "/api/v1/pods", "/api/v1/nodes"


class HttpApiServer:
    """Fits the port. The node, config maps and secrets come from copies, all else is asked for.

    `node` follows this node's object; it runs elsewhere.
    """

    def __init__(self, client: ApiClient, clock: Clock, random: Random, node_name: str) -> None:
        self._client = client
        self._pods = Reflector(client, clock, random, PODS, f"spec.nodeName={node_name}")

        def inform(path: str, name: str) -> Informer:
            return Informer(Reflector(client, clock, random, path, f"metadata.name={name}"))

        self.node = inform(NODES, node_name)
        self.objects = ReferencedObjects(client, inform)

    async def list_pods(self, node_name: str) -> tuple[list[Pod], str]:  # noqa: ARG002 - it knows its own
        """The pods bound to this node, and the resourceVersion to watch from."""
        found, version = await self._pods.list_objects()
        self.objects.set_pods(found)
        return [as_model(Pod, each) for each in found], version

    async def watch_pods(self, node_name: str, resource_version: str) -> AsyncIterator[WatchEvent]:  # noqa: ARG002
        """Each change after `resource_version`; a watch that ends goes on by itself."""
        async with aclosing(self._pods.changes(resource_version)) as events:
            async for event in events:
                kind, pod = text(event, "type"), part(event, "object")
                if kind == "DELETED":
                    self.objects.drop(pod)
                else:
                    self.objects.keep(pod)
                yield WatchEvent(kind, as_model(Pod, pod))

    async def get_pod(self, namespace: str, name: str) -> Pod:
        """The stored pod."""
        return as_model(Pod, await self._client.get(_pod(namespace, name)))

    async def create_pod(self, pod: Pod) -> Pod:
        """Create a mirror pod."""
        body = as_json(pod)
        path = f"/api/v1/namespaces/{body['metadata']['namespace']}/pods"
        return as_model(Pod, await self._client.create(path, body))

    async def patch_pod_status(self, namespace: str, name: str, patch: Mapping[str, object]) -> Pod:
        """Merge into a pod's status."""
        return as_model(Pod, await self._client.patch(f"{_pod(namespace, name)}/status", patch))

    async def delete_pod(self, namespace: str, name: str, *, grace_seconds: int, uid: str | None) -> None:
        """Delete a pod."""
        precondition = {"preconditions": {"uid": uid}} if uid is not None else {}
        await self._client.delete(
            _pod(namespace, name), {"gracePeriodSeconds": grace_seconds, **precondition}
        )

    async def get_node(self, name: str) -> Node:
        """This node's object as it was seen last."""
        found = self.node.get(name)
        if found is None and not self.node.is_synced:
            raise ApiError(0, "", f'nodes "{name}" not listed yet')
        if found is None:
            raise ApiError(NOT_FOUND, "NotFound", f'nodes "{name}" not found')
        return as_model(Node, found)

    async def get_config_map(self, namespace: str, name: str) -> ConfigMap:
        """A config map."""
        return as_model(ConfigMap, await self.objects.get(CONFIG_MAPS, namespace, name))

    async def get_secret(self, namespace: str, name: str) -> Secret:
        """A secret."""
        return as_model(Secret, await self.objects.get(SECRETS, namespace, name))

    async def get_runtime_class(self, name: str) -> RuntimeClass:
        """A runtime class."""
        return as_model(RuntimeClass, await self._client.get(f"/apis/node.k8s.io/v1/runtimeclasses/{name}"))


def _pod(namespace: str, name: str) -> str:
    return f"/api/v1/namespaces/{namespace}/pods/{name}"
