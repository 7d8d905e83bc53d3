"""IMAGE: what follows a failed pull: the reason shown, and the back-off of that pod for that image."""

from collections.abc import Iterator
from typing import Any, cast

from kubelet_conformance.contract import Finding, Moment, Note, Pod, Waiting
from kubelet_conformance.contract.applicability import CRI, PODS, STATUS, ByVersion, since
from kubelet_conformance.contract.definition import KEPT, Findings, answered, broken, contract, observer
from kubelet_conformance.contract.patterns import call, done, event, failed, pod_set, sandbox_died
from kubelet_conformance.contracts.facts.pod import to_run
from kubelet_conformance.contracts.facts.sandbox import GONE
from kubelet_conformance.contracts.facts.static_pod import note_for_all_instances
from kubelet_conformance.contracts.facts.status import REFUSED
from kubelet_conformance.contracts.facts.timing import RETRY, RETRY_SLACK, SAME_MOMENT
from kubelet_conformance.contracts.images.pull_policy import (
    containers_of,
    is_another_try,
    pulled_image,
    reference,
)
from kubelet_conformance.contracts.sandbox.config import never_updated
from kubelet_conformance.trace.format.manifests import ContainerSpec
from kubelet_conformance.trace.format.records import Event, RpcError
from kubelet_conformance.trace.world.views import Pulls

BASE, CAP = 10.0, 300.0
"""The first delay after a failed pull, and the longest (kubelet.go)."""
EXPIRY = 2 * CAP
"""So long after the last failure the delays start again with the first (backoff.go)."""
_SHOWS_ERROR = ByVersion({"1.23..1.31": False, ">=1.32": True})
"""Whether the message of ImagePullBackOff has the error of the pull before."""


TOO_OFTEN = "pull QPS exceeded"
"""The message for a pull that failed without a call (images/helpers.go)."""


class _Series(Note):
    """The back-off of one pod for its images, in one run of the kubelet."""

    delay: dict[str, float] = {}
    failed_t: dict[str, float] = {}
    life: int = 0
    seq: int = 0

    def failed(self, image: str, t: float, life: int) -> float:
        """A pull failed: the delay that follows."""
        if life != self.life:
            self.delay, self.failed_t, self.life = {}, {}, life
        last = self.failed_t.get(image)
        fresh = last is None or t - last > EXPIRY
        self.delay[image] = BASE if fresh else min(CAP, 2 * self.delay[image])
        self.failed_t[image] = t
        return self.delay[image]


def _delay_at(m: Moment, pod: Pod) -> float:
    """Record a failed pull, once for all judges; return the delay that follows."""
    image, series = pulled_image(m), note_for_all_instances(m, pod, _Series)
    if series.seq == m.seq:
        return series.delay[image]
    series.seq = m.seq
    if is_another_try(m) and image in series.delay:
        # Nor did other credentials help: it is one failure.
        series.failed_t[image] = m.t
        return series.delay[image]
    return series.failed(image, m.t, m.node.lives)


@contract("IMAGE-07", on=failed("PullImage"), needs=(CRI, PODS, STATUS))
def failed_pull_is_retried(m: Moment, pod: Pod) -> Findings:
    """After a failed pull the pod pulls that image again only when 10, 20, 40 ... 300 s have passed.

    It does so within 16 s after that, and the container waits for ErrImagePull with the runtime's message.
    """
    image = pulled_image(m)
    if not pod.born:
        return None
    delay = _delay_at(m, pod)
    if not to_run(m) or not containers_of(pod, image):
        return None

    def is_it(n: Moment) -> bool:
        return pulled_image(n) == image

    return answered(
        by=call("PullImage").where(is_it),
        within=delay + RETRY + RETRY_SLACK,
        unless=GONE.either(call("CreateContainer"), pod_set(), sandbox_died()),
        text=f"{image} is pulled again",
    )


@observer(on=done("PullImage"))
def _other_credentials_helped(m: Moment, pod: Pod) -> None:
    """A pull that succeeds with other credentials than one that failed just now is no failure (IMAGE-13)."""
    if pod.born and is_another_try(m):
        note_for_all_instances(m, pod, _Series).failed_t.pop(pulled_image(m), None)


