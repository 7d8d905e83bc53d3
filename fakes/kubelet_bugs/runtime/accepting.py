"""Runtimes that accept what cannot be meant."""

from __future__ import annotations

from cri_api.v1 import api_pb2 as cri

from kubelet_bugs.bug import Bug
from kubelet_fakes.runtime.core import RuntimeCore
from kubelet_fakes.runtime.execs import BegunExec
from kubelet_fakes.runtime.parts import RuntimeParts
from kubelet_fakes.runtime.records import Container, Sandbox
from kubelet_fakes.runtime.script import parse_execution
from kubelet_reference.parts import Parts


class _Twins(RuntimeCore):
    """Makes a sandbox whether one of its name and attempt is there or not."""

    def _check_name(self, metadata: cri.PodSandboxMetadata) -> None:
        """Check nothing."""


class _AnyHandler(RuntimeCore):
    """Runs a sandbox by the default handler where the one that was asked for is not there."""

    def run_pod_sandbox(self, request: cri.RunPodSandboxRequest) -> cri.RunPodSandboxResponse:
        if request.runtime_handler not in self.settings.handlers:
            request = cri.RunPodSandboxRequest(config=request.config)
        return super().run_pod_sandbox(request)


class _AnyTarget(RuntimeCore):
    """Lets a container see the processes of any other."""

    def _check_target(self, sandbox: Sandbox, config: cri.ContainerConfig) -> None:
        """Check nothing."""


class _ExecsAnywhere(RuntimeCore):
    """Executes a command wherever there are files to execute it in."""

    def begin_exec(self, request: cri.ExecSyncRequest) -> BegunExec:
        container = self.container(request.container_id)
        if container.is_running:
            return super().begin_exec(request)
        return _InTheDead(container, parse_execution(tuple(request.cmd)), self.now, 0, self.files)


class _InTheDead(BegunExec):
    """A command that has ended well."""

    def result(self) -> cri.ExecSyncResponse:
        return cri.ExecSyncResponse()


class _HalfAnUpdate(RuntimeCore):
    """Sets one resource after the other, and stops at the first that cannot be set."""

    def update_container_resources(
        self, request: cri.UpdateContainerResourcesRequest
    ) -> cri.UpdateContainerResourcesResponse:
        container = self.container(request.container_id)
        if request.linux.memory_limit_in_bytes > 0:
            self._limit_memory(container, request.linux.memory_limit_in_bytes)
        return super().update_container_resources(request)

    def _limit_memory(self, container: Container, limit_bytes: int) -> None:
        container.config.linux.resources.memory_limit_in_bytes = limit_bytes
        self.store.resized(container)


BUGS = (
    Bug(
        id="MUT-CRI-04",
        title="One attempt of a sandbox can be run twice.",
        parts=Parts,
        runtime=lambda: RuntimeParts(core=_Twins),
        breaks=("CRI-04",),
    ),
    Bug(
        id="MUT-CRI-27",
        title="A command in a container that does not run is said to have ended well.",
        parts=Parts,
        runtime=lambda: RuntimeParts(core=_ExecsAnywhere),
        breaks=("CRI-27",),
    ),
    Bug(
        id="MUT-CRI-28",
        title="An update of resources that is refused takes place in part.",
        parts=Parts,
        runtime=lambda: RuntimeParts(core=_HalfAnUpdate),
        breaks=("CRI-28",),
    ),
    Bug(
        id="MUT-CRI-35",
        title="A sandbox with an unknown runtime handler is run by the default one.",
        parts=Parts,
        runtime=lambda: RuntimeParts(core=_AnyHandler),
        breaks=("CRI-35",),
    ),
    Bug(
        id="MUT-CRI-37",
        title="A container can be given the processes of a container of another sandbox.",
        parts=Parts,
        runtime=lambda: RuntimeParts(core=_AnyTarget),
        breaks=("CRI-37",),
    ),
)
