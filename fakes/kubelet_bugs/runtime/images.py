"""Runtimes that are not clear about images: whether one is there, what it is called, why it does not come."""

import grpc
from cri_api.v1 import api_pb2 as cri

from kubelet_bugs.bug import bug
from kubelet_fakes.runtime.core import RuntimeCore
from kubelet_fakes.runtime.errors import CallError, not_found
from kubelet_fakes.runtime.images import Image, Images, full_name


@bug("MUT-CRI-23", breaks="CRI-23")
class AbsentIsAnError(Images):
    """The status of an absent image is answered by NOT_FOUND."""

    def image_status(self, request: cri.ImageStatusRequest) -> cri.ImageStatusResponse:
        if self.find(request.image.image) is None:
            raise not_found("image", request.image.image)
        return super().image_status(request)


@bug("MUT-CRI-24", breaks="CRI-24")
class PulledByItsRepository(Images):
    """A pull returns the name of the repository, by which no image is known."""

    def pull_image(self, request: cri.PullImageRequest) -> cri.PullImageResponse:
        super().pull_image(request)
        return cri.PullImageResponse(image_ref=full_name(request.image.image).rpartition(":")[0])


@bug("MUT-CRI-25", breaks="CRI-25")
class OneTagLess(Images):
    """An image that is removed by one of its tags stays under the others."""

    def remove_image(self, request: cri.RemoveImageRequest) -> cri.RemoveImageResponse:
        image, name = self.find(request.image.image), full_name(request.image.image)
        left = tuple(tag for tag in image.tags if tag != name) if image is not None else ()
        if image is None or not left or left == image.tags:
            return super().remove_image(request)
        return self._without(image, left)

    def _without(self, image: Image, left: tuple[str, ...]) -> cri.RemoveImageResponse:
        """Remove the image with all its names, and give it those that are left."""
        reply = super().remove_image(cri.RemoveImageRequest(image=cri.ImageSpec(image=image.id)))
        for tag in left:
            self.add(tag, image=image.id, user=image.user, size=image.size)
        return reply


@bug("MUT-CRI-40", breaks="CRI-40")
class InOtherWords(Images):
    """The error of an unreachable registry cannot be distinguished from other errors."""

    def pull_image(self, request: cri.PullImageRequest) -> cri.PullImageResponse:
        if not self.registry_up:
            raise CallError(grpc.StatusCode.UNKNOWN, "failed to do request: dial tcp: connection refused")
        return super().pull_image(request)


@bug("MUT-CRI-39", breaks="CRI-39")
class RefIsId(RuntimeCore):
    """The id of a container's image is reported as its reference."""

    def container_status(self, request: cri.ContainerStatusRequest) -> cri.ContainerStatusResponse:
        reply = cri.ContainerStatusResponse()
        reply.CopyFrom(super().container_status(request))
        reply.status.image_id = reply.status.image_ref
        return reply