@failed_pull_is_retried.clause("not before", on=call("PullImage"))
def pull_waits_for_its_back_off(m: Moment, pod: Pod) -> Findings:
    """No pull comes before the back-off has passed."""
    image = pulled_image(m)
    series = note_for_all_instances(m, pod, _Series) if pod.born else None
    if series is None or image not in series.failed_t or series.life != m.node.lives:
        return None
    if is_another_try(m):
        return None
    passed, delay = m.t - series.failed_t[image], series.delay[image]
    if passed < delay - SAME_MOMENT:
        seq = pod.pulls[image].failed_seq if image in pod.pulls else None
        return broken(f"{image} is pulled {passed:.1f} s after a failure, expected at least {delay:g} s", seq)
    return KEPT


def _waiting(m: Moment, reason: str) -> Iterator[tuple[str, Waiting, Pulls | None]]:
    """The containers that wait for this reason, by name, with the failed pulls of their image."""
    pod = m.pod
    if pod is None or m.status is None or not pod.born or pod.spec is None:
        return
    for one in m.status.every_container:
        spec, waiting = pod.container_spec(one.name), one.state.waiting
        if spec is not None and waiting is not None and waiting.reason == reason:
            known = [pod.pulls.get(image) for image in _needed(pod, spec)]
            failures = [pulls for pulls in known if pulls is not None and pulls.errors]
            yield one.name, waiting, max(failures, key=lambda pulls: pulls.failed_seq, default=None)


def _may_be_of_another(pod: Pod | None) -> bool:
    """The status may be about the image that the container had before."""
    return pod is not None and not never_updated(pod)


def _needed(pod: Pod, spec: ContainerSpec) -> Iterator[str]:
    """The images that a container needs: its own, and those that it mounts (IMAGE-20)."""
    yield reference(spec.image)
    mounted = {mount.name for mount in spec.volume_mounts or ()}
    for volume in (pod.spec.volumes or ()) if pod.spec is not None else ():
        image = volume.get("image")
        if volume.get("name") in mounted and isinstance(image, dict):
            yield reference(str(cast("dict[str, Any]", image).get("reference") or ""))


@failed_pull_is_retried.clause("reported", on=REFUSED)
def failed_pull_is_shown(m: Moment) -> Iterator[Finding]:
    """ErrImagePull needs a failed pull, and its message is that pull's error."""
    for name, waiting, pulls in _waiting(m, "ErrImagePull"):
        if waiting.message.endswith(TOO_OFTEN):
            continue
        if pulls is not None and any(error.message in waiting.message for error in pulls.errors):
            yield KEPT
        elif _may_be_of_another(m.pod):
            continue
        elif pulls is None:
            yield broken(f"{name} waits for ErrImagePull, and no pull of its image by this pod failed")
        else:
            expected = pulls.errors[-1].message
            yield broken(
                f"ErrImagePull of {name} says {waiting.message!r}, expected {expected!r}", pulls.failed_seq
            )


KNOWN_ERRORS = ("RegistryUnavailable", "SignatureValidationFailed")
"""What the text of a pull's error may begin with, as the CRI says; it is the reason then."""


def _rest_of(error: RpcError) -> str:
    """The text of an error without the reason that it begins with."""
    return next(
        (error.message.removeprefix(known) for known in KNOWN_ERRORS if error.message.startswith(known)),
        error.message,
    )


@contract("IMAGE-10", on=REFUSED, needs=(CRI, PODS, STATUS), versions=since("1.27"))
def well_known_errors_are_reasons(m: Moment) -> Iterator[Finding]:
    """A pull error that begins with RegistryUnavailable or SignatureValidationFailed is shown with that
    reason, with a message that explains it.
    """
    for name, _, pulls in _waiting(m, "ErrImagePull"):
        if _may_be_of_another(m.pod):
            continue
        if pulls is not None and all(error.message.startswith(KNOWN_ERRORS) for error in pulls.errors):
            yield broken(
                f"{name} waits for ErrImagePull, the error was {pulls.errors[-1].message!r}", pulls.failed_seq
            )
    for reason in KNOWN_ERRORS:
        for name, waiting, pulls in _waiting(m, reason):
            found = [error for error in pulls.errors if error.message.startswith(reason)] if pulls else []
            if any(_rest_of(error) in waiting.message for error in found):
                yield KEPT
            elif _may_be_of_another(m.pod):
                continue
            elif not found:
                yield broken(f"{name} waits for {reason}, and no pull of its image by this pod failed so")
            else:
                yield broken(f"{reason} of {name} says {waiting.message!r}", pulls.failed_seq if pulls else 0)


