"""Which of its pod's images a container was made of: up to 1.27 its request names only the image's id."""

from __future__ import annotations

from kubelet_conformance.trace.bodies import CreateContainerRequest
from kubelet_conformance.trace.former_spec import former_containers
from kubelet_conformance.trace.images import asked_as
from kubelet_conformance.trace.moment import Moment
from kubelet_conformance.trace.views import Container


class _MadeOf:
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
        known = world.images.get(asked_as(world, spec.image)) if spec is not None else None
        if spec is not None and known is not None and config.image.image in {known.id, known.pulled_ref}:
            found.add(spec.image)
    return found.pop() if len(found) == 1 else ""


def image_is_known_by_its_id(moment: Moment, container: Container) -> None:
    """The container was made of the image with this id: that of its pod's spec, or of one before."""
    container.note(_MadeOf).image = image_asked_for(moment)


def made_of(container: Container) -> str:
    """The image that its manifest had when it was made; "" where that is not known."""
    return container.note(_MadeOf).image
