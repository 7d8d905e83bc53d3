"""A containerd of our own, started for a run; each life of a node finds its images as they were."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from cri_api.v1 import api_pb2 as cri

from kubelet_conformance.targets.choice import TargetError
from kubelet_conformance.targets.containerd import CannotRunError, PrivateContainerd, RemovalError, StartError
from kubelet_conformance.targets.containerd.tools import ToolError

if TYPE_CHECKING:
    from kubelet_conformance.targets.live.endpoint import Services


CONTROLS = frozenset({"set_file", "add_image", "publish_image"})
"""What it can be made to do beyond the CRI."""
_CALL_SECONDS = 30.0


class OwnContainerd:
    """A private containerd, and what scenarios did to its images and registry."""

    def __init__(self, containerd: PrivateContainerd) -> None:
        self._containerd = containerd
        self._images: frozenset[str] | None = None
        self._unpublished: set[str] = set()

    @property
    def socket(self) -> Path:
        """Where it listens."""
        return self._containerd.socket

    def set_file(self, name: str, *, there: bool) -> None:
        """What `xf NAME` finds."""
        self._containerd.set_file(name, there=there)

    def add_image(self, name: str, *, user: str = "") -> None:
        """Put an image onto the node."""
        self._containerd.add_image(name, user=user)

    def publish_image(self, name: str, *, there: bool = True) -> None:
        """Whether the registry has it."""
        self._containerd.publish_image(name, there=there)
        (self._unpublished.discard if there else self._unpublished.add)(name)

    async def restore(self, services: Services) -> None:
        """Take away the images that came since the first time, and publish what is no longer."""
        for name in sorted(self._unpublished):
            self.publish_image(name)
        found = await services.ListImages(cri.ListImagesRequest(), timeout=_CALL_SECONDS)
        there = frozenset(each.id for each in found.images)
        if self._images is None:
            self._images = there
        for image in sorted(there - self._images):
            request = cri.RemoveImageRequest(image=cri.ImageSpec(image=image))
            await services.RemoveImage(request, timeout=_CALL_SECONDS)


@asynccontextmanager
async def own_containerd() -> AsyncGenerator[OwnContainerd]:
    """One that runs for as long as the context is open; raises `TargetError` where none can."""
    containerd = PrivateContainerd()
    try:
        await containerd.start()
    except (CannotRunError, StartError, ToolError) as error:
        raise TargetError(f"no containerd can be started here: {error}") from None
    try:
        yield OwnContainerd(containerd)
    finally:
        try:
            containerd.stop()
        except RemovalError as error:
            raise TargetError(f"the private containerd cannot be removed: {error}") from None
