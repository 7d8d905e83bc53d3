"""Runtimes whose answers are wrong: about their records, what is in them, and about themselves."""

import asyncio
from collections.abc import MutableMapping
from contextlib import AbstractAsyncContextManager

import grpc
from cri_api.v1 import api_pb2 as cri

from kubelet_bugs.bug import bug
from kubelet_fakes.runtime.core import RuntimeCore
from kubelet_fakes.runtime.errors import CallError
from kubelet_fakes.runtime.node_calls import NodeCalls
from kubelet_fakes.runtime.records import Container
from kubelet_fakes.runtime.service import FakeRuntime
from kubelet_fakes.runtime.store import Store

_NS = 1_000_000_000


@bug("MUT-CRI-03", breaks="CRI-03")
class NoId(RuntimeCore):
    """The id of a new sandbox is not returned."""

    def run_pod_sandbox(self, request: cri.RunPodSandboxRequest) -> cri.RunPodSandboxResponse:
        super().run_pod_sandbox(request)
        return cri.RunPodSandboxResponse()


@bug("MUT-CRI-17", breaks="CRI-17")
class RemovesTheDead(Store):
    """A container is removed when it ends."""

    def finish(self, container: Container, code: int, *, reason: str = "", op: str = "exited") -> None:
        super().finish(container, code, reason=reason, op=op)
        self.drop_container(container)

    def drop_container(self, container: Container) -> None:
        if container.id in self.containers:
            super().drop_container(container)


@bug("MUT-CRI-18", breaks="CRI-18")
class NothingEmpty(RuntimeCore):
    """Labels and annotations with empty values are lost."""

    def run_pod_sandbox(self, request: cri.RunPodSandboxRequest) -> cri.RunPodSandboxResponse:
        kept = cri.RunPodSandboxRequest()
        kept.CopyFrom(request)
        _drop_empty(kept.config.labels, kept.config.annotations)
        return super().run_pod_sandbox(kept)

    def create_container(self, request: cri.CreateContainerRequest) -> cri.CreateContainerResponse:
        kept = cri.CreateContainerRequest()
        kept.CopyFrom(request)
        _drop_empty(kept.config.labels, kept.config.annotations)
        return super().create_container(kept)


def _drop_empty(*maps: MutableMapping[str, str]) -> None:
    for pairs in maps:
        for key in [key for key, value in pairs.items() if not value]:
            del pairs[key]


@bug("MUT-CRI-34", breaks="CRI-34")
class ImageUnknown(RuntimeCore):
    """The status of a container lacks its image."""

    def container_status(self, request: cri.ContainerStatusRequest) -> cri.ContainerStatusResponse:
        reply = cri.ContainerStatusResponse()
        reply.CopyFrom(super().container_status(request))
        reply.status.ClearField("image_ref")
        return reply


@bug("MUT-CRI-43", breaks="CRI-43")
class DeadAreErrors(RuntimeCore):
    """The status of a dead sandbox is an error, as its task is not found."""

    def pod_sandbox_status(self, request: cri.PodSandboxStatusRequest) -> cri.PodSandboxStatusResponse:
        if not self.sandbox(request.pod_sandbox_id).ready:
            raise CallError(grpc.StatusCode.UNKNOWN, f"task {request.pod_sandbox_id}: no running task found")
        return super().pod_sandbox_status(request)


@bug("CRIO-1328", breaks="CRI-22", aliases=("R06", "PELAGOS-410"))
class EverythingIsOfThePod(RuntimeCore):
    """A sandbox on the host's network is reported with a network of its own."""

    def pod_sandbox_status(self, request: cri.PodSandboxStatusRequest) -> cri.PodSandboxStatusResponse:
        reply = cri.PodSandboxStatusResponse()
        reply.CopyFrom(super().pod_sandbox_status(request))
        reply.status.linux.namespaces.options.Clear()
        return reply


