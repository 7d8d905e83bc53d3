"""Runtimes whose records say what is not so."""

from __future__ import annotations

import grpc
from cri_api.v1 import api_pb2 as cri

from kubelet_bugs.bug import Bug
from kubelet_fakes.runtime.core import RuntimeCore
from kubelet_fakes.runtime.errors import CallError
from kubelet_fakes.runtime.parts import RuntimeParts
from kubelet_fakes.runtime.records import Container
from kubelet_fakes.runtime.store import Store
from kubelet_reference.parts import Parts

_NS = 1_000_000_000


class _EverythingIsOfThePod(RuntimeCore):
    """Tells the modes of every sandbox's namespaces as the default, POD."""

    def pod_sandbox_status(self, request: cri.PodSandboxStatusRequest) -> cri.PodSandboxStatusResponse:
        reply = cri.PodSandboxStatusResponse()
        reply.CopyFrom(super().pod_sandbox_status(request))
        reply.status.linux.namespaces.options.Clear()
        return reply


class _LateReason(RuntimeCore):
    """Learns after the exit was told that it was for lack of memory."""

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


class _FailedStartStays(RuntimeCore):
    """Leaves a container that could not be started as if nobody had tried."""

    def fail_start(self, container: Container) -> None:
        """Do nothing."""


class _OneBadSpoilsAll(RuntimeCore):
    """Lists nothing as long as one of the containers is broken, here: of unknown state."""

    def list_containers(self, request: cri.ListContainersRequest) -> cri.ListContainersResponse:
        for container in self.store.containers.values():
            if container.state == cri.CONTAINER_UNKNOWN:
                raise CallError(grpc.StatusCode.UNKNOWN, f"container {container.id} has no exit file")
        return super().list_containers(request)


class _OlderAndOlder(Store):
    """Stamps what is made by a clock that runs backwards."""

    def stamp(self) -> int:
        self._latest_stamp = (self._latest_stamp or self.wall) - _NS
        return self._latest_stamp


BUGS = (
    Bug(
        id="CRIO-1328",
        title="A sandbox on the host's network is told to have a network of its own.",
        parts=Parts,
        runtime=lambda: RuntimeParts(core=_EverythingIsOfThePod),
        breaks=("CRI-22",),
        aliases=("R06", "PELAGOS-410"),
    ),
    Bug(
        id="CRIO-6580",
        title="That a container was killed for lack of memory is told only at the second look.",
        parts=Parts,
        runtime=lambda: RuntimeParts(core=_LateReason),
        breaks=("CRI-16",),
        aliases=("R15", "CTRD-12260"),
    ),
    Bug(
        id="DOCK-35344",
        title="A container that could not be started goes on waiting to be started.",
        parts=Parts,
        runtime=lambda: RuntimeParts(core=_FailedStartStays),
        breaks=("CRI-12",),
        aliases=("R16", "DOCK-29580"),
    ),
    Bug(
        id="CRIO-390",
        title="No container is listed as long as one of them is broken.",
        parts=Parts,
        runtime=lambda: RuntimeParts(core=_OneBadSpoilsAll),
        breaks=("CRI-09",),
        aliases=("R18", "DOCK-35930"),
    ),
    Bug(
        id="K8S-83050",
        title="What is made later has the earlier time of creation.",
        parts=Parts,
        runtime=lambda: RuntimeParts(store=_OlderAndOlder),
        breaks=("CRI-10",),
        aliases=("R29", "K8S-127948"),
    ),
)
