"""Runtimes that accept what cannot be meant."""

from __future__ import annotations

from cri_api.v1 import api_pb2 as cri

from kubelet_bugs.bug import bug
from kubelet_fakes.runtime.core import RuntimeCore
from kubelet_fakes.runtime.execs import BegunExec
from kubelet_fakes.runtime.records import Container, Sandbox
from kubelet_fakes.runtime.script import parse_execution


@bug("MUT-CRI-04", breaks="CRI-04")
class Twins(RuntimeCore):
    """One attempt of a sandbox can be run twice."""

    def _check_name(self, metadata: cri.PodSandboxMetadata) -> None:
        """Check nothing."""


@bug("MUT-CRI-35", breaks="CRI-35")
class AnyHandler(RuntimeCore):
    """A sandbox with an unknown runtime handler is run by the default one."""

    def run_pod_sandbox(self, request: cri.RunPodSandboxRequest) -> cri.RunPodSandboxResponse:
        if request.runtime_handler not in self.settings.handlers:
            request = cri.RunPodSandboxRequest(config=request.config)
        return super().run_pod_sandbox(request)


@bug("MUT-CRI-37", breaks="CRI-37")
class AnyTarget(RuntimeCore):
    """A container can be given the processes of a container of another sandbox."""

    def _check_target(self, sandbox: Sandbox, config: cri.ContainerConfig) -> None:
        """Check nothing."""


@bug("MUT-CRI-27", breaks="CRI-27")
class ExecsAnywhere(RuntimeCore):
    """A command in a container that does not run is said to have ended well."""

    def begin_exec(self, request: cri.ExecSyncRequest) -> BegunExec:
        container = self.container(request.container_id)
        if container.is_running:
            return super().begin_exec(request)
        return _InTheDead(container, parse_execution(tuple(request.cmd)), self.now, 0, self.files)


class _InTheDead(BegunExec):
    """A command that has ended well."""

    def result(self) -> cri.ExecSyncResponse:
        return cri.ExecSyncResponse()


@bug("MUT-CRI-28", breaks="CRI-28")
class HalfAnUpdate(RuntimeCore):
    """An update of resources that is refused takes place in part."""

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
