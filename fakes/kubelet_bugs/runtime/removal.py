"""Runtimes that cannot let go, or do not know any more what they have let go."""

from __future__ import annotations

from collections.abc import Container as Holds

import grpc
from cri_api.v1 import api_pb2 as cri

from kubelet_bugs.bug import Bug
from kubelet_fakes.runtime.core import RuntimeCore
from kubelet_fakes.runtime.errors import CallError
from kubelet_fakes.runtime.parts import RuntimeParts
from kubelet_reference.parts import Parts


class _OnlyOnce(RuntimeCore):
    """Refuses to remove, or to stop, what is gone."""

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


class _AnyError(RuntimeCore):
    """Answers with Unknown for an id that it does not have."""

    def pod_sandbox_status(self, request: cri.PodSandboxStatusRequest) -> cri.PodSandboxStatusResponse:
        if request.pod_sandbox_id not in self.store.sandboxes:
            raise CallError(grpc.StatusCode.UNKNOWN, f"{request.pod_sandbox_id}: does not exist")
        return super().pod_sandbox_status(request)

    def container_status(self, request: cri.ContainerStatusRequest) -> cri.ContainerStatusResponse:
        if request.container_id not in self.store.containers:
            raise CallError(grpc.StatusCode.UNKNOWN, f"{request.container_id}: does not exist")
        return super().container_status(request)


class _UnknownStopFails(RuntimeCore):
    """Fails to stop a container that it does not have."""

    def stop_container(self, request: cri.StopContainerRequest) -> cri.StopContainerResponse:
        if request.container_id not in self.store.containers:
            raise CallError(grpc.StatusCode.INTERNAL, f"{request.container_id}: no state file")
        return super().stop_container(request)


class _ListsPhantoms(RuntimeCore):
    """Lists what was removed, and knows nothing of it."""

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


BUGS = (
    Bug(
        id="CRIO-240",
        title="To stop or remove what is gone already is an error.",
        parts=Parts,
        runtime=lambda: RuntimeParts(core=_OnlyOnce),
        breaks=("CRI-05", "CRI-06", "CRI-15"),
        aliases=("R21", "CTRD-10520", "CTRD-8953"),
    ),
    Bug(
        id="K8S-110181",
        title="The status of an unknown id is answered by Unknown.",
        parts=Parts,
        runtime=lambda: RuntimeParts(core=_AnyError),
        breaks=("CRI-07",),
        aliases=("R22",),
    ),
    Bug(
        id="MUT-CRI-08",
        title="To stop a container that is gone is an internal error.",
        parts=Parts,
        runtime=lambda: RuntimeParts(core=_UnknownStopFails),
        breaks=("CRI-08",),
    ),
    Bug(
        id="DOCK-55028",
        title="Sandboxes that were removed are listed for ever and cannot be stopped.",
        parts=Parts,
        runtime=lambda: RuntimeParts(core=_ListsPhantoms),
        breaks=("CRI-06",),
        aliases=("R19", "POUCH-2073", "DOCK-43021"),
    ),
)
