"""Mirror pods: how a static pod becomes visible at the API server (STATIC-11 to STATIC-15)."""

import logging
from typing import Any

import msgspec
from lightkube.models.core_v1 import Node, Pod

from kubelet_reference.api import names, pods
from kubelet_reference.util.ports import ApiError, ApiServer

_LOG = logging.getLogger("kubelet_reference.mirror")


def is_mirror_of(mirror: Pod, static: Pod) -> bool:
    """Whether a mirror pod shows this version of the static pod, by the hash that both carry."""
    return pods.annotations(mirror)[names.CONFIG_MIRROR] == pods.annotations(static)[names.CONFIG_HASH]


def mirror_pod(static: Pod, node: Node) -> Pod:
    """The mirror of a static pod, owned by the node it runs on (STATIC-11)."""
    data: dict[str, Any] = msgspec.to_builtins(static)
    identity = msgspec.to_builtins(node.metadata)
    owner = {
        "apiVersion": "v1",
        "kind": "Node",
        "name": identity["name"],
        "uid": identity["uid"],
        "controller": True,
    }
    given = pods.annotations(static)
    annotations = {**given, names.CONFIG_MIRROR: given[names.CONFIG_HASH]}
    data["metadata"] = {**data["metadata"], "annotations": annotations, "ownerReferences": [owner]}
    return msgspec.convert(data, Pod)


class MirrorClient:
    """Keeps mirror pods in step with static pods: best effort, a static pod runs without (STATIC-10).

    No method raises `ApiError`: what fails is logged and tried again by the next sync. Without an API server
    (`api` is None) nothing happens.
    """

    def __init__(self, api: ApiServer | None, node_name: str) -> None:
        self._api = api
        self._node_name = node_name

    async def keep(self, static: Pod, mirror: Pod | None) -> None:
        """Make the API server show this static pod; `mirror` is what it shows now, as far as known.

        A mirror that is being deleted or shows another version is replaced; the containers are not its
        business here (STATIC-13).
        """
        if mirror is not None:
            if is_mirror_of(mirror, static) and not pods.deletion_asked(mirror):
                return
            await self.delete(mirror)
        await self.create(static)

    async def create(self, static: Pod) -> None:
        """Create the mirror of a static pod, where there is none yet.

        No mirror is made for a node whose object is missing or being deleted (STATIC-12).
        """
        if self._api is None:
            return
        try:
            node = await self._api.get_node(self._node_name)
            if node.metadata is not None and node.metadata.deletionTimestamp is not None:
                return
            await self._api.create_pod(mirror_pod(static, node))
        except ApiError as error:
            self._not_created(static, error)

    def _not_created(self, static: Pod, error: ApiError) -> None:
        """Where there is one already (STATIC-14), a later sync looks at it."""
        _LOG.warning("mirror pod of %s not created: %s", pods.key(static), error)

    async def delete(self, mirror: Pod) -> None:
        """Delete this mirror pod at once, and no other of its name (STATIC-13)."""
        if self._api is None:
            return
        namespace, name, uid = pods.namespace(mirror), pods.name(mirror), pods.uid(mirror)
        try:
            await self._api.delete_pod(namespace, name, grace_seconds=0, uid=uid or None)
        except ApiError as error:
            # It may be gone, or another pod by now: then there is nothing left to delete.
            _LOG.warning("mirror pod %s not deleted: %s", pods.key(mirror), error)
