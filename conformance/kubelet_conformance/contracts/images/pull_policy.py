"""IMAGE: an image is looked up or pulled before each container, which is created from the result."""

from collections.abc import Iterator
from typing import NamedTuple

from kubelet_conformance.contract import Finding, Moment, Pod
from kubelet_conformance.contract.applicability import CRI, PODS, STATUS, ByVersion
from kubelet_conformance.contract.definition import KEPT, Findings, broken, contract
from kubelet_conformance.contract.patterns import call
from kubelet_conformance.contracts.facts.container import asked
from kubelet_conformance.contracts.facts.image import former_policies, may_follow_a_former_version
from kubelet_conformance.contracts.facts.status import REFUSED
from kubelet_conformance.contracts.facts.timing import REACTION, SAME_MOMENT
from kubelet_conformance.contracts.sandbox.config import never_updated
from kubelet_conformance.contracts.tables.container import IMAGES, ImageAct, ImageSeen
from kubelet_conformance.contracts.tables.table import Row
from kubelet_conformance.trace.format.bodies import PullImageRequest
from kubelet_conformance.trace.format.manifests import ContainerSpec
from kubelet_conformance.trace.world.views import ImageAnswer, ImageKnown

USER_IMAGE = ByVersion({"<=1.27": False, ">=1.28": True})
"""CreateContainer carries the manifest's image beside the one that was found."""
ASKS_BEFORE_ALWAYS = ByVersion({"1.23..1.31": True})
"""With the policy Always the image is looked up before it is pulled."""
CHECKS_CREDENTIALS_SINCE = (1, 33)
"""From here on a present image may be pulled to prove the pod's right to it (KEP-2535)."""


def reference(image: str) -> str:
    """The image as the kubelet asks for it: with the tag latest where it has neither tag nor digest."""
    last = image.rpartition("/")[2]
    return image if "@" in last or ":" in last else f"{image}:latest"


def known_image(m: Moment, image: str) -> ImageKnown:
    """What the runtime has said of an image, by the name that a manifest has for it."""
    return m.world.images.get(reference(image), ImageKnown())


def pulled_image(m: Moment) -> str:
    """The image that a PullImage names."""
    return m.request(PullImageRequest).image.image


def is_another_try(m: Moment) -> bool:
    """The pull follows at once a failed one of the same image and pod, with other credentials (IMAGE-13)."""
    pod, image = m.pod, pulled_image(m)
    if pod is None or pod.spec is None or not pod.spec.image_pull_secrets:
        return False
    pulls = pod.pulls.get(image)
    if pulls is None or not pulls.failed_seq or not m.request(PullImageRequest).auth:
        return False
    return 0 <= m.call.t - pulls.failed_t <= SAME_MOMENT and pulls.life == m.node.lives


def every_spec(pod: Pod) -> list[ContainerSpec]:
    """All containers of the manifest."""
    spec = pod.spec
    if spec is None:
        return []
    return [*(spec.init_containers or ()), *spec.containers, *(spec.ephemeral_containers or ())]


def containers_of(pod: Pod, image: str) -> list[ContainerSpec]:
    """The containers of the manifest that use an image."""
    return [spec for spec in every_spec(pod) if reference(spec.image) == image]


class _Use:
    """The image of a container that is created: how it was looked up since the pod's last creation."""

    __slots__ = ("answers", "given", "image", "known", "name", "policy", "pulled", "since")

    def __init__(self, m: Moment, pod: Pod, spec: ContainerSpec) -> None:
        self.name = spec.name
        self.policy = spec.pull_policy
        self.given = asked(m).image.user_specified_image or spec.image
        self.image = reference(self.given)
        self.since = pod.create.seq if pod.create is not None else 0
        self.known = known_image(m, self.given)
        self.pulled = self.known.pulled_seq > self.since
        self.answers = [answer for answer in self.known.answers if answer.seq > self.since]
        """The answers to ImageStatus since then."""


class _Looked(NamedTuple):
    """What was found at a creation, computed once for all contracts."""

    use: _Use | None


def _use(m: Moment) -> _Use | None:
    """None where the trace does not show which image it is."""
    if m.memo is None:
        m.memo = _Looked(_found(m))
    looked: _Looked = m.memo
    return looked.use


