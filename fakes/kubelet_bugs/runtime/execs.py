"""Runtimes that execute commands without regard to their time limit, or to the container."""

from __future__ import annotations

from cri_api.v1 import api_pb2 as cri

from kubelet_bugs.bug import bug
from kubelet_fakes.runtime.core import RuntimeCore
from kubelet_fakes.runtime.execs import BegunExec
from kubelet_fakes.runtime.service import FakeRuntime
from kubelet_fakes.runtime.store import KILLED


@bug("K8S-92057", breaks="CRI-26", aliases="R24")
class NoLimit(RuntimeCore):
    """A command is waited for however long it takes."""

    def begin_exec(self, request: cri.ExecSyncRequest) -> BegunExec:
        unlimited = cri.ExecSyncRequest()
        unlimited.CopyFrom(request)
        unlimited.timeout = 0
        return super().begin_exec(unlimited)


@bug("PELAGOS-339", breaks="CRI-26")
class StopsTheContainer(FakeRuntime):
    """A command that is late takes its container with it."""

    async def _once_executed(self, begun: BegunExec) -> cri.ExecSyncResponse:
        try:
            return await super()._once_executed(begun)
        finally:
            if begun.is_cut_short and begun.container.is_running:
                self.core.store.finish(begun.container, KILLED)
