"""Runtimes that do not stop what they are asked to stop, or not when."""

from __future__ import annotations

import grpc
from cri_api.v1 import api_pb2 as cri

from kubelet_bugs.bug import bug
from kubelet_fakes.runtime.core import RuntimeCore
from kubelet_fakes.runtime.errors import CallError
from kubelet_fakes.runtime.records import Container, Sandbox

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
    """A container of unknown state is told to be stopped, is not, and can never be removed."""

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
