"""IMAGE: how many images are pulled in parallel, at which rate, for which sandbox, with which credentials."""

from msgspec import field

from kubelet_conformance.contract import Moment, Note, Pattern, Pod, PodSpec
from kubelet_conformance.contract.applicability import CRI, EVERY_EVENT, PODS, since
from kubelet_conformance.contract.definition import KEPT, Findings, answered, broken, contract, observer
from kubelet_conformance.contract.patterns import call, done, event, failed, kubelet, sandbox_died
from kubelet_conformance.contracts.facts.pod import TERMINATION_ASKED, of, to_run
from kubelet_conformance.contracts.facts.timing import REACTION, SAME_MOMENT, TOGETHER
from kubelet_conformance.contracts.images.pull_policy import (
    containers_of,
    is_another_try,
    pulled_image,
    reference,
)
from kubelet_conformance.contracts.images.pulls import TOO_OFTEN
from kubelet_conformance.contracts.runtime.expected import judges_waits
from kubelet_conformance.contracts.sandbox.config import config_difference, differing, of_the_pod
from kubelet_conformance.trace.format.bodies import CreateContainerRequest, PullImageRequest
from kubelet_conformance.trace.format.header import Header
from kubelet_conformance.trace.format.records import Event, Expect
from kubelet_conformance.trace.world.views import Latest

_QPS, _BURST = 5.0, 10
"""registryPullQPS and registryBurst where they are not set."""
_TOLERANCE = 0.01
"""Of a pull, for the arithmetic."""
_ENDED = done("PullImage").either(failed("PullImage"))


def _at_a_time(header: Header) -> float | None:
    """How many images may be pulled in parallel; None where the configuration is not known."""
    given = header.configuration
    if given is None:
        return None
    if given.get("serializeImagePulls", True):
        return 1
    return float(given.get("maxParallelImagePulls") or "inf")


class InFlight(Note):
    """The pulls that are in progress, by call, and when one ended last."""

    calls: dict[str, int] = {}
    ended_t: float = -1.0


@contract("IMAGE-11", on=call("PullImage"), needs=(CRI, PODS))
def pulls_wait_for_their_turn(m: Moment) -> Findings:
    """Images are pulled one after another on the whole node; where the configuration allows more in
    parallel, at most that many.
    """
    limit, pulls = _at_a_time(m.header), m.node.note(InFlight)
    if limit is None:
        return None
    if len(pulls.calls) >= limit:
        return broken(f"more than {limit:g} images are pulled in parallel", *pulls.calls.values())
    return KEPT if pulls.calls or 0 <= m.t - pulls.ended_t <= SAME_MOMENT else None


@observer(on=call("PullImage"), last=True)
def _begins(m: Moment) -> None:
    """Record that a pull is in progress."""
    m.node.note(InFlight).calls[m.call.id] = m.seq


@observer(on=_ENDED)
def _ends(m: Moment) -> None:
    """Record that the pull ended."""
    pulls = m.node.note(InFlight)
    pulls.calls.pop(m.call.id, None)
    pulls.ended_t = m.t


@observer(on=kubelet("started"))
def _begins_anew(m: Moment) -> None:
    """What another kubelet has asked for does not count."""
    m.node.note(InFlight).calls.clear()
    m.node.note(_Announced).count = 0


class _Bucket(Note):
    """The token bucket of pulls, in one run of the kubelet."""

    left: float = 0.0
    t: float = 0.0
    life: int = -1

    def take(self, m: Moment, rate: float, burst: float) -> float:
        """Take one token for a pull; return what is left, negative for one too many."""
        if self.life != m.node.lives:
            self.left, self.life = burst, m.node.lives
        else:
            self.left = min(burst, self.left + (m.t - self.t) * rate)
        self.t = m.t
        self.left -= 1
        return self.left


@contract("IMAGE-12", on=call("PullImage"), needs=(CRI, PODS), clause="rate")
def pulls_are_limited(m: Moment) -> Findings:
    """Pulls come no more often than registryPullQPS and registryBurst allow; one too many fails at once,
    without a call.
    """
    given = m.header.configuration
    if given is None or is_another_try(m):
        return None
    rate, burst = float(given.get("registryPullQPS", _QPS)), float(given.get("registryBurst", _BURST))
    if not rate:
        return None
    left = m.node.note(_Bucket).take(m, rate, burst)
    if left < -_TOLERANCE:
        return broken(f"more images are pulled than {burst:g} at once and then {rate:g} a second")
    return KEPT if left < 1 else None


