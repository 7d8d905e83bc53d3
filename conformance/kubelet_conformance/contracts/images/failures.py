"""IMAGE: what a failing image prevents, and which events come before a container starts."""

import math
import re
from functools import lru_cache

from msgspec import field

from kubelet_conformance.contract import Moment, Note, Pod, PodSpec, Predicate
from kubelet_conformance.contract.applicability import CRI, EVERY_EVENT, PODS, STATUS
from kubelet_conformance.contract.definition import KEPT, Findings, answered, broken, contract, observer
from kubelet_conformance.contract.patterns import call, done, event, failed, status
from kubelet_conformance.contracts.facts.container import HELD_UP, asked, creation_of
from kubelet_conformance.contracts.facts.pod import to_run
from kubelet_conformance.contracts.facts.timing import REACTION, RETRY, RETRY_SLACK, SAME_MOMENT, seconds_of
from kubelet_conformance.contracts.images.pull_policy import known_image, pulled_image, reference
from kubelet_conformance.contracts.runtime.expected import judges_waits
from kubelet_conformance.trace.format.bodies import ImageStatusReply, ImageStatusRequest, PullImageRequest
from kubelet_conformance.trace.format.manifests import ContainerSpec
from kubelet_conformance.trace.format.records import Event
from kubelet_conformance.trace.world.views import Latest

_NO_NAME = re.compile(r"[^A-Za-z0-9._/:@+-]|^[:/@.-]|::|/:|[:/@]$")
_SIZE = re.compile(r"Image size: \d+ bytes")
_TIMES = re.compile(r" in (\S+s) \((\S+s) including waiting\)")
_PULLED = "Successfully pulled"
_NAME = re.compile(r'image "([^"]*)"')
_SIZE_SINCE = (1, 29)


@lru_cache(maxsize=1024)
def is_no_name(image: str) -> bool:
    """The text is certainly no valid image name."""
    return bool(image) and _NO_NAME.search(image) is not None


def _waits_for(name: str, reason: str) -> Predicate:
    def waits(m: Moment) -> bool:
        every = m.status.every_container if m.status is not None else ()
        waiting = (one.state.waiting for one in every if one.name == name)
        return any(one is not None and one.reason == reason for one in waiting)

    return waits


@contract("IMAGE-05", on=done("RunPodSandbox"), needs=(CRI, PODS, STATUS), clause="reported")
def unreadable_name_is_reported(m: Moment, spec: PodSpec) -> Findings:
    """A container whose image has a name that cannot be read waits for InvalidImageName, and the runtime is
    not asked for it.
    """
    if spec.init_containers or not to_run(m):
        return None
    name = next((one.name for one in spec.containers if is_no_name(one.image)), "")
    if not name:
        return None
    return answered(
        by=status().where(_waits_for(name, "InvalidImageName")),
        within=RETRY + RETRY_SLACK,
        unless=HELD_UP,
        text=f"{name} waits for InvalidImageName",
    )


@unreadable_name_is_reported.clause("not-asked", on=call("ImageStatus"))
def unreadable_name_is_not_looked_for(m: Moment) -> Findings:
    """ImageStatus is not asked for an image whose name cannot be read."""
    image = m.request(ImageStatusRequest).image.image
    return broken(f"ImageStatus is asked for {image!r}") if is_no_name(image) else None


@unreadable_name_is_reported.clause("not-pulled", on=call("PullImage"))
def unreadable_name_is_not_pulled(m: Moment) -> Findings:
    """An image whose name cannot be read is not pulled."""
    image = m.request(PullImageRequest).image.image
    return broken(f"{image!r} is pulled") if is_no_name(image) else None


@contract("IMAGE-17", on=failed("PullImage"), needs=(CRI, PODS))
def sibling_is_started_all_the_same(m: Moment, pod: Pod) -> Findings:
    """An app container whose image cannot be pulled keeps none after it from being started."""
    image = pulled_image(m)
    sibling = _next_in_line(m, pod, image) if to_run(m) else None
    if sibling is None:
        return None
    return answered(
        by=creation_of(sibling.name),
        within=REACTION,
        unless=HELD_UP.either(failed("ImageStatus")),
        text=f"{sibling.name} is created, though {image} could not be pulled",
    )


def _next_in_line(m: Moment, pod: Pod, image: str) -> ContainerSpec | None:
    """The app container right after the last that needs this image, if nothing is known to delay it."""
    specs = list(pod.spec.containers) if pod.spec is not None else []
    users = [place for place, one in enumerate(specs) if reference(one.image) == image]
    if len(users) != 1 or users[0] + 1 >= len(specs) or pod.sandbox is None:
        return None
    sibling = specs[users[0] + 1]
    known = known_image(m, sibling.image).last
    if sibling.pull_policy == "Always" or known is None or not known.present:
        return None
    if sibling.env or sibling.env_from or sibling.volume_mounts or _must_not_be_root(pod, sibling):
        return None
    if sibling.name in pod.create_failed or pod.newest(sibling.name) is not None:
        return None
    return sibling


