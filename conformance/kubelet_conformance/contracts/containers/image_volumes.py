"""IMAGE: volumes whose content is an image."""

from collections.abc import Iterator
from typing import cast

from kubelet_conformance.contract import Finding, Moment, Pattern, Pod, PodSpec
from kubelet_conformance.contract.applicability import CRI, PODS, STATUS, since
from kubelet_conformance.contract.definition import KEPT, Findings, answered, broken, contract
from kubelet_conformance.contract.patterns import call, done, failed, sandbox_died, status
from kubelet_conformance.contracts.facts.container import asked, creation_of
from kubelet_conformance.contracts.facts.kubelet import api_is_away
from kubelet_conformance.contracts.facts.pod import FAULT, of, to_run
from kubelet_conformance.contracts.facts.sandbox import GONE
from kubelet_conformance.contracts.facts.status import START_ERRORS
from kubelet_conformance.contracts.facts.timing import REACTION, RETRY, RETRY_SLACK
from kubelet_conformance.contracts.images.pull_policy import known_image
from kubelet_conformance.contracts.runtime.expected import judges_waits
from kubelet_conformance.trace.format.bodies import ImageStatusRequest, PullImageRequest
from kubelet_conformance.trace.format.manifests import ContainerSpec


def _images_of(pod: Pod) -> dict[str, str]:
    """The images of the pod's image volumes, by the volumes' names."""
    volumes = (pod.spec.volumes if pod.spec is not None else None) or ()
    found: dict[str, str] = {}
    for one in volumes:
        image: object = one.get("image")
        if isinstance(image, dict):
            found[str(one.get("name"))] = str(cast("dict[str, object]", image).get("reference"))
    return found


def shows_images(pod: Pod) -> bool:
    """The pod has an image volume."""
    return bool(_images_of(pod))


def _mounts(pod: Pod, spec: ContainerSpec) -> dict[str, str]:
    """The images that the container mounts, by the paths at which it does."""
    images = _images_of(pod)
    return {one.mount_path: images[one.name] for one in spec.volume_mounts or () if one.name in images}


@contract(
    "IMAGE-20",
    on=call("CreateContainer"),
    needs=(CRI, PODS, STATUS),
    versions=since("1.31"),
    gate="ImageVolume",
)
def shown_image_is_mounted(m: Moment, pod: Pod) -> Iterator[Finding]:
    """An image volume is mounted into a container only when the image is present, and to be read only.

    If it is not, the waiting reason of the container that mounts it says why; other containers are not
    delayed.
    """
    config = asked(m)
    spec = pod.container_spec(config.metadata.name)
    if spec is None:
        return
    given = {one.container_path: one for one in config.mounts}
    for path, image in _mounts(pod, spec).items():
        pulls, mount = pod.pulls.get(image), given.get(path)
        if mount is None or mount.image is None:
            yield broken(
                f"{spec.name} is created, and the image {image} is not mounted at {path}", pod.set_seq
            )
        elif not mount.readonly:
            yield broken(f"{spec.name} may write to the image {image} at {path}", pod.set_seq)
        elif pulls is not None and pulls.failed_seq > max(pulls.pulled_seq, _seen_seq(m, image)):
            yield broken(
                f"{spec.name} is created, and the image {image} could not be pulled", pulls.failed_seq
            )
        else:
            yield KEPT


def _seen_seq(m: Moment, image: str) -> int:
    """When the runtime last said that the image is there."""
    return max((answer.seq for answer in known_image(m, image).answers if answer.present), default=0)


judges_waits(shown_image_is_mounted)


def _asks_for(image: str) -> Pattern:
    names = {image, f"{image}:latest"}
    asks = call("ImageStatus").where(lambda m: m.request(ImageStatusRequest).image.image in names)
    pulls = call("PullImage").where(lambda m: m.request(PullImageRequest).image.image in names)
    return asks.either(pulls)


@shown_image_is_mounted.clause("asked", on=done("RunPodSandbox"))
def shown_image_is_asked_for(m: Moment, pod: Pod) -> Iterator[Finding]:
    """In a new sandbox ImageStatus is asked for the image, or it is pulled."""
    if not pod.born or not to_run(m):
        return
    ends = GONE.either(sandbox_died(), failed("PodSandboxStatus")).where(of(pod))
    for image in sorted(set(_images_of(pod).values())):
        yield answered(
            by=_asks_for(image),
            within=RETRY + RETRY_SLACK,
            unless=ends.either(FAULT, call("PullImage")),  # One image is pulled after the other.
            whole_node=True,
            text=f"the image {image} of a volume of {pod.name} is asked for or pulled",
        )


def _users(pod: Pod, image: str) -> list[str]:
    """The containers that mount this image, and are not created from it."""
    names = (one.name for one in (pod.spec.containers if pod.spec is not None else ()))
    found = [spec for name in names if (spec := pod.container_spec(name)) is not None]
    return [one.name for one in found if image in _mounts(pod, one).values()]


def _refused(name: str) -> Pattern:
    def fits(m: Moment) -> bool:
        one = m.status.by_name.get(name) if m.status is not None else None
        return one is not None and one.state.waiting is not None and one.state.waiting.reason in START_ERRORS

    return status().where(fits)


@shown_image_is_mounted.clause("reported", on=failed("PullImage"))
def missing_image_is_reported(m: Moment, pod: Pod) -> Findings:
    """The status of a container whose image volume cannot be pulled has the reason."""
    image = m.request(PullImageRequest).image.image
    users = _users(pod, image) if to_run(m) else []
    if not users or m.header.channels.api != "full" or api_is_away(m):
        return None
    pulled = done("PullImage").where(lambda n: n.request(PullImageRequest).image.image == image)
    return answered(
        by=_refused(users[0]),
        not_before=creation_of(users[0]),
        within=RETRY + RETRY_SLACK + REACTION,
        unless=GONE.either(FAULT, sandbox_died(), pulled),
        text=f"the status says why {users[0]}, which mounts {image}, was not created",
    )


@shown_image_is_mounted.clause("others", on=failed("PullImage"))
def other_containers_are_made(m: Moment, pod: Pod, spec: PodSpec) -> Findings:
    """Containers that do not mount the missing image are created."""
    image = m.request(PullImageRequest).image.image
    if not to_run(m) or spec.init_containers:
        return None
    users = _users(pod, image)
    free = [one for one in spec.containers if one.name not in users and not _mounts(pod, one)]
    waiting = [one.name for one in free if pod.newest(one.name) is None and one.image != image]
    if not users or not waiting:
        return None
    return answered(
        by=creation_of(waiting[0]),
        within=RETRY + RETRY_SLACK,
        unless=GONE.either(sandbox_died(), failed("PullImage", "CreateContainer", "PodSandboxStatus")),
        text=f"{waiting[0]}, which does not mount {image}, is created",
    )
