"""Runtimes that say too little of themselves, or let everybody wait for one."""

from __future__ import annotations

import asyncio
from contextlib import AbstractAsyncContextManager

from cri_api.v1 import api_pb2 as cri

from kubelet_bugs.bug import Bug
from kubelet_fakes.runtime.node_calls import NodeCalls
from kubelet_fakes.runtime.parts import RuntimeParts
from kubelet_fakes.runtime.service import FakeRuntime
from kubelet_reference.parts import Parts


class _NoVersion(NodeCalls):
    """Tells its name and not its version, as one does that was built without it."""

    def version(self, request: cri.VersionRequest) -> cri.VersionResponse:
        reply = cri.VersionResponse()
        reply.CopyFrom(super().version(request))
        reply.ClearField("runtime_version")
        return reply


class _OnlyTheRuntime(NodeCalls):
    """Tells whether the runtime is ready, and leaves the network to others."""

    def status(self, request: cri.StatusRequest) -> cri.StatusResponse:
        reply = cri.StatusResponse()
        reply.CopyFrom(super().status(request))
        del reply.status.conditions[1:]
        return reply


class _OneAtATime(FakeRuntime):
    """Works on one sandbox at a time, under one lock for all."""

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


BUGS = (
    Bug(
        id="MUT-CRI-01",
        title="The runtime does not tell its version.",
        parts=Parts,
        runtime=lambda: RuntimeParts(node_calls=_NoVersion),
        breaks=("CRI-01",),
    ),
    Bug(
        id="MUT-CRI-02",
        title="The runtime does not tell whether the network is ready.",
        parts=Parts,
        runtime=lambda: RuntimeParts(node_calls=_OnlyTheRuntime),
        breaks=("CRI-02",),
    ),
    Bug(
        id="MUT-CRI-33",
        title="While a container is being stopped no sandbox is run for anybody.",
        parts=Parts,
        runtime=lambda: RuntimeParts(runtime=_OneAtATime),
        breaks=("CRI-33",),
    ),
)