def _found(m: Moment) -> _Use | None:
    pod = m.pod
    spec = pod.container_spec(asked(m).metadata.name) if pod is not None else None
    if pod is None or spec is None or not pod.born or not m.node.born:
        return None
    use = _Use(m, pod, spec)
    sure = bool(asked(m).image.user_specified_image) or pod.kind_of(spec.name) == "ephemeral"
    if sure or not may_follow_a_former_version(m):
        return use
    # Other pods may have looked up the image that the pod has now.
    return use if asked(m).image.image in {use.known.id, use.known.pulled_ref} - {""} else None


@contract("IMAGE-01", on=call("CreateContainer"), needs=(CRI, PODS))
def image_is_ensured_before_each_container(m: Moment) -> Findings:
    """Before each container is created, each time, its image was asked for by ImageStatus or pulled."""
    use = _use(m)
    if use is None:
        return None
    if not use.answers and not use.pulled:
        return broken(f"{use.name} is created, and {use.image} was not looked up for it", use.since)
    return KEPT


@contract("IMAGE-02", on=call("PullImage"), needs=(CRI, PODS, STATUS))
def pull_policy_decides(m: Moment) -> Findings:
    """The pull policy decides between pulling an image and using what is there.

    With IfNotPresent it is pulled only where ImageStatus says that it is absent, with Always for each
    container, with Never not at all.
    """
    pod, image = m.pod, pulled_image(m)
    specs = containers_of(pod, image) if pod is not None and pod.born else []
    if not specs or not m.node.born:
        return None
    policies = {spec.pull_policy for spec in specs} | former_policies(m, image)
    last = _followed(m, image)
    rows = [row for policy in sorted(policies) for row in _rows(m, policy, last)]
    if all(row.then != "pull" for row in rows):
        return broken(
            f"{image} is pulled with the policy {', '.join(sorted(policies))}: {rows[0].why}", _seq(m, last)
        )
    wrong, seq = _pull_failed(m, image) if "Always" not in policies else ("", 0)
    return broken(wrong, seq) if wrong else KEPT


def _followed(m: Moment, image: str) -> ImageAnswer | None:
    """The answer to ImageStatus that a pull follows: the last, or that before it had to wait for others."""
    own = m.pod.pulls.get(image) if m.pod is not None else None
    due = own.due_since(max(own.pulled_seq, own.failed_seq)) if own and own.life == m.node.lives else None
    return due or m.world.images.get(image, ImageKnown()).last


def _seq(m: Moment, last: ImageAnswer | None) -> int:
    return last.seq if last is not None else (m.pod.set_seq if m.pod is not None else 0)


def _rows(m: Moment, policy: str, last: ImageAnswer | None) -> list[Row[ImageSeen, ImageAct]]:
    """What may be done with this policy, by what the runtime said last.

    An error is the business of IMAGE-06. Where a pod has to prove its right to an image, the trace does not
    show whether it has.
    """
    present = last is not None and bool(last.present)
    checks = m.kubernetes is not None and m.kubernetes >= CHECKS_CREDENTIALS_SINCE
    sights = [ImageSeen(policy, present), *([ImageSeen(policy, present, unproven=True)] if checks else [])]
    return [IMAGES.row(each) for each in sights]


def _pull_failed(m: Moment, image: str) -> tuple[str, int]:
    """Why a pull with the policy IfNotPresent was not due, and the record that shows it."""
    known, own = m.world.images.get(image), m.pod.pulls.get(image) if m.pod is not None else None
    last = known.last if known is not None else None
    if last is None:
        return f"{image} is pulled before it was looked up", 0
    if own is not None and last.seq < max(own.pulled_seq, own.failed_seq) and not is_another_try(m):
        return (
            f"{image} is pulled again, and was not looked up in between",
            own.pulled_seq or own.failed_seq,
        )
    return "", 0


@pull_policy_decides.clause("used", on=call("CreateContainer"))
def used_image_was_pulled_or_present(m: Moment) -> Findings:
    """A container is created from an image that was pulled or found."""
    use = _use(m)
    if use is None:
        return None
    if use.pulled:
        return KEPT
    if use.policy == "Always":
        return broken(
            f"{use.name} is created, and {use.image} was not pulled, with the policy Always", use.since
        )
    absent = next((answer for answer in use.answers[-2:] if not answer.present), None)
    if absent is not None:
        return broken(f"{use.name} is created, and {use.image} was absent and not pulled", absent.seq)
    return KEPT if use.answers else None


