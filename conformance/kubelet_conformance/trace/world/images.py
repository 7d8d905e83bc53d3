"""What a trace shows of images: answers to ImageStatus, results of pulls, and the images of containers."""

from kubelet_conformance.trace.format.bodies import (
    CreateContainerRequest,
    ImageStatusReply,
    ImageStatusRequest,
    PullImageReply,
    PullImageRequest,
)
from kubelet_conformance.trace.format.records import Event
from kubelet_conformance.trace.world.moment import Moment
from kubelet_conformance.trace.world.previous_specs import former_containers
from kubelet_conformance.trace.world.views import Container, ImageAnswer, Pulls

_ANSWERS_KEPT = 8


def image_asked(moment: Moment) -> None:
    """ImageStatus was answered, well or by an error."""
    known = moment.world.image_known(moment.request(ImageStatusRequest).image.image)
    present = None
    if moment.reply.error is None:
        image = moment.response(ImageStatusReply).image
        present = image is not None
        known.id = image.id if image else ""
        known.absent_seq = known.absent_seq if present else moment.seq
        # An image without these is none that a kubelet can use (CRI-34).
        if image is not None and not (image.id and image.size):
            known.failed_seq = moment.seq
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


def pull_is_due(moment: Moment) -> None:
    """The event Pulling comes before the wait for other pulls, and names the image as the manifest does."""
    record = moment.record
    asked = record.message.partition('"')[2].partition('"')[0] if isinstance(record, Event) else ""
    name = moment.world.image_name(asked)
    pulls = _pulls(moment, name) if name else None
    if pulls is not None:
        pulls.due = moment.world.images[name].last


def image_pulled(moment: Moment) -> None:
    """PullImage succeeded; the back-off of earlier failures goes on to count."""
    name = moment.request(PullImageRequest).image.image
    known, pulls = moment.world.image_known(name), _pulls(moment, name)
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


class _ImageOrigin:
    """The image as the manifest has it; "" where none or several of those sent last have that id."""

    def __init__(self) -> None:
        self.image = ""


def image_asked_for(moment: Moment) -> str:
    """The image that the container that is made here has in its manifest; "" where that is not known."""
    config, pod, world = moment.request(CreateContainerRequest).config, moment.pod, moment.world
    if config.image.user_specified_image or pod is None:
        return config.image.user_specified_image
    name, found = config.metadata.name, set[str]()
    for spec in (pod.container_spec(name), *former_containers(pod, name)):
        known = world.images.get(world.image_name(spec.image)) if spec is not None else None
        if spec is not None and known is not None and config.image.image in {known.id, known.pulled_ref}:
            found.add(spec.image)
    return found.pop() if len(found) == 1 else ""


def image_is_known_by_its_id(moment: Moment, container: Container) -> None:
    """The container was made of the image with this id: that of its pod's spec, or of one before."""
    container.note(_ImageOrigin).image = image_asked_for(moment)


def image_origin(container: Container) -> str:
    """The image that its manifest had when it was made; "" where that is not known."""
    return container.note(_ImageOrigin).image
