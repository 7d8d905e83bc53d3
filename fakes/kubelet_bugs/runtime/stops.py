"""Runtimes that do not stop what they are asked to stop, or not when."""

from __future__ import annotations

import grpc
from cri_api.v1 import api_pb2 as cri

from kubelet_bugs.bug import Bug
from kubelet_fakes.runtime.core import RuntimeCore
from kubelet_fakes.runtime.errors import CallError
from kubelet_fakes.runtime.parts import RuntimeParts
from kubelet_fakes.runtime.records import Container, Sandbox
from kubelet_reference.parts import Parts

_NS = 1_000_000_000
_LEAST_SECONDS = 10


class _AtLeastTen(RuntimeCore):
    """Gives every process ten seconds, whatever was asked for."""

    def _stop(self, container: Container, grace: int) -> None:
        super()._stop(container, max(grace, _LEAST_SECONDS * _NS))


class _KillsAtOnce(RuntimeCore):
    """Looks once whether the process has ended, and kills it if not."""

    def _stop(self, container: Container, grace: int) -> None:
        super()._stop(container, min(grace, _NS // 10))


class _OneStopAtATime(RuntimeCore):
    """A second stop waits for the first, and so shortens nothing."""

    def _stop(self, container: Container, grace: int) -> None:
        if container.kill_at is None:
            super()._stop(container, grace)


class _UnknownStaysUnknown(RuntimeCore):
    """Says that a container of unknown state was stopped, leaves it as it is, and never removes it."""

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


class _ContainersSurvive(RuntimeCore):
    """Stops a sandbox and lets what runs in it go on."""

    def _stop_sandbox(self, sandbox: Sandbox) -> None:
        if sandbox.ready:
            self.store.unready(sandbox)


BUGS = (
    Bug(
        id="CTRD-CRI-75",
        title="A container is given ten seconds even where it is to be killed at once.",
        parts=Parts,
        runtime=lambda: RuntimeParts(core=_AtLeastTen),
        breaks=("CRI-13",),
        aliases=("R10", "CRIO-512"),
    ),
    Bug(
        id="CRIO-1419",
        title="A container that is asked to end is killed long before its time is over.",
        parts=Parts,
        runtime=lambda: RuntimeParts(core=_KillsAtOnce),
        breaks=("CRI-13",),
        aliases=("CRIO-1327",),
    ),
    Bug(
        id="CRIO-8030",
        title="A second stop of a container waits for the first one, however little time it gives.",
        parts=Parts,
        runtime=lambda: RuntimeParts(core=_OneStopAtATime),
        breaks=("CRI-13",),
        aliases=("R08",),
    ),
    Bug(
        id="CTRD-4655",
        title="A container of unknown state is told to be stopped, is not, and can never be removed.",
        parts=Parts,
        runtime=lambda: RuntimeParts(core=_UnknownStaysUnknown),
        breaks=("CRI-14",),
        aliases=("R11", "CTRD-8647"),
    ),
    Bug(
        id="K8S-83068",
        title="Containers outlive their sandbox when it is stopped.",
        parts=Parts,
        runtime=lambda: RuntimeParts(core=_ContainersSurvive),
        breaks=("CRI-05",),
        aliases=("R27",),
    ),
)
