"""CRI images: what the runtime reports of an image, and what a pull returns."""

from collections.abc import Iterable

from kubelet_conformance.contract import Moment, Note
from kubelet_conformance.contract.applicability import since
from kubelet_conformance.contract.definition import KEPT, Findings, broken, contract, observer
from kubelet_conformance.contract.patterns import done, failed
from kubelet_conformance.contracts.facts.pod import FAULT
from kubelet_conformance.contracts.runtime.calls import refusal
from kubelet_conformance.trace.format import bodies
from kubelet_conformance.trace.format.records import Fault

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
    image = m.response(bodies.ImageStatusReply).image
    if image is not None and not (image.id and image.size > 0):
        return broken(f"image {image.id or 'without id'} has size {image.size}")
    return KEPT


class _Pulled(Note):
    """What PullImage returned for images that were not inspected yet, with its seq."""

    refs: dict[str, tuple[str, int]] = {}


_PULLS_REMEMBERED = 1_000


@contract("CRI-24", on=done("PullImage"))
def pulled_image_is_known_by_its_ref(m: Moment) -> Findings:
    """PullImage returns a reference by which the image is then known.

    That is its id, or before 1.36 one of its digests.
    """
    ref = m.response(bodies.PullImageReply).image_ref
    if not ref:
        return broken("PullImage returned no reference")
    refs = m.node.note(_Pulled).refs
    refs[m.request(bodies.PullImageRequest).image.image] = ref, m.seq
    if len(refs) > _PULLS_REMEMBERED:
        del refs[next(iter(refs))]
    return None


@pulled_image_is_known_by_its_ref.clause("inspected", on=done("ImageStatus"))
def inspected_image_has_the_pulled_ref(m: Moment) -> Findings:
    """ImageStatus after the pull finds the image under that reference."""
    refs = m.node.note(_Pulled).refs
    name = m.request(bodies.ImageStatusRequest).image.image
    if not refs or name not in refs or m.call.seq < refs[name][1]:
        return None
    ref, seq = refs.pop(name)
    image = m.response(bodies.ImageStatusReply).image
    if image is None:
        return broken(f"{name} was pulled and is absent", seq)
    strict = m.kubernetes is not None and m.kubernetes >= STRICT_IMAGE_ID_SINCE
    known = {image.id} if strict else {image.id, *image.repo_digests}
    return KEPT if ref in known else broken(f"{name} was pulled as {ref} and is {image.id}", seq)


_NAMES_REMEMBERED = 1_000


class _Removed(Note):
    """Images that were removed, by each name they had, with the seq of the removal."""

    names_of: dict[str, frozenset[str]] = {}
    """All the names of an image, its id included, by each of them: as last reported."""
    seq_of: dict[str, int] = {}

    def reported(self, names: Iterable[str]) -> None:
        """An image has these names."""
        every = frozenset(names)
        self.names_of.update(dict.fromkeys(every, every))
        for name in every if self.seq_of else ():
            self.seq_of.pop(name, None)
        while len(self.names_of) > _NAMES_REMEMBERED:
            del self.names_of[next(iter(self.names_of))]

    def remove(self, name: str, seq: int) -> None:
        """The image of this name is gone with all its names."""
        for each in self.names_of.get(name, {name}):
            self.names_of.pop(each, None)
            self.seq_of[each] = seq
        while len(self.seq_of) > _NAMES_REMEMBERED:
            del self.seq_of[next(iter(self.seq_of))]


@contract("CRI-25", on=done("ImageStatus"))
def removed_image_is_gone(m: Moment) -> Findings:
    """RemoveImage takes an image away with all its tags, and one that is gone already is no error.

    It is not listed afterwards.
    """
    removed, image = m.node.note(_Removed), m.response(bodies.ImageStatusReply).image
    asked = m.request(bodies.ImageStatusRequest).image.image
    seq = removed.seq_of.get(asked)
    if seq is not None and seq < m.call.seq:
        return broken(f"{asked} was removed and is {image.id}", seq) if image else KEPT
    if image is not None and seq is None:
        removed.reported((asked, image.id, *image.repo_tags, *image.repo_digests))
    return None


@removed_image_is_gone.clause("idempotent", on=failed("RemoveImage"))
def removing_an_image_twice_is_no_error(m: Moment) -> Findings:
    """Removing an image that was removed before is no error."""
    name, code = m.request(bodies.RemoveImageRequest).image.image, refusal(m)
    seq = m.node.note(_Removed).seq_of.get(name)
    return broken(f"{name} was removed before, and now {code}", seq) if seq and code else None


@removed_image_is_gone.clause("listed", on=done("ListImages"))
def removed_image_is_not_listed(m: Moment) -> Findings:
    """No list has an image that was removed."""
    seq_of = m.node.note(_Removed).seq_of
    if not seq_of:
        return None
    listed = {image.id for image in m.response(bodies.ListImagesReply).images}
    still = [one for one in sorted(listed & seq_of.keys()) if seq_of[one] < m.call.seq]
    if still:
        return broken(f"{still[0]} was removed and is listed", seq_of[still[0]])
    return KEPT


@observer(on=done("RemoveImage"))
def _(m: Moment) -> None:
    m.node.note(_Removed).remove(m.request(bodies.RemoveImageRequest).image.image, m.seq)


@observer(on=done("PullImage"))
def _(m: Moment) -> None:
    seq_of = m.node.note(_Removed).seq_of
    # It is there again, under a name that was removed or another; it is not known which came back.
    if (
        m.request(bodies.PullImageRequest).image.image in seq_of
        or m.response(bodies.PullImageReply).image_ref in seq_of
    ):
        seq_of.clear()


class _Registry(Note):
    """Since when the registry has been unreachable; 0 while it is reachable."""

    away_seq: int = 0


_PREFIXES = ("RegistryUnavailable", "SignatureValidationFailed")


@contract("CRI-40", on=failed("PullImage"), versions=since("1.26"))
def pull_error_says_what_is_wrong(m: Moment) -> Findings:
    """A pull that fails because no registry answers has an error whose text begins RegistryUnavailable."""
    away, error = m.node.note(_Registry).away_seq, m.reply.error
    if not away or error is None or refusal(m) is None:
        return None
    if error.message.startswith(_PREFIXES):
        return KEPT
    return broken(f"expected RegistryUnavailable at the begin, got {error.message[:_SHOWN_CHARS]!r}", away)


_SHOWN_CHARS = 120


@observer(on=FAULT)
def _(m: Moment) -> None:
    if isinstance(m.record, Fault) and "registry is" in m.record.what:
        m.node.note(_Registry).away_seq = 0 if m.record.is_healed else m.seq