class _Announced(Note):
    """How many pulls events have announced, in one run of the kubelet."""

    count: int = 0


@observer(on=event("Pulling"))
def _announced(m: Moment) -> None:
    """Count it."""
    m.node.note(_Announced).count += 1


@pulls_are_limited.clause("room", on=event("Failed"))
def first_pulls_are_not_limited(m: Moment, event: Event) -> Findings:
    """No pull is one too many before there were as many as may come at once."""
    given = m.header.configuration
    if given is None or TOO_OFTEN not in event.message or m.header.channels.events != "full":
        return None
    before, burst = m.node.note(_Announced).count - 1, float(given.get("registryBurst", _BURST))
    return KEPT if before >= burst else broken(f"a pull is one too many after {before}, expected {burst:g}")


@pulls_are_limited.clause("at-once", on=event("Pulling"))
def pull_too_many_fails_at_once(m: Moment) -> Findings:
    """Where parallel pulls have no limit, each that is announced by an event is called or fails at once."""
    if _at_a_time(m.header) != float("inf") or m.header.channels.events != "full" or m.pod is None:
        return None
    if any(one.rpc == "PullImage" for one in m.pod.calls_open.values()):
        return KEPT  # A process posts its events beside what it does.
    return answered(
        by=call("PullImage").either(event("Failed", "Pulled")),
        within=TOGETHER,
        unless=TERMINATION_ASKED,
        text="the image is pulled, or the pull fails",
    )


@contract("IMAGE-13", on=call("PullImage"), needs=(CRI, PODS), clause="anonymous")
def every_credential_is_tried(m: Moment, pod: Pod, spec: PodSpec) -> Findings:
    """Each credential that fits an image is tried in turn until one works; a pod without credentials pulls
    anonymously.
    """
    if not pod.born:
        return None
    if is_another_try(m):
        return KEPT
    if spec.image_pull_secrets or m.header.configuration is None:
        return None
    if m.request(PullImageRequest).auth:
        return broken("a pod without secrets pulls with credentials")
    return KEPT


def _awaited(m: Moment) -> bool:
    expected = m.record
    return (
        isinstance(expected, Expect) and expected.contract == "IMAGE-13" and m.header.channels.pods != "none"
    )


@every_credential_is_tried.clause("next", on=Pattern(frozenset({"expect"})).where(_awaited))
def next_credential_is_tried(m: Moment) -> Findings:
    """No trace shows the content of secrets: only the scenario that made them knows what must follow."""
    expected = m.record
    if not isinstance(expected, Expect):
        return None
    return KEPT if expected.met else broken(f"expected {expected.awaited}")


@contract(
    "IMAGE-14", on=event("FailedToRetrieveImagePullSecret"), needs=(CRI, PODS, EVERY_EVENT), clause="reported"
)
def missing_secret_is_tolerated(m: Moment, pod: Pod) -> Findings:
    """A pull secret that is not there keeps nothing from being pulled; an event may report it."""
    if not to_run(m) or _first_to_pull(pod) is None or pod.sandbox is not None:
        return None
    return answered(
        by=call("RunPodSandbox", "PullImage", "CreateContainer"),
        within=2 * REACTION,
        unless=TERMINATION_ASKED,
        text="the pod is started without the missing secret",
    )


@missing_secret_is_tolerated.clause("pulls", on=done("RunPodSandbox"))
def image_is_pulled_without_it(m: Moment, pod: Pod) -> Findings:
    """The image is pulled even if a pull secret is missing."""
    image = _first_to_pull(pod)
    if image is None or not to_run(m) or m.node.note(InFlight).calls:
        return None
    if image in pod.pulls:
        return None  # It may be backing off.
    ends = TERMINATION_ASKED.either(sandbox_died()).where(of(pod))
    return answered(
        by=call("PullImage").where(of(pod)),
        within=REACTION,
        unless=ends.either(call("PullImage")),  # Another pod's turn may come first.
        whole_node=True,
        text=f"{image} is pulled",
    )


def _first_to_pull(pod: Pod) -> str | None:
    """The image of the pod's first container, if it has pull secrets and must pull that in any case."""
    spec = pod.spec
    if spec is None or not spec.image_pull_secrets or spec.init_containers or not spec.containers:
        return None
    first = spec.containers[0]
    return reference(first.image) if first.pull_policy == "Always" else None


