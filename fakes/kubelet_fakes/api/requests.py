"""What clients ask of the API server, over whatever they are connected by."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from kubelet_fakes.api.objects import EMPTY, FrozenDict
from kubelet_fakes.api.watching import Watch

Json = dict[str, Any]


class Request(msgspec.Struct, frozen=True):
    """One request: `verb` is create, get, list, update, patch, delete or watch.

    An empty namespace means all of them, or that the kind has none.
    """

    verb: str
    resource: str
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    body: Mapping[str, Any] = EMPTY
    grace_seconds: int | None = None
    uid: str | None = None
    """The precondition of a deletion; None is none."""
    resource_version: str = ""
    """Where a watch begins; empty or "0" is now, after everything that is there."""
    fields: Mapping[str, str] = EMPTY
    labels: Mapping[str, str] = EMPTY
    matches: Callable[[FrozenDict], bool] | None = None
    """What objects have to be besides, where `fields` and `labels` cannot say it."""
    change: Callable[[FrozenDict], Mapping[str, Any]] | None = None
    """What a patch makes of the stored object, where its `body` is no strategic merge patch."""
    by: str = ""


class Client(ABC):
    """The verbs of the API; each raises `ApiStatusError`. Objects that come back cannot be changed."""

    @abstractmethod
    def handle(self, request: Request) -> FrozenDict:
        """Do what is asked; a list comes back as one object with `items`."""

    async def ask(self, request: Request) -> FrozenDict:
        """`handle`, and wait as long as the answer takes."""
        return self.handle(request)

    @abstractmethod
    def open_watch(self, request: Request) -> Watch:
        """Begin a watch."""

    @abstractmethod
    def now_ns(self) -> int:
        """The server's time, in nanoseconds since the epoch."""

    def create(self, resource: str, body: Mapping[str, Any], namespace: str = "") -> FrozenDict:
        """Create an object; the namespace is its own, else this one, else `default`."""
        return self.handle(Request("create", resource, namespace, body=body))

    def get(self, resource: str, name: str, namespace: str = "default") -> FrozenDict:
        """The object as it is now."""
        return self.handle(Request("get", resource, namespace, name))

    def list_objects(
        self,
        resource: str,
        namespace: str = "",
        *,
        fields: Mapping[str, str] | None = None,
        labels: Mapping[str, str] | None = None,
    ) -> tuple[tuple[FrozenDict, ...], str]:
        """The objects that fit, by namespace and name, and the resourceVersion to watch from."""
        request = Request("list", resource, namespace, fields=fields or {}, labels=labels or {})
        found = self.handle(request)
        return tuple(found["items"]), found["metadata"]["resourceVersion"]

    def update(self, resource: str, body: Mapping[str, Any], subresource: str = "") -> FrozenDict:
        """Replace an object; a resourceVersion in it must be the current one."""
        metadata = body.get("metadata") or EMPTY
        place = (metadata.get("namespace") or "", metadata.get("name") or "")
        return self.handle(Request("update", resource, *place, subresource, body))

    def patch(
        self,
        resource: str,
        name: str,
        patch: Mapping[str, Any],
        namespace: str = "default",
        subresource: str = "",
    ) -> FrozenDict:
        """Change an object, or its `status` or `ephemeralcontainers`, by a strategic merge patch."""
        return self.handle(Request("patch", resource, namespace, name, subresource, patch))

    def delete(
        self,
        resource: str,
        name: str,
        namespace: str = "default",
        *,
        grace_seconds: int | None = None,
        uid: str | None = None,
    ) -> FrozenDict:
        """Delete an object: a pod with a grace period (None is its own), if it has that UID."""
        return self.handle(Request("delete", resource, namespace, name, grace_seconds=grace_seconds, uid=uid))

    def bind(self, name: str, node: str, namespace: str = "default") -> FrozenDict:
        """Bind a pod to a node, as the scheduler does."""
        body = {"target": {"kind": "Node", "name": node}}
        return self.handle(Request("create", "pods", namespace, name, "binding", body))

    def add_ephemeral(
        self, name: str, container: Mapping[str, Any], namespace: str = "default"
    ) -> FrozenDict:
        """Add an ephemeral container to a pod, as `kubectl debug` does."""
        patch: Json = {"spec": {"ephemeralContainers": [dict(container)]}}
        return self.patch("pods", name, patch, namespace, "ephemeralcontainers")

    def resize(
        self, name: str, sizes: Mapping[str, Mapping[str, Any]], namespace: str = "default"
    ) -> FrozenDict:
        """Change the resources of a pod's containers, by name, through the subresource `resize`."""
        changes = [{"name": container, "resources": dict(size)} for container, size in sizes.items()]
        patch: Json = {"spec": {"containers": changes}}
        return self.patch("pods", name, patch, namespace, "resize")

    def watch(
        self,
        resource: str,
        resource_version: str = "",
        namespace: str = "",
        *,
        fields: Mapping[str, str] | None = None,
        labels: Mapping[str, str] | None = None,
    ) -> Watch:
        """Every change after that resourceVersion; without one, first what is there and then every change."""
        return self.open_watch(
            Request(
                "watch",
                resource,
                namespace,
                resource_version=resource_version,
                fields=fields or {},
                labels=labels or {},
            )
        )