@pull_policy_decides.clause("never", on=REFUSED)
def never_pull_is_the_policys(m: Moment) -> Iterator[Finding]:
    """ErrImageNeverPull is for an absent image with the policy Never."""
    for spec, known in _waiting(m, "ErrImageNeverPull"):
        last = known.last
        checks = m.kubernetes is not None and m.kubernetes >= CHECKS_CREDENTIALS_SINCE
        if spec.pull_policy != "Never":
            yield broken(f"{spec.name} waits for ErrImageNeverPull, its policy is {spec.pull_policy}")
        elif last is None or (not checks and all(answer.present for answer in known.answers)):
            if m.pod is not None and not never_updated(m.pod):
                continue  # It may be that of the image it had before.
            if _not_tried_since(m, spec.name, known.absent_seq):
                continue
            yield broken(f"{spec.name} waits for ErrImageNeverPull, and its image was never absent")
        else:
            yield KEPT


def _not_tried_since(m: Moment, name: str, absent_seq: int) -> bool:
    """The image was absent when the container was due, and only the sync of this status created it."""
    if not absent_seq or m.pod is None:
        return False
    newest = m.pod.newest(name)
    if newest is None or newest.create is None or newest.created_t is None:
        return newest is None
    return newest.create.seq > absent_seq and newest.attempt == 0 and m.t - newest.created_t <= REACTION


def _waiting(m: Moment, reason: str) -> Iterator[tuple[ContainerSpec, ImageKnown]]:
    """The containers that wait for this reason, and what is known of their images."""
    pod = m.pod
    if pod is None or m.status is None or not pod.born or not m.node.born:
        return
    for one in m.status.every_container:
        spec = pod.container_spec(one.name)
        if spec is not None and one.state.waiting is not None and one.state.waiting.reason == reason:
            yield spec, known_image(m, spec.image)


@contract("IMAGE-03", on=call("PullImage"), needs=(CRI, PODS), versions=ASKS_BEFORE_ALWAYS)
def always_asks_first(m: Moment, pod: Pod) -> Findings:
    """With the policy Always, up to 1.31, the image is also looked up before each pull."""
    image = pulled_image(m)
    if not pod.born or "Always" not in {spec.pull_policy for spec in containers_of(pod, image)}:
        return None
    pulls, known = pod.pulls.get(image), m.world.images.get(image)
    failed_seq = pulls.failed_seq if pulls is not None and not is_another_try(m) else 0
    since = max(pod.create.seq if pod.create else 0, failed_seq)
    last = known.last if known is not None else None
    if last is None or last.seq < since:
        return broken(f"{image} is pulled, and was not looked up before", since)
    return KEPT


@contract("IMAGE-04", on=call("PullImage"), needs=(CRI, PODS))
def pulled_image_is_the_manifests(m: Moment, pod: Pod) -> Findings:
    """PullImage names an image of the manifest, with the tag latest where it has no tag or digest."""
    image = pulled_image(m)
    if pod.spec is None:
        return None
    if containers_of(pod, image):
        return KEPT
    if pod.spec.volumes or not never_updated(pod):
        return None
    wanted = ", ".join(sorted({reference(spec.image) for spec in every_spec(pod)}))
    return broken(f"{image} is pulled, the pod's images are {wanted}", pod.set_seq)


@contract("IMAGE-06", on=call("PullImage"), needs=(CRI, PODS, STATUS))
def failed_inspection_is_no_absence(m: Moment) -> Findings:
    """Where ImageStatus fails, the image is not pulled with the policy IfNotPresent.

    A container waits for ImageInspectError only after such a failure.
    """
    pod, image = m.pod, pulled_image(m)
    policies = {spec.pull_policy for spec in containers_of(pod, image)} if pod is not None else set[str]()
    known, last = m.world.images.get(image, ImageKnown()), _followed(m, image)
    if "Always" in policies or not policies or last is None:
        return None
    if last.present is None:
        return broken(f"{image} is pulled after ImageStatus of it had failed", last.seq)
    return KEPT if any(answer.present is None for answer in known.answers) else None