@bug("MUT-CRI-16-B", breaks="CRI-16")
class EndsWhenRead(RuntimeCore):
    """That a container has ended is reported with the time of the answer."""

    def container_status(self, request: cri.ContainerStatusRequest) -> cri.ContainerStatusResponse:
        reply = cri.ContainerStatusResponse()
        reply.CopyFrom(super().container_status(request))
        if reply.status.finished_at:
            reply.status.finished_at = self.store.wall
        return reply


@bug("CRIO-6580", breaks="CRI-16", aliases=("R15", "CTRD-12260"))
class LateReason(RuntimeCore):
    """That a container was killed for lack of memory is reported only at the second read."""

    def container_status(self, request: cri.ContainerStatusRequest) -> cri.ContainerStatusResponse:
        reply = super().container_status(request)
        container = self.container(request.container_id)
        if container.reason != "OOMKilled" or container.id in self._reported:
            return reply
        self._reported.add(container.id)
        early = cri.ContainerStatusResponse()
        early.CopyFrom(reply)
        early.status.reason = "Error"
        return early

    @property
    def _reported(self) -> set[str]:
        """The containers whose end was reported."""
        found: set[str] = self.__dict__.setdefault("_ends_reported", set())
        return found


@bug("DOCK-35344", breaks="CRI-12", aliases=("R16", "DOCK-29580"))
class FailedStartStays(RuntimeCore):
    """A container that could not be started goes on waiting to be started."""

    def fail_start(self, container: Container) -> None:
        """Do nothing."""


@bug("CRIO-390", breaks="CRI-09", aliases=("R18", "DOCK-35930"))
class OneBadSpoilsAll(RuntimeCore):
    """No container is listed as long as one of them is broken."""

    def list_containers(self, request: cri.ListContainersRequest) -> cri.ListContainersResponse:
        for container in self.store.containers.values():
            if container.state == cri.CONTAINER_UNKNOWN:
                raise CallError(grpc.StatusCode.UNKNOWN, f"container {container.id} has no exit file")
        return super().list_containers(request)


@bug("K8S-83050", breaks="CRI-10", aliases=("R29", "K8S-127948"))
class OlderAndOlder(Store):
    """What is made later has the earlier time of creation."""

    def stamp(self) -> int:
        self._latest_stamp = (self._latest_stamp or self.wall) - _NS
        return self._latest_stamp


@bug("MUT-CRI-01", breaks="CRI-01")
class NoVersion(NodeCalls):
    """The runtime does not report its version."""

    def version(self, request: cri.VersionRequest) -> cri.VersionResponse:
        reply = cri.VersionResponse()
        reply.CopyFrom(super().version(request))
        reply.ClearField("runtime_version")
        return reply


@bug("MUT-CRI-02", breaks="CRI-02")
class OnlyTheRuntime(NodeCalls):
    """The runtime does not report whether the network is ready."""

    def status(self, request: cri.StatusRequest) -> cri.StatusResponse:
        reply = cri.StatusResponse()
        reply.CopyFrom(super().status(request))
        del reply.status.conditions[1:]
        return reply


@bug("MUT-CRI-33", breaks="CRI-33")
class OneAtATime(FakeRuntime):
    """While a container is being stopped no sandbox is run for anybody."""

    @property
    def _turn(self) -> AbstractAsyncContextManager[None]:
        """Whose turn it is."""
        lock: asyncio.Lock = self.__dict__.setdefault("_one_lock", asyncio.Lock())
        return lock

    async def RunPodSandbox(
        self, request: cri.RunPodSandboxRequest, *, timeout: float | None = None
    ) -> cri.RunPodSandboxResponse:
        async with self._turn:
            return await super().RunPodSandbox(request, timeout=timeout)

    async def StopContainer(
        self, request: cri.StopContainerRequest, *, timeout: float | None = None
    ) -> cri.StopContainerResponse:
        async with self._turn:
            return await super().StopContainer(request, timeout=timeout)
