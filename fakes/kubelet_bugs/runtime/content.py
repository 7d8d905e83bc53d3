"""Runtimes whose records say what is not so."""

from __future__ import annotations

import grpc
from cri_api.v1 import api_pb2 as cri

from kubelet_bugs.bug import bug
from kubelet_fakes.runtime.core import RuntimeCore
from kubelet_fakes.runtime.errors import CallError
from kubelet_fakes.runtime.records import Container
from kubelet_fakes.runtime.store import Store

_NS = 1_000_000_000


@bug("CRIO-1328", breaks="CRI-22", aliases=("R06", "PELAGOS-410"))
class EverythingIsOfThePod(RuntimeCore):
    """A sandbox on the host's network is told to have a network of its own."""

    def pod_sandbox_status(self, request: cri.PodSandboxStatusRequest) -> cri.PodSandboxStatusResponse:
        reply = cri.PodSandboxStatusResponse()
        reply.CopyFrom(super().pod_sandbox_status(request))
        reply.status.linux.namespaces.options.Clear()
        return reply


@bug("CRIO-6580", breaks="CRI-16", aliases=("R15", "CTRD-12260"))
class LateReason(RuntimeCore):
    """That a container was killed for lack of memory is told only at the second look."""

    def container_status(self, request: cri.ContainerStatusRequest) -> cri.ContainerStatusResponse:
        reply = super().container_status(request)
        container = self.container(request.container_id)
        if container.reason != "OOMKilled" or container.id in self._told:
            return reply
        self._told.add(container.id)
        early = cri.ContainerStatusResponse()
        early.CopyFrom(reply)
        early.status.reason = "Error"
        return early

    @property
    def _told(self) -> set[str]:
        """The containers whose end was told."""
        found: set[str] = self.__dict__.setdefault("_ends_told", set())
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
