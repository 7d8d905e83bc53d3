"""What a trace tells about images: the answers to ImageStatus, and how PullImage went for each pod."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from kubelet_conformance.trace.bodies import (
    ImageStatusReply,
    ImageStatusRequest,
    PullImageReply,
    PullImageRequest,
)
from kubelet_conformance.trace.records import Event, RpcError

if TYPE_CHECKING:
    from kubelet_conformance.trace.moment import Moment
    from kubelet_conformance.trace.world import World


IMAGES_REMEMBERED = 10_000
"""How many image names are remembered; the one unused longest is forgotten first."""
_ANSWERS_KEPT = 8


class ImageAnswer(NamedTuple):
    """One answer to ImageStatus."""

    seq: int
    present: bool | None
    """None for an error."""


class ImageKnown:
    """One image name as the kubelet asks for it, and what the runtime last said of it."""

    __slots__ = ("absent_seq", "answers", "failed_seq", "id", "pulled_ref", "pulled_seq")

    def __init__(self) -> None:
        self.answers: list[ImageAnswer] = []
        """The latest answers to ImageStatus, oldest first."""
        self.absent_seq = 0
        """The last answer that it is not there."""
        self.failed_seq = 0
        """The last of its answers that was an error."""
        self.id = ""
        self.pulled_ref = ""
        """What the last good PullImage returned."""
        self.pulled_seq = 0

    @property
    def last(self) -> ImageAnswer | None:
        """The last answer."""
        return self.answers[-1] if self.answers else None


class Pulls:
    """The pulls of one image by one pod, in one life of the kubelet."""

    __slots__ = ("due", "errors", "failed_seq", "failed_t", "life", "pulled_seq")

    def __init__(self, life: int) -> None:
        self.life = life
        self.due: ImageAnswer | None = None
        """What ImageStatus had said last when a pull was announced: it may have to wait for others then."""
        self.failed_t = 0.0
        self.failed_seq = 0
        self.pulled_seq = 0
        """The last one that succeeded."""
        self.errors: list[RpcError] = []
        """The last two failures, oldest first."""

    def due_since(self, seq: int) -> ImageAnswer | None:
        """The answer that the image is absent, later than `seq`, which a pull that had to wait follows."""
        return self.due if self.due is not None and self.due.present is False and self.due.seq > seq else None


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
    present = None
    if moment.reply.error is None:
        image = moment.response(ImageStatusReply).image
        present = image is not None
        known.id = image.id if image else ""
        known.absent_seq = known.absent_seq if present else moment.seq
    else:
        known.failed_seq = moment.seq
    known.answers = [*known.answers[1 - _ANSWERS_KEPT :], ImageAnswer(moment.seq, present)]


def _pulls(moment: Moment, name: str) -> Pulls | None:
    pod, life = moment.pod, moment.node.lives
    if pod is None:
        return None
    pulls = pod.pulls.get(name)
    if pulls is None or pulls.life != life:
        pulls = pod.pulls[name] = Pulls(life)
    return pulls


def asked_as(world: World, image: str) -> str:
    """How the kubelet asks for an image that a manifest names, its tag implied; "" if it has not asked."""
    return next((name for name in (image, f"{image}:latest") if name in world.images), "")


def pull_is_due(moment: Moment) -> None:
    """The event Pulling comes before the wait for other pulls, and names the image as the manifest does."""
    record = moment.record
    asked = record.message.partition('"')[2].partition('"')[0] if isinstance(record, Event) else ""
    name = asked_as(moment.world, asked)
    pulls = _pulls(moment, name) if name else None
    if pulls is not None:
        pulls.due = moment.world.images[name].last


def image_pulled(moment: Moment) -> None:
    """PullImage succeeded; the back-off of earlier failures goes on to count."""
    name = moment.request(PullImageRequest).image.image
    known, pulls = image_known(moment.world, name), _pulls(moment, name)
    known.pulled_ref = moment.response(PullImageReply).image_ref
    known.pulled_seq = moment.seq
    if pulls is not None:
        pulls.pulled_seq = moment.seq


def pull_failed(moment: Moment) -> None:
    """PullImage failed."""
    pulls, error = _pulls(moment, moment.request(PullImageRequest).image.image), moment.reply.error
    if pulls is None or error is None:
        return
    pulls.failed_t, pulls.failed_seq = moment.t, moment.seq
    pulls.errors = [*pulls.errors[-1:], error]
