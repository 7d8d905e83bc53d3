"""Runtimes whose records lack something, or are not there."""

from __future__ import annotations

from collections.abc import MutableMapping

from cri_api.v1 import api_pb2 as cri

from kubelet_bugs.bug import Bug
from kubelet_fakes.runtime.core import RuntimeCore
from kubelet_fakes.runtime.parts import RuntimeParts
from kubelet_fakes.runtime.records import Container
from kubelet_fakes.runtime.store import Store
from kubelet_reference.parts import Parts


class _NoId(RuntimeCore):
    """Makes a sandbox and does not say which."""

    def run_pod_sandbox(self, request: cri.RunPodSandboxRequest) -> cri.RunPodSandboxResponse:
        super().run_pod_sandbox(request)
        return cri.RunPodSandboxResponse()


class _RemovesTheDead(Store):
    """Removes a container as soon as it has ended."""

    def finish(self, container: Container, code: int, *, reason: str = "", op: str = "exited") -> None:
        super().finish(container, code, reason=reason, op=op)
        self.drop_container(container)

    def drop_container(self, container: Container) -> None:
        if container.id in self.containers:
            super().drop_container(container)


class _NothingEmpty(RuntimeCore):
    """Takes an empty value for one that was not given."""

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


class _ImageUnknown(RuntimeCore):
    """Does not tell from which image a container was made."""

    def container_status(self, request: cri.ContainerStatusRequest) -> cri.ContainerStatusResponse:
        reply = cri.ContainerStatusResponse()
        reply.CopyFrom(super().container_status(request))
        reply.status.ClearField("image_ref")
        return reply


BUGS = (
    Bug(
        id="MUT-CRI-03",
        title="The id of a new sandbox is not returned.",
        parts=Parts,
        runtime=lambda: RuntimeParts(core=_NoId),
        breaks=("CRI-03",),
    ),
    Bug(
        id="MUT-CRI-17",
        title="A container is removed when it ends.",
        parts=Parts,
        runtime=lambda: RuntimeParts(store=_RemovesTheDead),
        breaks=("CRI-17",),
    ),
    Bug(
        id="MUT-CRI-18",
        title="Labels and annotations with empty values are lost.",
        parts=Parts,
        runtime=lambda: RuntimeParts(core=_NothingEmpty),
        breaks=("CRI-18",),
    ),
    Bug(
        id="MUT-CRI-34",
        title="The status of a container does not tell its image.",
        parts=Parts,
        runtime=lambda: RuntimeParts(core=_ImageUnknown),
        breaks=("CRI-34",),
    ),
)
