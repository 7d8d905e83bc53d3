"""Typed accessors on messages that only the contracts of a runtime read; see `bodies`."""

from __future__ import annotations

import msgspec

from kubelet_conformance.trace.bodies import ContainerRecord, Image, ImageSpec, LinuxResources, SandboxRecord


class UpdateContainerResourcesRequest(msgspec.Struct, frozen=True, gc=False):
    """What of a container's resources is to be changed."""

    container_id: str = ""
    linux: LinuxResources = LinuxResources()


class ContainerEvent(msgspec.Struct, frozen=True, gc=False):
    """One item of GetContainerEvents; `created_at` is nanoseconds since the epoch."""

    container_id: str = ""
    container_event_type: str = "CONTAINER_CREATED_EVENT"
    created_at: int = 0
    pod_sandbox_status: SandboxRecord | None = None
    containers_statuses: list[ContainerRecord] = []


class Amount(msgspec.Struct, frozen=True, gc=False):
    """A number that may be absent."""

    value: int = 0


class MemoryUse(msgspec.Struct, frozen=True, gc=False):
    """How many bytes a container uses; None where the runtime does not tell."""

    working_set_bytes: Amount | None = None


class ContainerStatsRecord(msgspec.Struct, frozen=True, gc=False):
    """The statistics of one container, of which only memory is read."""

    memory: MemoryUse | None = None


class ContainerStatsReply(msgspec.Struct, frozen=True, gc=False):
    """Answers ContainerStats."""

    stats: ContainerStatsRecord = ContainerStatsRecord()


class RemoveImageRequest(msgspec.Struct, frozen=True, gc=False):
    """The image by any of its names."""

    image: ImageSpec = ImageSpec()


class ListImagesReply(msgspec.Struct, frozen=True, gc=False):
    """The images on the node, or those that a filter names."""

    images: list[Image] = []
