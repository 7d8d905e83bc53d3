"""Removes images that no container was made from, when the disk that holds them fills up (GC-12).

Every five minutes the collector takes down which images are there and which are in use. If the disk is fuller
than the upper threshold, it removes the image that was unused longest, then the next, until enough is free to
be below the lower one. Images that are pinned, in use, or known for less than two minutes stay.
"""

import logging
import math
from collections.abc import Iterable
from dataclasses import dataclass

import grpc
from cri_api.v1 import api_pb2 as cri

from kubelet_reference.cri.errors import wrapped_text
from kubelet_reference.cri.tools import CriTools
from kubelet_reference.util.ports import Amount, NodeStats

PERIOD = 300.0
"""Seconds between two rounds."""
DISK = "imagefs.available"
_PERCENT = 100

_log = logging.getLogger("kubelet_reference.image_garbage")


@dataclass(frozen=True, slots=True)
class KnownImage:
    """An image of the node; times are seconds of the kubelet's clock.

    `last_used` is when a collection last found a container made from it, minus infinity if none ever did.
    """

    id: str
    size: int
    pinned: bool
    first_seen: float
    last_used: float


def is_full(disk: Amount, high: int) -> bool:
    """Whether the disk is filled to `high` percent."""
    return _PERCENT - disk.available * _PERCENT // disk.capacity >= high


def bytes_to_free(disk: Amount, low: int) -> int:
    """How much has to go so that the disk is filled to `low` percent."""
    return disk.capacity * (_PERCENT - low) // _PERCENT - disk.available


def removable(images: Iterable[KnownImage], now: float, minimum_age: float) -> list[KnownImage]:
    """The images that may go, as they were seen at `now`, the one unused longest first."""
    free = (one for one in images if not one.pinned and one.last_used < now)
    old = [one for one in free if now - one.first_seen >= minimum_age]
    return sorted(old, key=lambda one: (one.last_used, one.first_seen))


class ImageGCManager:
    """Removes unused images; without `stats` it is unknown how full the disk is, and nothing is removed.

    Nor is it with a threshold of 100 percent, as in the kubelet.
    """

    def __init__(self, tools: CriTools, stats: NodeStats | None) -> None:
        self._client = tools.client
        self._clock = tools.clock
        self._settings = tools.settings
        self._stats = stats
        self._known: dict[str, KnownImage] = {}

    async def run(self) -> None:
        """Collect every five minutes, for ever."""
        while self._stats is not None and self._settings.image_gc_high_threshold < _PERCENT:
            await self.collect()
            await self._clock.sleep(PERIOD)

    async def collect(self) -> None:
        """Collect once."""
        try:
            now = await self.detect()
            disk = await self.full_disk()
            if disk is not None:
                await self.free(bytes_to_free(disk, self._settings.image_gc_low_threshold), now)
        except grpc.RpcError as error:
            _log.warning("image garbage collection failed: %s", wrapped_text(error))

    async def free_everything(self) -> None:
        """Remove whatever may go, as the disk has run full; raises the runtime's error."""
        await self.free(math.inf, await self.detect())

    async def full_disk(self) -> Amount | None:
        """What is left of the disk, if so little that images have to go."""
        disk = (await self._stats.read()).get(DISK) if self._stats is not None else None
        if disk is None or not disk.capacity or not is_full(disk, self._settings.image_gc_high_threshold):
            return None
        return disk

    async def detect(self) -> float:
        """Take down what is there, and what is in use; the time of that."""
        now = self._clock.monotonic()
        images = (await self._client.list_images()).images
        used = self.names_in_use((await self._client.list_containers()).containers)
        self._known = {image.id: self._seen(image, now, used) for image in images}
        return now

    def names_in_use(self, containers: Iterable[cri.Container]) -> set[str]:
        """The names and ids of all images that some container was made from, be it dead or alive."""
        return {name for one in containers for name in (one.image_ref, one.image.image, one.image_id) if name}

    def _seen(self, image: cri.Image, now: float, used: set[str]) -> KnownImage:
        before = self._known.get(image.id)
        in_use = not used.isdisjoint({image.id, *image.repo_tags, *image.repo_digests})
        return KnownImage(
            image.id,
            image.size,
            image.pinned,
            before.first_seen if before else now,
            now if in_use else before.last_used if before else -math.inf,
        )

    async def free(self, needed: float, now: float) -> None:
        """Remove images as they were seen at `now`, until so many bytes are free."""
        for image in removable(self._known.values(), now, self._settings.image_minimum_gc_age):
            if needed <= 0:
                return
            await self._client.remove_image(image.id)
            needed -= image.size
