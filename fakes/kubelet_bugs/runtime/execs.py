"""Runtimes that execute commands without regard to their time limit, or to the container."""

from __future__ import annotations

from cri_api.v1 import api_pb2 as cri

from kubelet_bugs.bug import Bug
from kubelet_fakes.runtime.core import RuntimeCore
from kubelet_fakes.runtime.execs import BegunExec
from kubelet_fakes.runtime.parts import RuntimeParts
from kubelet_fakes.runtime.service import FakeRuntime
from kubelet_fakes.runtime.store import KILLED
from kubelet_reference.parts import Parts


class _NoLimit(RuntimeCore):
    """Waits for the command's own end."""

    def begin_exec(self, request: cri.ExecSyncRequest) -> BegunExec:
        unlimited = cri.ExecSyncRequest()
        unlimited.CopyFrom(request)
        unlimited.timeout = 0
        return super().begin_exec(unlimited)


class _StopsTheContainer(FakeRuntime):
    """Ends a command that is late by ending the container around it."""

    async def _once_executed(self, begun: BegunExec) -> cri.ExecSyncResponse:
        try:
            return await super()._once_executed(begun)
        finally:
            if begun.is_cut_short and begun.container.is_running:
                self.core.store.finish(begun.container, KILLED)


BUGS = (
    Bug(
        id="K8S-92057",
        title="A command is waited for however long it takes.",
        parts=Parts,
        runtime=lambda: RuntimeParts(core=_NoLimit),
        breaks=("CRI-26",),
        aliases=("R24",),
    ),
    Bug(
        id="PELAGOS-339",
        title="A command that is late takes its container with it.",
        parts=Parts,
        runtime=lambda: RuntimeParts(runtime=_StopsTheContainer),
        breaks=("CRI-26",),
    ),
)
