"""GC: which images are removed when the disk that holds them fills up, and in which order."""

import math
from collections import OrderedDict

from msgspec import field

from kubelet_conformance.contract import Moment, Note
from kubelet_conformance.contract.applicability import CRI
from kubelet_conformance.contract.definition import KEPT, Findings, answered, broken, contract, observer
from kubelet_conformance.contract.patterns import call, done, kubelet
from kubelet_conformance.contracts.facts.node_pressure import node_pressure
from kubelet_conformance.contracts.facts.pod import FAULT
from kubelet_conformance.contracts.runtime.expected import judges_waits
from kubelet_conformance.trace.format.bodies import Image, ListImagesReply, RemoveImageRequest

ROUND = 300.0
"""Period of the image garbage collection (kubelet.go)."""
_SLACK = 15.0
MINIMUM_AGE = 120.0
"""An image younger than this stays (imageMinimumGCAge)."""
_SIGNAL = "imagefs.available"
_LOW_PERCENT = 15
"""The free share of a disk that is filled to 85 percent (imageGCHighThresholdPercent)."""
_IMAGES_REMEMBERED = 2000


class _Seen:
    """An image as the kubelet has seen it."""

    def __init__(self, image: Image, t: float) -> None:
        self.image = image
        self.first_t = t
        self.used_t = -math.inf
        """When it was last seen in the lists beside a container that was created from it."""
        self.is_going = False
        """Its removal was asked for since it was last listed."""

    def has_one_of(self, names: set[str]) -> bool:
        """The image's id, or one of its tags or digests, is one of these names."""
        image = self.image
        if image.id in names:
            return True
        return not (names.isdisjoint(image.repo_tags) and names.isdisjoint(image.repo_digests))


class _Images(Note):
    """The images of the node, by id, as the kubelet that runs now has listed them."""

    seen: OrderedDict[str, _Seen] = field(default_factory=OrderedDict[str, _Seen])

    def find(self, name: str) -> _Seen | None:
        """The image of that id or name."""
        found = self.seen.get(name)
        return found or next((one for one in self.seen.values() if one.has_one_of({name})), None)


def _in_use(m: Moment) -> set[str]:
    """The images that some container was created from that is still recorded."""
    return {c.config.image.image for c in m.world.containers.values() if c.config is not None}


@contract("GC-12", on=call("RemoveImage"), needs=(CRI,))
def unused_images_go_the_longest_unused_first(m: Moment) -> Findings:
    """An image that is removed is not in use, not pinned and known for two minutes.

    Of two removable images the one unused for longer is removed first.
    """
    images = m.node.note(_Images)
    image = images.find(m.request(RemoveImageRequest).image.image)
    if image is None or not m.node.kubelet_up or not m.header.from_start:
        return None
    name, used = (image.image.repo_tags or [image.image.id])[0], _in_use(m)
    why = _why_it_stays(image, used, m.t)
    if why:
        return broken(f"image {name} is removed, {why}")
    image.is_going = True
    for other in images.seen.values():
        if _may_be_removed(other, used, m.t) and other.used_t < image.used_t:
            return broken(f"image {name} is removed before {other.image.id}, which is unused for longer")
    return KEPT


def _may_be_removed(image: _Seen, used: set[str], t: float) -> bool:
    """An image is left, and nothing forbids its removal."""
    return not image.is_going and not _why_it_stays(image, used, t)


def _why_it_stays(image: _Seen, used: set[str], t: float) -> str:
    """What forbids the removal of an image; "" if nothing does."""
    if image.has_one_of(used):
        return "and a container was created from it"
    if image.image.pinned:
        return "which is pinned"
    return f"{t - image.first_t:.0f} s after it was first seen" if t - image.first_t < MINIMUM_AGE else ""


@observer(on=done("ListImages"))
def _images_are_listed(m: Moment) -> None:
    """Record which images there are, and which are in use."""
    known, used = m.node.note(_Images), _in_use(m)
    listed = m.response(ListImagesReply).images
    for gone in known.seen.keys() - {image.id for image in listed}:
        del known.seen[gone]
    for image in listed:
        seen = known.seen.get(image.id)
        if seen is None:
            seen = known.seen[image.id] = _Seen(image, m.t)
        seen.image, seen.is_going = image, False
        if seen.has_one_of(used):
            seen.used_t = m.t
        if len(known.seen) > _IMAGES_REMEMBERED:
            known.seen.popitem(last=False)


@observer(on=kubelet("started"))
def _memory_is_lost(m: Moment) -> None:
    """A kubelet that starts sees every image for the first time."""
    m.node.note(_Images).seen.clear()


def _may_go(m: Moment) -> bool:
    """Some listed image may be removed by now."""
    used = _in_use(m)
    seen = m.node.note(_Images).seen.values()
    return any(_may_be_removed(one, used, m.t) for one in seen)


@unused_images_go_the_longest_unused_first.clause("room is made", on=FAULT)
def room_is_made(m: Moment) -> Findings:
    """When the disk is filled to 85 percent a removable image is removed in the next garbage collection."""
    low = node_pressure(m).low.get(_SIGNAL)
    if low is None or low.seq != m.seq or not low.available.endswith("%") or not m.node.kubelet_up:
        return None
    if float(low.available.removesuffix("%")) > _LOW_PERCENT:
        return None
    by, text = call("RemoveImage"), "an image is removed from the full disk"
    if not m.node.note(_Images).seen:
        by, text = call("ListImages"), "the images of the full disk are listed"
    elif not _may_go(m):
        return None
    return answered(by=by, within=ROUND + _SLACK, unless=FAULT, whole_node=True, text=text)


judges_waits(unused_images_go_the_longest_unused_first)
