"""CRI, images: what is told of one, and what a pull gives back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kubelet_conformance.contract.frame import KEPT, broken, contract
from kubelet_conformance.contract.words import done, failed
from kubelet_conformance.contracts.runtime_calls import refusal
from kubelet_conformance.trace.bodies import (
    ImageStatusReply,
    ImageStatusRequest,
    PullImageReply,
    PullImageRequest,
)

if TYPE_CHECKING:
    from kubelet_conformance.contract.frame import Findings
    from kubelet_conformance.trace.moment import Moment

STRICT_IMAGE_ID_SINCE = (1, 36)
"""From here on a pull has to return the image's id."""


@contract("CRI-23", on=done("ImageStatus").either(failed("ImageStatus")))
def absent_image_is_no_error(m: Moment) -> Findings:
    """ImageStatus of an absent image succeeds and has no image; one that is there has an id and a size."""
    if m.reply.error is not None:
        absent = refusal(m) == "NOT_FOUND"
        return broken("ImageStatus of an absent image is answered by NOT_FOUND") if absent else None
    if m.reply.same:
        return None
    image = m.response(ImageStatusReply).image
    if image is not None and not (image.id and image.size > 0):
        return broken(f"image {image.id or 'without id'} has size {image.size}")
    return KEPT


class _Pulled:
    """What PullImage returned for images that nobody has inspected yet, with its seq."""

    def __init__(self) -> None:
        self.refs: dict[str, tuple[str, int]] = {}


_PULLS_REMEMBERED = 1_000


@contract("CRI-24", on=done("PullImage"))
def pulled_image_is_known_by_its_ref(m: Moment) -> Findings:
    """PullImage returns a reference by which the image is then known.

    That is its id, or before 1.36 one of its digests.
    """
    ref = m.response(PullImageReply).image_ref
    if not ref:
        return broken("PullImage returned no reference")
    refs = m.node.note(_Pulled).refs
    refs[m.request(PullImageRequest).image.image] = ref, m.seq
    if len(refs) > _PULLS_REMEMBERED:
        del refs[next(iter(refs))]
    return None


@pulled_image_is_known_by_its_ref.clause("inspected", on=done("ImageStatus"))
def inspected_image_has_the_pulled_ref(m: Moment) -> Findings:
    """ImageStatus after the pull finds the image under that reference."""
    refs = m.node.note(_Pulled).refs
    name = m.request(ImageStatusRequest).image.image
    if not refs or name not in refs or m.call.seq < refs[name][1]:
        return None
    ref, seq = refs.pop(name)
    image = m.response(ImageStatusReply).image
    if image is None:
        return broken(f"{name} was pulled and is absent", seq)
    strict = m.kubernetes is not None and m.kubernetes >= STRICT_IMAGE_ID_SINCE
    known = {image.id} if strict else {image.id, *image.repo_digests}
    return KEPT if ref in known else broken(f"{name} was pulled as {ref} and is {image.id}", seq)