class _Reported(Note):
    """The events of each container since it was started last."""

    of: dict[str, set[str]] = {}


@contract(
    "IMAGE-18", on=event("Pulled", "Created", "Started"), needs=(CRI, PODS, EVERY_EVENT), clause="order"
)
def events_come_in_order(_: Moment, pod: Pod, event: Event) -> Findings:
    """The events Pulling, Pulled, Created and Started of a container come in this order; that of a
    pull says how long it took, and from 1.29 on, not before, the size of the image.
    """
    if not pod.born or not event.container:
        return None
    reported = pod.note(_Reported).of.get(event.container, set[str]())
    before = {"Pulled": "Pulling", "Created": "Pulled", "Started": "Created"}[event.reason]
    if event.reason == "Pulled" and not event.message.startswith(_PULLED):
        return None
    return KEPT if before in reported else broken(f"event {event.reason} comes without {before} before it")


@observer(on=event("Pulling", "Pulled", "Created", "Started"), last=True)
def _events(_: Moment, pod: Pod, event: Event) -> None:
    """Record the events."""
    if event.container:
        reported = pod.note(_Reported).of.setdefault(event.container, set())
        reported.add(event.reason)
        if event.reason == "Started":
            reported.clear()


@events_come_in_order.clause("size", on=event("Pulled"))
def size_is_reported(m: Moment, event: Event) -> Findings:
    """The event says how long the pull took, without and with its wait, and the bytes of the image."""
    if not event.message.startswith(_PULLED):
        return None
    if m.kubernetes is None:
        return None
    if m.kubernetes < _SIZE_SINCE:
        return broken(f"{event.message!r} has an image size") if _SIZE.search(event.message) else None
    if not _TIMES.search(event.message):
        return broken(f"{event.message!r} does not say how long the pull and all of it took")
    return KEPT if _SIZE.search(event.message) else broken(f"{event.message!r} has no image size")


class _Took(Note):
    """How long the shortest pull of an image for the pod took, by the image's names: events may be late."""

    seconds: dict[str, float] = {}


@observer(on=done("PullImage"))
def _pulled(m: Moment, pod: Pod) -> None:
    """Record how long it took."""
    image = m.request(PullImageRequest).image
    took = pod.note(_Took).seconds
    for name in {image.image, image.user_specified_image or image.image}:
        took[name] = min(m.t - m.call.t, took.get(name, math.inf))


@events_come_in_order.clause("times", on=event("Pulled"))
def times_are_those_of_the_pull(_: Moment, pod: Pod, event: Event) -> Findings:
    """The pull is reported to have taken no less than the call did, and no more than with its wait."""
    reported, named = _TIMES.search(event.message), _NAME.search(event.message)
    took = pod.note(_Took).seconds.get(named[1]) if named is not None else None
    if reported is None or took is None or not event.message.startswith(_PULLED):
        return None
    pull, whole = seconds_of(reported[1]), seconds_of(reported[2])
    if whole < pull or pull < took - SAME_MOMENT:
        return broken(f"{event.message!r}, and the call took {took:.3f} s")
    return KEPT


class _Users(Note):
    """The user of each image by name: a number, a name, or "" for root."""

    of: Latest[str, str] = field(default_factory=Latest[str, str])


@contract("IMAGE-22", on=call("CreateContainer"), needs=(CRI, PODS))
def root_is_kept_out(m: Moment, pod: Pod) -> Findings:
    """A container that must not run as root, and names no user, is created only if its image has a user by
    number that is not root.
    """
    spec = pod.container_spec(asked(m).metadata.name)
    if spec is None or not pod.born or not _must_not_be_root(pod, spec):
        return None
    user = m.node.note(_Users).of.get(reference(spec.image))
    if user is None:
        return None
    if user.isdigit() and int(user):
        return KEPT
    return broken(
        f"{spec.name} must not run as root and is created, the user of its image is {user or 'root'}"
    )


judges_waits(root_is_kept_out)


def _must_not_be_root(pod: Pod, spec: ContainerSpec) -> bool:
    own, shared = spec.security_context, pod.spec.security_context if pod.spec is not None else None
    must_not = own.run_as_non_root if own is not None else None
    if must_not is None and shared is not None:
        must_not = shared.run_as_non_root
    return bool(must_not) and all(one is None or one.run_as_user is None for one in (own, shared))


@observer(on=done("ImageStatus"))
def _users(m: Moment) -> None:
    """Record the user of an image."""
    image = m.response(ImageStatusReply).image
    users = m.node.note(_Users).of
    name = m.request(ImageStatusRequest).image.image
    if image is None:
        users.pop(name, None)
    else:
        users[name] = str(image.uid.value) if image.uid is not None else image.username
