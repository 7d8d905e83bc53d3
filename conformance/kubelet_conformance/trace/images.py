"""What a trace tells about images: the answers to ImageStatus, and how PullImage went for each pod."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kubelet_conformance.trace.bodies import (
    ImageStatusReply,
    ImageStatusRequest,
    PullImageReply,
    PullImageRequest,
)

if TYPE_CHECKING:
    from kubelet_conformance.trace.moment import Moment
    from kubelet_conformance.trace.records import RpcError
    from kubelet_conformance.trace.world import World

__all__ = (
    "IMAGES_REMEMBERED",
    "ImageKnown",
    "Pulls",
    "image_asked",
    "image_known",
    "image_pulled",
    "pull_failed",
)

IMAGES_REMEMBERED = 10_000
"""How many image names are remembered; the one unused longest is forgotten first."""
_ANSWERS_KEPT = 8


class ImageKnown:
    """One image name as the kubelet asks for it, and what the runtime last said of it."""

    __slots__ = ("answers", "failed", "id", "present", "pulled_ref", "pulled_seq")

    def __init__(self) -> None:
        self.answers: list[int] = []
        """The latest answers to ImageStatus, errors included, by seq, oldest first."""
        self.present: bool | None = None
        """What the last answer said; None where it was an error, or nobody asked."""
        self.failed = False
        """The last answer was an error."""
        self.id = ""
        self.pulled_ref = ""
        """What the last good PullImage returned."""
        self.pulled_seq = 0


class Pulls:
    """The pulls of one image by one pod, in one life of the kubelet."""

    __slots__ = ("error", "failed_seq", "failed_t", "failures", "life")

    def __init__(self, life: int) -> None:
        self.life = life
        self.failures = 0
        self.failed_t = 0.0
        self.failed_seq = 0
        self.error: RpcError | None = None
        """The last failure."""


def image_known(world: World, name: str) -> ImageKnown:
    """What is known of an image by the name it is asked for."""
    known = world.images.pop(name, None) or ImageKnown()
    world.images[name] = known
    if len(world.images) > IMAGES_REMEMBERED:
        del world.images[next(iter(world.images))]
    return known


def image_asked(moment: Moment) -> None:
    """ImageStatus was answered, well or by an error."""
    known = image_known(moment.world, moment.request(ImageStatusRequest).image.image)
    known.answers = [*known.answers[1 - _ANSWERS_KEPT :], moment.seq]
    known.failed = moment.reply.error is not None
    known.present = None
    if not known.failed:
        image = moment.response(ImageStatusReply).image
        known.present = image is not None
        known.id = image.id if image else ""


def image_pulled(moment: Moment) -> None:
    """PullImage succeeded; the back-off of earlier failures goes on to count."""
    known = image_known(moment.world, moment.request(PullImageRequest).image.image)
    known.pulled_ref = moment.response(PullImageReply).image_ref
    known.pulled_seq = moment.seq


def pull_failed(moment: Moment) -> None:
    """PullImage failed."""
    pod, error = moment.pod, moment.reply.error
    if pod is None:
        return
    name, life = moment.request(PullImageRequest).image.image, moment.node.lives
    pulls = pod.pulls.get(name)
    if pulls is None or pulls.life != life:
        pulls = pod.pulls[name] = Pulls(life)
    pulls.failures += 1
    pulls.failed_t, pulls.failed_seq, pulls.error = moment.t, moment.seq, error
