"""Runtimes that say too little of themselves, or let everybody wait for one."""

from __future__ import annotations

import asyncio
from contextlib import AbstractAsyncContextManager

from cri_api.v1 import api_pb2 as cri

from kubelet_bugs.bug import bug
from kubelet_fakes.runtime.node_calls import NodeCalls
from kubelet_fakes.runtime.service import FakeRuntime


@bug("MUT-CRI-01", breaks="CRI-01")
class NoVersion(NodeCalls):
    """The runtime does not tell its version."""

    def version(self, request: cri.VersionRequest) -> cri.VersionResponse:
        reply = cri.VersionResponse()
        reply.CopyFrom(super().version(request))
        reply.ClearField("runtime_version")
        return reply


@bug("MUT-CRI-02", breaks="CRI-02")
class OnlyTheRuntime(NodeCalls):
    """The runtime does not tell whether the network is ready."""

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
