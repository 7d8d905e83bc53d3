"""Runtimes that are not clear about images: whether one is there, what it is called, why it does not come."""

from __future__ import annotations

import grpc
from cri_api.v1 import api_pb2 as cri

from kubelet_bugs.bug import Bug
from kubelet_fakes.runtime.core import RuntimeCore
from kubelet_fakes.runtime.errors import CallError, not_found
from kubelet_fakes.runtime.images import Image, Images, full_name
from kubelet_fakes.runtime.parts import RuntimeParts
from kubelet_reference.parts import Parts


class _AbsentIsAnError(Images):
    """Answers the question for an absent image by NOT_FOUND."""

    def image_status(self, request: cri.ImageStatusRequest) -> cri.ImageStatusResponse:
        if self.find(request.image.image) is None:
            raise not_found("image", request.image.image)
        return super().image_status(request)


class _PulledByItsRepository(Images):
    """Says of a pulled image only where it came from."""

    def pull_image(self, request: cri.PullImageRequest) -> cri.PullImageResponse:
        super().pull_image(request)
        return cri.PullImageResponse(image_ref=full_name(request.image.image).rpartition(":")[0])


class _OneTagLess(Images):
    """Takes away the name that was asked for, and the image only with the last of its names."""

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


class _InOtherWords(Images):
    """Tells in words of its own that no registry answers."""

    def pull_image(self, request: cri.PullImageRequest) -> cri.PullImageResponse:
        if not self.registry_up:
            raise CallError(grpc.StatusCode.UNKNOWN, "failed to do request: dial tcp: connection refused")
        return super().pull_image(request)


class _RefIsId(RuntimeCore):
    """Tells the reference by digest where the id of the image belongs."""

    def container_status(self, request: cri.ContainerStatusRequest) -> cri.ContainerStatusResponse:
        reply = cri.ContainerStatusResponse()
        reply.CopyFrom(super().container_status(request))
        reply.status.image_id = reply.status.image_ref
        return reply


BUGS = (
    Bug(
        id="MUT-CRI-23",
        title="The status of an absent image is answered by NOT_FOUND.",
        parts=Parts,
        runtime=lambda: RuntimeParts(images=_AbsentIsAnError),
        breaks=("CRI-23",),
    ),
    Bug(
        id="MUT-CRI-24",
        title="A pull returns the name of the repository, by which no image is known.",
        parts=Parts,
        runtime=lambda: RuntimeParts(images=_PulledByItsRepository),
        breaks=("CRI-24",),
    ),
    Bug(
        id="MUT-CRI-25",
        title="An image that is removed by one of its tags stays under the others.",
        parts=Parts,
        runtime=lambda: RuntimeParts(images=_OneTagLess),
        breaks=("CRI-25",),
    ),
    Bug(
        id="MUT-CRI-39",
        title="The id of a container's image is told to be its reference.",
        parts=Parts,
        runtime=lambda: RuntimeParts(core=_RefIsId),
        breaks=("CRI-39",),
    ),
    Bug(
        id="MUT-CRI-40",
        title="That no registry answers is told in words that nobody can tell from other errors.",
        parts=Parts,
        runtime=lambda: RuntimeParts(images=_InOtherWords),
        breaks=("CRI-40",),
    ),
)
