"""Volumes that show an image: pulled before any container is started, mounted by the runtime (KEP-4639).

An image that cannot be had concerns only the containers that mount it: these wait with its reason (IMAGE-20).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from cri_api.v1 import api_pb2 as cri
from lightkube.models.core_v1 import Container, ImageVolumeSource, Pod
from msgspec.structs import replace

from kubelet_reference import pods
from kubelet_reference.images import EnsuredImage, ImageManager
from kubelet_reference.pods import AnyContainer
from kubelet_reference.sync_result import StartError
from kubelet_reference.versions import Behaviour

if TYPE_CHECKING:
    from kubelet_reference.start_container import PodToStart


def image_sources(pod: Pod) -> dict[str, ImageVolumeSource]:
    """The images that volumes of the pod show, by the volumes' names."""
    return {one.name: one.image for one in pods.spec(pod).volumes or () if one.image is not None}


class ImageVolumes:
    """Has the images of a pod's volumes pulled."""

    def __init__(self, images: ImageManager, behaviour: Behaviour) -> None:
        self._images = images
        self._behaviour = behaviour

    async def ready(self, into: PodToStart) -> PodToStart:
        """The same, with what has become of each image."""
        if not self._behaviour.mounts_images:
            return into
        sources = image_sources(into.pod)
        return replace(into, images={name: await self._image(into, one) for name, one in sources.items()})

    async def _image(self, into: PodToStart, source: ImageVolumeSource) -> EnsuredImage | StartError:
        # Events about it are the pod's: no container is to blame.
        wanted = Container(name="", image=source.reference, imagePullPolicy=source.pullPolicy)
        try:
            return await self._images.ensure(into.pod, wanted, into.sandbox_config, into.secrets)
        except StartError as error:
            return error


def image_mounts(into: PodToStart, container: AnyContainer) -> Iterator[cri.Mount]:
    """What the container mounts of them; raises the `StartError` of an image that could not be had."""
    for wanted in container.volumeMounts or ():
        image = into.images.get(wanted.name)
        if isinstance(image, StartError):
            raise image
        if image is not None:
            yield cri.Mount(
                container_path=wanted.mountPath,
                image=cri.ImageSpec(image=image.ref, user_specified_image=image.name),
                image_sub_path=wanted.subPath or "",
                readonly=True,
            )