class _Brought(Note):
    """When a pull last succeeded on the node, and of which image."""

    image: str = ""
    t: float = 0.0
    seq: int = 0


@contract("IMAGE-23", on=call("PullImage"), needs=(CRI, PODS))
def good_pull_clears_no_other_back_off(m: Moment, pod: Pod) -> Findings:
    """A pull that succeeds ends the back-off of no other image."""
    image, brought = pulled_image(m), m.node.note(_Brought)
    series = note_for_all_instances(m, pod, _Series) if pod.born else None
    if series is None or image not in series.failed_t or series.life != m.node.lives or is_another_try(m):
        return None
    if brought.image in {"", image} or brought.t < series.failed_t[image]:
        return None
    if m.t - series.failed_t[image] < series.delay[image] - SAME_MOMENT:
        return broken(
            f"{image} is pulled before its back-off is over, since another image was pulled", brought.seq
        )
    return KEPT


@observer(on=failed("PullImage"))
def _bad_pulls(m: Moment, pod: Pod) -> None:
    """Record failures."""
    if pod.born:
        _delay_at(m, pod)


@observer(on=done("PullImage"))
def _good_pulls(m: Moment) -> None:
    """Record the last good pull."""
    brought = m.node.note(_Brought)
    brought.image, brought.t, brought.seq = pulled_image(m), m.t, m.seq


@contract("IMAGE-08", on=REFUSED, needs=(CRI, PODS, STATUS))
def back_off_is_the_pods_own(m: Moment) -> Iterator[Finding]:
    """All containers of a pod share the back-off of an image, and no other pod does."""
    for name, _, pulls in _waiting(m, "ImagePullBackOff"):
        if pulls:
            yield KEPT
        elif m.pod is not None and not m.pod.note(_Limited).ever and not _may_be_of_another(m.pod):
            yield broken(f"{name} waits for ImagePullBackOff, and no pull by this pod failed")


class _Limited(Note):
    """The pod's pulls have come too often."""

    ever: bool = False


@observer(on=event("Failed").either(REFUSED), last=True)
def _limited_pulls(m: Moment) -> None:
    """Record a pull that failed without a call (IMAGE-12)."""
    texts = [m.record.message] if isinstance(m.record, Event) else []
    for reason in ("ErrImagePull", "ImagePullBackOff"):
        texts += [waiting.message for _, waiting, _ in _waiting(m, reason)]
    if m.pod is not None and any(TOO_OFTEN in text for text in texts):
        m.pod.note(_Limited).ever = True


@back_off_is_the_pods_own.clause("shared", on=call("PullImage"))
def back_off_is_shared_in_the_pod(m: Moment, pod: Pod) -> Findings:
    """The containers of a pod share the back-off of an image."""
    image = pulled_image(m)
    pulls = pod.pulls.get(image) if pod.born else None
    if pulls is None or not pulls.errors or not containers_of(pod, image)[1:]:
        return None
    if pulls.life != m.node.lives or is_another_try(m):
        return None
    passed = m.t - pulls.failed_t
    if passed < BASE - SAME_MOMENT:
        return broken(
            f"{image} is pulled for another container {passed:.1f} s after a failure", pulls.failed_seq
        )
    return KEPT


@contract("IMAGE-09", on=REFUSED, needs=(CRI, PODS, STATUS), versions=_SHOWS_ERROR)
def back_off_shows_the_failure(m: Moment) -> Iterator[Finding]:
    """The message of ImagePullBackOff holds the error of the pull before from 1.32 on, not before that."""
    expected = _SHOWS_ERROR.at(m.kubernetes)
    for name, waiting, pulls in _waiting(m, "ImagePullBackOff"):
        if pulls is None:
            continue
        if any(_rest_of(error) in waiting.message for error in pulls.errors) == expected:
            yield KEPT
        elif not _may_be_of_another(m.pod):
            yield broken(f"ImagePullBackOff of {name} says {waiting.message!r}", pulls.failed_seq)
