"""IMAGE: what follows a failed pull: the reason shown, and the back-off of that pod for that image."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kubelet_conformance.contract.frame import KEPT, answered, broken, contract
from kubelet_conformance.contract.needs import CRI, PODS, STATUS
from kubelet_conformance.contract.versions import ByVersion
from kubelet_conformance.contract.words import call, failed, pod_set, sandbox_died
from kubelet_conformance.contracts.images import containers_of, pulled_image, reference
from kubelet_conformance.contracts.sandboxes import GONE
from kubelet_conformance.contracts.situations import to_run
from kubelet_conformance.contracts.timing import RETRY, RETRY_SLACK, SAME_MOMENT
from kubelet_conformance.contracts.written import REFUSED

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kubelet_conformance.contract.frame import Finding, Findings
    from kubelet_conformance.trace.images import Pulls
    from kubelet_conformance.trace.manifests import Waiting
    from kubelet_conformance.trace.moment import Moment

BASE, CAP = 10.0, 300.0
"""The first delay after a failed pull, and the longest (kubelet.go)."""
EXPIRY = 2 * CAP
"""So long after the last failure the delays begin anew (backoff.go)."""
TELLS_WHY = ByVersion({"1.23..1.26": False, ">=1.32": True})
"""ImagePullBackOff tells the error of the pull before."""


class _Series:
    """The back-off of one pod for its images, in one life of the kubelet."""

    def __init__(self) -> None:
        self.delay: dict[str, float] = {}
        self.failed_t: dict[str, float] = {}
        self.life = 0

    def failed(self, image: str, t: float, life: int) -> float:
        """A pull failed: the delay that follows."""
        if life != self.life:
            self.delay, self.failed_t, self.life = {}, {}, life
        last = self.failed_t.get(image)
        fresh = last is None or t - last > EXPIRY
        self.delay[image] = BASE if fresh else min(CAP, 2 * self.delay[image])
        self.failed_t[image] = t
        return self.delay[image]


@contract("IMAGE-07", on=failed("PullImage"), needs=(CRI, PODS, STATUS))
def failed_pull_is_retried(m: Moment) -> Findings:
    """After a failed pull the pod pulls that image again only when 10, 20, 40 ... 300 s have passed.

    It does so within 16 s after that, and the container waits for ErrImagePull with the runtime's message.
    """
    pod, image = m.pod, pulled_image(m)
    if pod is None or not pod.born:
        return None
    delay = pod.note(_Series).failed(image, m.t, m.node.lives)
    if not to_run(m) or not containers_of(pod, image):
        return None

    def is_it(n: Moment) -> bool:
        return pulled_image(n) == image

    return answered(
        by=call("PullImage").where(is_it, f"it is for {image}"),
        within=delay + RETRY + RETRY_SLACK,
        unless=GONE.either(call("CreateContainer"), pod_set(), sandbox_died()),
        text=f"{image} is pulled again",
    )


@failed_pull_is_retried.clause("not before", on=call("PullImage"))
def pull_waits_for_its_back_off(m: Moment) -> Findings:
    """No pull comes before the back-off has passed."""
    pod, image = m.pod, pulled_image(m)
    series = pod.note(_Series) if pod is not None and pod.born else None
    if pod is None or series is None or image not in series.failed_t or series.life != m.node.lives:
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
            pulls = pod.pulls.get(reference(spec.image))
            yield one.name, waiting, pulls if pulls is not None and pulls.errors else None


@failed_pull_is_retried.clause("told", on=REFUSED)
def failed_pull_is_told(m: Moment) -> Iterator[Finding]:
    """ErrImagePull needs a failed pull, and tells its error."""
    for name, waiting, pulls in _waiting(m, "ErrImagePull"):
        if pulls is None:
            yield broken(f"{name} waits for ErrImagePull, and no pull of its image by this pod failed")
        elif not any(error.message in waiting.message for error in pulls.errors):
            expected = pulls.errors[-1].message
            yield broken(
                f"ErrImagePull of {name} says {waiting.message!r}, expected {expected!r}", pulls.failed_seq
            )
        else:
            yield KEPT


@contract("IMAGE-08", on=REFUSED, needs=(CRI, PODS, STATUS))
def back_off_is_the_pods_own(m: Moment) -> Iterator[Finding]:
    """The back-off of an image is one for all containers of a pod, and no other pod's."""
    for name, _, pulls in _waiting(m, "ImagePullBackOff"):
        yield KEPT if pulls else broken(f"{name} waits for ImagePullBackOff, and no pull by this pod failed")


@back_off_is_the_pods_own.clause("shared", on=call("PullImage"))
def back_off_is_shared_in_the_pod(m: Moment) -> Findings:
    """The containers of a pod share it."""
    pod, image = m.pod, pulled_image(m)
    pulls = pod.pulls.get(image) if pod is not None and pod.born else None
    if pod is None or pulls is None or not pulls.errors or not containers_of(pod, image)[1:]:
        return None
    if pulls.life != m.node.lives:
        return None
    passed = m.t - pulls.failed_t
    if passed < BASE - SAME_MOMENT:
        return broken(
            f"{image} is pulled for another container {passed:.1f} s after a failure", pulls.failed_seq
        )
    return KEPT


@contract("IMAGE-09", on=REFUSED, needs=(CRI, PODS, STATUS), versions=TELLS_WHY)
def back_off_tells_the_failure(m: Moment) -> Iterator[Finding]:
    """The message of ImagePullBackOff holds the error of the pull before from 1.32 on, not up to 1.26."""
    expected = TELLS_WHY.at(m.kubernetes)
    for name, waiting, pulls in _waiting(m, "ImagePullBackOff"):
        if pulls is None:
            continue
        if any(error.message in waiting.message for error in pulls.errors) == expected:
            yield KEPT
        else:
            yield broken(f"ImagePullBackOff of {name} says {waiting.message!r}", pulls.failed_seq)