@contract("IMAGE-15", on=call("PullImage"))
def pull_carries_the_sandbox(m: Moment) -> Findings:
    """PullImage carries the config of the pod's sandbox, and the pod's annotations with the image."""
    pod, request = m.pod, m.request(PullImageRequest)
    if not request.sandbox_config.metadata.uid:
        return broken(f"{request.image.image} is pulled without a sandbox config")
    sandbox = pod.sandbox if pod is not None else None
    if pod is None or sandbox is None or sandbox.config is None:
        return None
    wrong = config_difference(pod, sandbox.config, request.sandbox_config)
    if wrong:
        return broken(f"the pull of {request.image.image}: {wrong}", sandbox.run)
    given, reported = of_the_pod(request.sandbox_config.annotations), of_the_pod(request.image.annotations)
    return KEPT if given == reported else broken(f"image annotation {differing(given, reported)}")


class _Owners(Note):
    """For each image pulled in this trace: whether every pod may use it, and otherwise which pods."""

    open: Latest[str, None] = field(default_factory=Latest[str, None])
    closed: Latest[str, set[str]] = field(default_factory=Latest[str, set[str]])
    """The UIDs of the pods that exist."""
    seqs: Latest[str, int] = field(default_factory=Latest[str, int])


@contract(
    "IMAGE-21",
    on=call("CreateContainer"),
    needs=(CRI, PODS),
    versions=since("1.33"),
    gate="KubeletEnsureSecretPulledImages",
    clause="used",
)
def image_of_others_is_not_used(m: Moment, pod: Pod) -> Findings:
    """An image that another pod has pulled with its secrets is used by a pod without any only if that has
    pulled it itself.
    """
    owners = m.node.note(_Owners)
    spec = pod.container_spec(m.request(CreateContainerRequest).config.metadata.name)
    if spec is None or not pod.born:
        return None
    image = reference(spec.image)
    if not _is_verified(m.header, image) or (pod.spec and pod.spec.image_pull_secrets):
        return None
    if image not in owners.closed or image in owners.open:
        return None
    if pod.uid in owners.closed[image]:
        return KEPT
    return broken(
        f"{spec.name} is created from {image}, pulled with the secrets of another pod",
        owners.seqs[image],
    )


judges_waits(image_of_others_is_not_used)


@image_of_others_is_not_used.clause("asked", on=call("PullImage"))
def right_to_an_image_is_proven(m: Moment, pod: Pod) -> Findings:
    """An image of another pod's secrets is pulled: the registry decides whether this pod may have it."""
    image, owners = pulled_image(m), m.node.note(_Owners)
    if image not in owners.closed or image in owners.open or pod.uid in owners.closed[image]:
        return None
    return KEPT if any(spec.pull_policy == "IfNotPresent" for spec in containers_of(pod, image)) else None


@observer(on=done("PullImage"))
def _owners(m: Moment, pod: Pod, spec: PodSpec) -> None:
    """Record with which pod's credentials an image was pulled."""
    image, owners = pulled_image(m), m.node.note(_Owners)
    if m.request(PullImageRequest).auth and spec.image_pull_secrets:
        others = owners.closed.get(image, set[str]())
        owners.closed[image] = {pod.uid, *(uid for uid in others if uid in m.world.pods)}
        owners.seqs[image] = m.seq
    else:
        owners.open[image] = None


@observer(on=done("RemoveImage"))
def _has_no_owner(m: Moment) -> None:
    """An image was removed: all that is known of owners is dropped."""
    owners = m.node.note(_Owners)
    owners.open.clear()
    owners.closed.clear()


def _is_verified(header: Header, image: str) -> bool:
    """Pods must prove their right to the image, as far as is known."""
    given = header.configuration
    if given is None:
        return False
    policy = given.get("imagePullCredentialsVerificationPolicy")
    if policy == "NeverVerifyAllowlistedImages":
        return not any(_is_of(image, one) for one in given.get("preloadedImagesVerificationAllowlist", ()))
    return policy != "NeverVerify"


def _is_of(image: str, allowed: str) -> bool:
    """The image is the one that is allowed, or of the path that is, with any tag or digest."""
    return image.startswith(allowed[:-1] if allowed.endswith("/*") else (f"{allowed}:", f"{allowed}@"))
