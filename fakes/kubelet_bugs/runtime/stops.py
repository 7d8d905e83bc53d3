"""Runtimes that do not stop or remove what they are asked to."""

from collections.abc import Container as Holds

import grpc
from cri_api.v1 import api_pb2 as cri

from kubelet_bugs.bug import bug
from kubelet_fakes.runtime.core import BegunExec, RuntimeCore
from kubelet_fakes.runtime.errors import CallError
from kubelet_fakes.runtime.records import Container, Sandbox
from kubelet_fakes.runtime.service import FakeRuntime
from kubelet_fakes.runtime.store import KILLED

_NS = 1_000_000_000
_LEAST_SECONDS = 10


@bug("CTRD-CRI-75", breaks="CRI-13", aliases=("R10", "CRIO-512"))
class AtLeastTen(RuntimeCore):
    """A container is given ten seconds even where it is to be killed at once."""

    def _stop(self, container: Container, grace: int) -> None:
        super()._stop(container, max(grace, _LEAST_SECONDS * _NS))


@bug("CRIO-1419", breaks="CRI-13", aliases="CRIO-1327")
class KillsAtOnce(RuntimeCore):
    """A container that is asked to end is killed long before its time is over."""

    def _stop(self, container: Container, grace: int) -> None:
        super()._stop(container, min(grace, _NS // 10))


@bug("CRIO-8030", breaks="CRI-13", aliases="R08")
class OneStopAtATime(RuntimeCore):
    """A second stop of a container waits for the first one, however little time it gives."""

    def _stop(self, container: Container, grace: int) -> None:
        if container.kill_at is None:
            super()._stop(container, grace)


@bug("CTRD-4655", breaks="CRI-14", aliases=("R11", "CTRD-8647"))
class UnknownStaysUnknown(RuntimeCore):
    """A stop of a container in an unknown state is ignored, and the container can never be removed."""

    def stop_container(self, request: cri.StopContainerRequest) -> cri.StopContainerResponse:
        container = self.store.containers.get(request.container_id)
        if container is not None and container.state == cri.CONTAINER_UNKNOWN:
            return cri.StopContainerResponse()
        return super().stop_container(request)

    def remove_container(self, request: cri.RemoveContainerRequest) -> cri.RemoveContainerResponse:
        container = self.store.containers.get(request.container_id)
        if container is not None and container.state == cri.CONTAINER_UNKNOWN:
            raise CallError(grpc.StatusCode.UNKNOWN, "container state is unknown, to stop first")
        return super().remove_container(request)


@bug("K8S-83068", breaks="CRI-05", aliases="R27")
class ContainersSurvive(RuntimeCore):
    """Containers outlive their sandbox when it is stopped."""

    def _stop_sandbox(self, sandbox: Sandbox) -> None:
        if sandbox.ready:
            self.store.unready(sandbox)


@bug("CRIO-240", breaks=("CRI-05", "CRI-06", "CRI-15"), aliases=("R21", "CTRD-10520", "CTRD-8953"))
class OnlyOnce(RuntimeCore):
    """To stop or remove what is gone already is an error."""

    def stop_pod_sandbox(self, request: cri.StopPodSandboxRequest) -> cri.StopPodSandboxResponse:
        self._refuse_gone(request.pod_sandbox_id, self.store.sandboxes)
        return super().stop_pod_sandbox(request)

    def remove_pod_sandbox(self, request: cri.RemovePodSandboxRequest) -> cri.RemovePodSandboxResponse:
        self._refuse_gone(request.pod_sandbox_id, self.store.sandboxes)
        return super().remove_pod_sandbox(request)

    def remove_container(self, request: cri.RemoveContainerRequest) -> cri.RemoveContainerResponse:
        self._refuse_gone(request.container_id, self.store.containers)
        return super().remove_container(request)

    @staticmethod
    def _refuse_gone(one: str, records: Holds[str]) -> None:
        if one not in records:
            raise CallError(grpc.StatusCode.UNKNOWN, f"{one}: does not exist")


@bug("K8S-110181", breaks="CRI-07", aliases="R22")
class AnyError(RuntimeCore):
    """The status of an unknown id is answered by Unknown."""

    def pod_sandbox_status(self, request: cri.PodSandboxStatusRequest) -> cri.PodSandboxStatusResponse:
        if request.pod_sandbox_id not in self.store.sandboxes:
            raise CallError(grpc.StatusCode.UNKNOWN, f"{request.pod_sandbox_id}: does not exist")
        return super().pod_sandbox_status(request)

    def container_status(self, request: cri.ContainerStatusRequest) -> cri.ContainerStatusResponse:
        if request.container_id not in self.store.containers:
            raise CallError(grpc.StatusCode.UNKNOWN, f"{request.container_id}: does not exist")
        return super().container_status(request)


@bug("MUT-CRI-08", breaks="CRI-08")
class UnknownStopFails(RuntimeCore):
    """To stop a container that is gone is an internal error."""

    def stop_container(self, request: cri.StopContainerRequest) -> cri.StopContainerResponse:
        if request.container_id not in self.store.containers:
            raise CallError(grpc.StatusCode.INTERNAL, f"{request.container_id}: no state file")
        return super().stop_container(request)


@bug("DOCK-55028", breaks="CRI-06", aliases=("R19", "POUCH-2073", "DOCK-43021"))
class ListsPhantoms(RuntimeCore):
    """Sandboxes that were removed are listed for ever and cannot be stopped."""

    def list_pod_sandbox(self, request: cri.ListPodSandboxRequest) -> cri.ListPodSandboxResponse:
        reply = super().list_pod_sandbox(request)
        if request.HasField("filter"):
            return reply
        with_phantoms = cri.ListPodSandboxResponse()
        with_phantoms.CopyFrom(reply)
        with_phantoms.items.extend(self._removed.values())
        return with_phantoms

    def remove_pod_sandbox(self, request: cri.RemovePodSandboxRequest) -> cri.RemovePodSandboxResponse:
        sandbox = self.store.sandboxes.get(request.pod_sandbox_id)
        reply = super().remove_pod_sandbox(request)
        if sandbox is not None:
            self._removed[sandbox.id] = sandbox.listed()
        return reply

    def stop_pod_sandbox(self, request: cri.StopPodSandboxRequest) -> cri.StopPodSandboxResponse:
        if request.pod_sandbox_id in self._removed:
            raise CallError(grpc.StatusCode.UNKNOWN, "no such container")
        return super().stop_pod_sandbox(request)

    @property
    def _removed(self) -> dict[str, cri.PodSandbox]:
        """The sandboxes that were removed, as they were last listed."""
        found: dict[str, cri.PodSandbox] = self.__dict__.setdefault("_phantoms", {})
        return found


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
