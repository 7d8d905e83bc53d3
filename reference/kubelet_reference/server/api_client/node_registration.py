"""Registers this node, then keeps its status, its lease and its CSINode, as a kubelet does.

A node that is there already is taken over. One that somebody deletes is not registered again before the
kubelet starts again, as upstream.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import NoReturn

import grpc
from cri_api.v1 import api_pb2 as cri

from kubelet_reference.kubelet.kubelet import Kubelet
from kubelet_reference.server.api_client.client import CONFLICT, ApiClient
from kubelet_reference.server.api_client.json_fields import Json, part, parts, text
from kubelet_reference.server.api_client.node_object import (
    ANNOTATIONS,
    NodeFacts,
    labels,
    node_conditions,
    node_object,
    node_status,
    status_changes,
)
from kubelet_reference.server.api_client.times import rfc3339, rfc3339_micro
from kubelet_reference.util.ports import ApiError, Clock, Random

_LOG = logging.getLogger("kubelet_reference.node")
_NODES = "/api/v1/nodes"
_CSI_NODES = "/apis/storage.k8s.io/v1/csinodes"
_LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
_STATUS_SECONDS, _REPORT_SECONDS = 10.0, 300.0
_UNREADY_SECONDS = 0.1
"""Between looks until the node is ready for the first time."""
_STATUS_TRIES = 5
_FIRST_RETRY_SECONDS, _RETRY_SECONDS_MAX = 0.2, 7.0
_LEASE_SECONDS, _RENEW_SECONDS, _RENEW_JITTER = 40, 10.0, 0.04
_LEASE_TRIES = 5


@dataclass(eq=False)
class NodeRegistration:
    """This node at the API server."""

    client: ApiClient
    clock: Clock
    random: Random
    facts: NodeFacts
    kubelet: Kubelet
    _uid: str = field(default="", init=False)
    _reported_at: float | None = field(default=None, init=False)
    _lease: Json | None = field(default=None, init=False)

    async def run(self) -> NoReturn:
        """Register, and keep everything up to date until cancelled."""
        self._uid = await self._until_done("node", self._register)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._until_done("CSINode", self._ensure_csi_node))
            tasks.create_task(self._keep_lease())
            tasks.create_task(self._keep_status())
        raise AssertionError("these tasks end by cancellation alone")

    async def _until_done(self, what: str, work: Callable[[], Awaitable[str]]) -> str:
        """Do this, again after growing delays where it fails."""
        delay = _FIRST_RETRY_SECONDS
        while True:
            try:
                return await work()
            except ApiError as error:
                _LOG.warning("%s %s: %s", what, self.facts.name, error)
            await self.clock.sleep(delay)
            delay = min(2 * delay, _RETRY_SECONDS_MAX)

    async def _register(self) -> str:
        """Create the object, or put right the labels of the one that is there; its UID."""
        status = await self._status(())
        try:
            found = await self.client.create(_NODES, node_object(self.facts, status))
        except ApiError as error:
            if error.code != CONFLICT:
                raise
            found = await self._reconcile()
        return text(found, "metadata", "uid")

    async def _reconcile(self) -> Json:
        found = await self.client.get(self._path)
        metadata = found["metadata"]
        wanted = {"labels": labels(self.facts.name), "annotations": dict(ANNOTATIONS)}
        if all(part(metadata, name).items() >= values.items() for name, values in wanted.items()):
            return found
        return await self.client.patch(self._path, {"metadata": wanted})

    @property
    def _path(self) -> str:
        return f"{_NODES}/{self.facts.name}"

    @property
    def _owners(self) -> list[Json]:
        return [{"apiVersion": "v1", "kind": "Node", "name": self.facts.name, "uid": self._uid}]

    # Status

    async def _keep_status(self) -> NoReturn:
        """Every ten seconds, and at once when the node is ready for the first time."""
        await self._post_status()
        while self._problems():
            await self.clock.sleep(_UNREADY_SECONDS)
        while True:
            await self._post_status()
            await self.clock.sleep(_STATUS_SECONDS)

    async def _post_status(self) -> None:
        """Bring the status at the server up to date; a failure is tried again at once, a few times."""
        for _ in range(_STATUS_TRIES):
            try:
                return await self._patch_status()
            except ApiError as error:
                _LOG.warning("status of node %s not written: %s", self.facts.name, error)
        return None

    async def _patch_status(self) -> None:
        """Write what differs; all heartbeats where nothing was written for five minutes."""
        old = part(await self.client.get(self._path), "status")
        new = await self._status(parts(old, "conditions"))
        changes = status_changes(old, new)
        now = self.clock.monotonic()
        if not changes and self._reported_at is not None and now - self._reported_at < _REPORT_SECONDS:
            return
        body = {"status": {**changes, "conditions": new["conditions"]}}
        await self.client.patch(f"{self._path}/status", body)
        self._reported_at = now

    async def _status(self, before: Sequence[Json]) -> Json:
        evictions = self.kubelet.components.evictions
        pressures = evictions.pressures() if evictions is not None else frozenset[str]()
        now = rfc3339(self.clock.wall_ns())
        conditions = node_conditions(pressures, self._problems(), before, now)
        return node_status(self.facts, await self._images(), conditions)

    def _problems(self) -> list[str]:
        """Why the node cannot run pods; empty if it can."""
        state = self.kubelet.components.state
        network = state.network_error()
        return [*state.errors(), *([network] if network is not None else [])]

    async def _images(self) -> list[cri.Image]:
        try:
            return list((await self.kubelet.components.client.list_images()).images)
        except grpc.RpcError:
            return []

    # CSINode and lease

    async def _ensure_csi_node(self) -> str:
        """Create the CSINode, of a node without drivers; one that is there stays."""
        try:
            await self.client.get(f"{_CSI_NODES}/{self.facts.name}")
        except ApiError as error:
            if not error.is_not_found:
                raise
            await self.client.create(
                _CSI_NODES,
                {
                    "kind": "CSINode",
                    "apiVersion": "storage.k8s.io/v1",
                    "metadata": {"name": self.facts.name, "ownerReferences": self._owners},
                    "spec": {"drivers": []},
                },
            )
        return ""

    async def _keep_lease(self) -> NoReturn:
        while True:
            await self._renew()
            await self.clock.sleep(self.random.jitter(_RENEW_SECONDS, _RENEW_JITTER))

    async def _renew(self) -> None:
        """Renew the lease; where that fails time and again it is read anew, until it works."""
        for _ in range(_LEASE_TRIES if self._lease is not None else 0):
            try:
                return await self._put_lease()
            except ApiError as error:
                _LOG.warning("lease of node %s not renewed: %s", self.facts.name, error)
                if error.code == CONFLICT:
                    break
        await self._until_done("lease of node", self._ensure_lease)
        return None

    async def _put_lease(self) -> None:
        lease = self._lease if self._lease is not None else {}
        body = {**lease, "spec": {**part(lease, "spec"), **self._lease_spec()}}
        self._lease = await self.client.replace(f"{_LEASES}/{self.facts.name}", body)

    async def _ensure_lease(self) -> str:
        """Read the lease and renew it, or create it."""
        try:
            self._lease = await self.client.get(f"{_LEASES}/{self.facts.name}")
        except ApiError as error:
            if not error.is_not_found:
                raise
            metadata = {
                "name": self.facts.name,
                "namespace": "kube-node-lease",
                "ownerReferences": self._owners,
            }
            body = {
                "kind": "Lease",
                "apiVersion": "coordination.k8s.io/v1",
                "metadata": metadata,
                "spec": self._lease_spec(),
            }
            self._lease = await self.client.create(_LEASES, body)
        else:
            await self._put_lease()
        return ""

    def _lease_spec(self) -> Json:
        return {
            "holderIdentity": self.facts.name,
            "leaseDurationSeconds": _LEASE_SECONDS,
            "renewTime": rfc3339_micro(self.clock.wall_ns()),
        }