@failed_inspection_is_no_absence.clause("reported", on=REFUSED)
def inspection_error_has_a_cause(m: Moment) -> Iterator[Finding]:
    """ImageInspectError needs a failed ImageStatus."""
    if m.t <= m.node.cut_off_until:
        return  # The call may not have reached the runtime, which leaves no trace.
    for spec, known in _waiting(m, "ImageInspectError"):
        failed = known.failed_seq > 0
        if not failed and m.pod is not None and not never_updated(m.pod):
            continue  # It may be that of the image it had before.
        none = broken(f"{spec.name} waits for ImageInspectError, and no ImageStatus failed")
        yield KEPT if failed else none


@contract("IMAGE-16", on=call("CreateContainer"), needs=(CRI, PODS))
def container_is_made_from_what_was_found(m: Moment) -> Findings:
    """CreateContainer names the image by the reference that the pull or the inspection just gave.

    From 1.28 on, not before, the manifest's image goes with it.
    """
    use, given = _use(m), asked(m).image
    if use is None or not (use.answers or use.pulled):
        return None
    found = {use.known.id, use.known.pulled_ref} if use.pulled else {use.known.id}
    if given.image not in found - {""}:
        return broken(
            f"{use.name} is created from {given.image}, expected {' or '.join(sorted(found))}", use.since
        )
    spec = m.pod.container_spec(use.name) if m.pod is not None else None
    if USER_IMAGE.get(m.kubernetes) and spec is not None and m.pod is not None and never_updated(m.pod):
        named = given.user_specified_image
        if named != spec.image:
            return broken(f"the request for {use.name} names the image {named!r}, expected {spec.image}")
    if m.kubernetes is not None and not USER_IMAGE.get(m.kubernetes) and given.user_specified_image:
        return broken(f"the request for {use.name} names the image {given.user_specified_image!r} too")
    return KEPT


@contract("IMAGE-19", on=call("CreateContainer"), needs=(CRI, PODS))
def policy_follows_from_the_tag(m: Moment, pod: Pod) -> Findings:
    """Without a pull policy an image with the tag latest, or with none, is pulled for each container, and
    any other only where it is absent.
    """
    use = _use(m)
    spec = pod.container_spec(use.name) if use is not None else None
    if use is None or spec is None or spec.image_pull_policy is not None:
        return None
    if use.policy == "Always":
        if not use.pulled:
            return broken(f"{use.name} is created, and {use.image} was not pulled", use.since)
        return KEPT
    pulled_seq = _pulled_for(m, use.image)
    if pulled_seq <= use.since or not use.answers:
        return KEPT
    before = [answer for answer in use.answers if answer.seq < pulled_seq]
    checks = m.kubernetes is not None and m.kubernetes >= CHECKS_CREDENTIALS_SINCE
    if before and before[-1].present and not checks and not _was_due(m, use):
        return broken(f"{use.image} was pulled for {use.name}, though it is there", before[-1].seq)
    return KEPT


def _was_due(m: Moment, use: _Use) -> bool:
    """The image was absent, and its pull had to wait for others."""
    own = m.pod.pulls.get(use.image) if m.pod is not None else None
    return own is not None and own.due_since(use.since) is not None


def _pulled_for(m: Moment, image: str) -> int:
    """The last pull for this pod; 0 where there is none, or it may have been for the policy Always."""
    pulls = m.pod.pulls.get(image) if m.pod is not None else None
    if m.pod is None or pulls is None or any(c.pull_policy == "Always" for c in containers_of(m.pod, image)):
        return 0
    return pulls.pulled_seq


@contract("IMAGE-24", on=call("CreateContainer"), needs=(CRI, PODS))
def image_is_asked_once_more_for_its_user(m: Moment) -> Findings:
    """Once the image is ensured, ImageStatus is asked once more.

    Only if it finds the image is the container created.
    """
    use = _use(m)
    if use is None or not (use.answers or use.pulled):
        return None
    # It may be asked for by its id, or as the manifest names it, without a tag that goes without saying.
    names = {use.known.id, use.given} - {use.image}
    others = [m.world.images[name].answers for name in names if name in m.world.images]
    later = use.answers + [answer for answers in others for answer in answers if answer.seq > use.since]
    after = (
        [answer for answer in later if answer.seq > use.known.pulled_seq] if use.pulled else sorted(later)[1:]
    )
    if not after:
        return broken(f"{use.name} is created, and {use.image} was not asked for once more", use.since)
    last = max(after)
    if last.present:
        return KEPT
    return broken(f"{use.name} is created, though ImageStatus did not find it", last.seq)
