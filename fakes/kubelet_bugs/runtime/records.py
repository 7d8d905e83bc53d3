"""Runtimes whose records lack something, or are not there."""

from __future__ import annotations

from collections.abc import MutableMapping

from cri_api.v1 import api_pb2 as cri

from kubelet_bugs.bug import bug
from kubelet_fakes.runtime.core import RuntimeCore
from kubelet_fakes.runtime.records import Container
from kubelet_fakes.runtime.store import Store


@bug("MUT-CRI-03", breaks="CRI-03")
class NoId(RuntimeCore):
    """The id of a new sandbox is not returned."""

    def run_pod_sandbox(self, request: cri.RunPodSandboxRequest) -> cri.RunPodSandboxResponse:
        super().run_pod_sandbox(request)
        return cri.RunPodSandboxResponse()


@bug("MUT-CRI-17", breaks="CRI-17")
class RemovesTheDead(Store):
    """A container is removed when it ends."""

    def finish(self, container: Container, code: int, *, reason: str = "", op: str = "exited") -> None:
        super().finish(container, code, reason=reason, op=op)
        self.drop_container(container)

    def drop_container(self, container: Container) -> None:
        if container.id in self.containers:
            super().drop_container(container)


@bug("MUT-CRI-18", breaks="CRI-18")
class NothingEmpty(RuntimeCore):
    """Labels and annotations with empty values are lost."""

    def run_pod_sandbox(self, request: cri.RunPodSandboxRequest) -> cri.RunPodSandboxResponse:
        kept = cri.RunPodSandboxRequest()
        kept.CopyFrom(request)
        _drop_empty(kept.config.labels, kept.config.annotations)
        return super().run_pod_sandbox(kept)

    def create_container(self, request: cri.CreateContainerRequest) -> cri.CreateContainerResponse:
        kept = cri.CreateContainerRequest()
        kept.CopyFrom(request)
        _drop_empty(kept.config.labels, kept.config.annotations)
        return super().create_container(kept)


def _drop_empty(*maps: MutableMapping[str, str]) -> None:
    for pairs in maps:
        for key in [key for key, value in pairs.items() if not value]:
            del pairs[key]


@bug("MUT-CRI-34", breaks="CRI-34")
class ImageUnknown(RuntimeCore):
    """The status of a container does not tell its image."""

    def container_status(self, request: cri.ContainerStatusRequest) -> cri.ContainerStatusResponse:
        reply = cri.ContainerStatusResponse()
        reply.CopyFrom(super().container_status(request))
        reply.status.ClearField("image_ref")
        return reply
