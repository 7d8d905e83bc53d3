"""The restart back-off as the trace shows it: how long the next instance of a container has to wait.

The kubelet counts an attempt of a container that has an exited instance, once it is past the back-off.
Most attempts show as CreateContainer. Some may have been counted or not: after a stop the decision may
rest on an older instance, and an attempt whose image cannot be looked up or pulled creates no container. So
the delay is known only as a range.
"""

from collections.abc import Set as AbstractSet

import msgspec

from kubelet_conformance.contract import Container, Moment, Note, Pattern, Pod
from kubelet_conformance.contract.applicability import ByVersion
from kubelet_conformance.contract.definition import observer
from kubelet_conformance.contract.patterns import failed
from kubelet_conformance.contracts.facts.container import REMAKING, asked, finished_t, is_hidden
from kubelet_conformance.contracts.facts.node_pressure import every_pod
from kubelet_conformance.contracts.facts.pod import post_start_may_have_failed
from kubelet_conformance.contracts.facts.static_pod import note_for_all_instances
from kubelet_conformance.contracts.facts.timing import REACTION, RETRY, RETRY_SLACK
from kubelet_conformance.trace.format.bodies import ImageStatusRequest, PullImageRequest
from kubelet_conformance.trace.format.labels import Annotation
from kubelet_conformance.trace.format.records import Call
from kubelet_conformance.trace.world.images import image_asked_for, image_origin

BASE = 10.0
"""The first delay of the series (kubelet.go)."""
CAP = 300.0
"""The longest delay (kubelet.go)."""
EXPIRY = 600.0
"""A run that ends this long after the last attempt resets the series (backoff.go)."""

_LONGEST_WAIT = 60.0
"""A worker never waits longer on purpose, seconds (pod_workers.go completeWork)."""
RETRY_JITTER = ByVersion({"<=1.34": (0.0, RETRY + RETRY_SLACK), ">=1.35": (0.5, REACTION)})
"""How late a pod is synced after the end of a back-off: a part of that, which counts up to a worker's longest
wait, and seconds on top.
"""

OTHER_CURVES = ("ReduceDefaultCrashLoopBackOffDecay", "KubeletCrashLoopBackOffMax")
"""Feature gates under which the series has other delays."""

ATTEMPTS: Pattern = REMAKING.either(failed("PullImage", "ImageStatus"))


def is_usual(m: Moment) -> bool:
    """The series has its default delays: no feature gate and no configuration changes them."""
    gates, configured = m.header.feature_gates, m.header.configuration or {}
    return "crashLoopBackOff" not in configured and not any(gates.get(gate) for gate in OTHER_CURVES)


class Restart(msgspec.Struct, frozen=True):
    """One attempt to run a container again that has an exited instance."""

    ended: Container
    """The newest exited instance."""
    passed: float
    """Seconds since it finished."""
    least: float
    """Seconds that it has to wait for certain."""
    expired: bool
    """There was a series, and a long run has reset it."""
    since_last: float
    """Seconds from the last attempt to the end of the run."""


class _Entry(Note):
    """The series of one container by one definition: attempts counted for certain, and at most."""

    sure: int = 0
    most: int = 0
    sure_t: float = float("-inf")
    most_t: float = float("-inf")

    def least_delay(self, finished: float) -> float:
        return 0.0 if finished - self.sure_t > EXPIRY else _delay(self.sure)

    def most_delay(self, finished: float) -> float:
        return 0.0 if finished - self.most_t > EXPIRY else _delay(self.most)

    def attempted(self, t: float, finished: float, *, certain: bool) -> None:
        if finished - self.sure_t > EXPIRY:
            self.sure = 0
        if finished - self.most_t > EXPIRY:
            self.most = 0
        self.most, self.most_t = self.most + 1, t
        if certain:
            self.sure, self.sure_t = self.sure + 1, t


class _Series(Note):
    """The back-off series of a pod's containers by name, as the present kubelet has them in memory."""

    life: int = 0
    entries: dict[str, _Entry] = {}
    """Those of the present definitions."""
    by_hash: dict[tuple[str, str], _Entry] = {}
    """Those of all definitions: one that comes back finds its series (helpers.go GetStableKey)."""
    images: set[tuple[str, str]] = set()
    """The images of all these definitions, by the container's name."""
    seq: int = 0
    now: Restart | None = None

    def entry(self, name: str, container_hash: str, image: str) -> _Entry:
        self.images.add((name, image))
        found = self.by_hash.setdefault((name, container_hash), _Entry())
        self.entries[name] = found
        return found


def _delay(attempts: int) -> float:
    return min(CAP, BASE * 2.0 ** min(attempts - 1, 10)) if attempts else 0.0


def _series_of(pod: Pod, m: Moment) -> _Series:
    series = note_for_all_instances(m, pod, _Series)
    if series.life != m.node.lives:
        series.life, series.entries, series.by_hash = m.node.lives, {}, {}
        series.images = set()
    return series


def restart_at(m: Moment) -> Restart | None:
    """Record an attempt, once; return what it is, if it is a restart."""
    if ATTEMPTS.keys.isdisjoint(m.keys):
        return None
    if m.keys[0] == "failed:ImageStatus":
        _look_failed(m)
    if m.pod is None:
        return None
    series = _series_of(m.pod, m)
    if series.seq != m.seq:
        series.seq = m.seq
        series.now = None
        if type(m.record) is Call:
            series.now = _created(series, m.pod, m)
        elif m.call.rpc == "PullImage":
            image = m.request(PullImageRequest).image
            _image_failed(series, m.pod, m, {image.image, image.user_specified_image})
    return series.now


def was_killed(container: Container) -> bool:
    """The kubelet stopped it, though it may have exited by itself before that: the kubelet took it to run."""
    return bool(container.stops) or (container.exit is not None and container.exit.commanded)


@observer(on=ATTEMPTS)
def take_attempt(m: Moment) -> None:
    """Record attempts to run containers again, and keep their back-off series up to date."""
    restart_at(m)


def _created(series: _Series, pod: Pod, m: Moment) -> Restart | None:
    config = asked(m)
    name = config.metadata.name
    ended = _newest_exited(pod, name) or _just_removed(pod, name)
    finished = finished_t(ended) if ended else None
    image = image_asked_for(m)
    entry = series.entry(name, config.annotations.get(Annotation.HASH, ""), image)
    if ended is None or ended.exit is None or finished is None:
        if _ended_before(pod, name):
            entry.attempted(m.t, m.t, certain=False)
        return None
    if ended.state == "removed" or is_hidden(m, ended):
        entry.attempted(m.t, finished, certain=False)
        return None
    # A kubelet that asks for the same attempt again has not read of this end, and counts nothing.
    certain = not was_killed(ended) and config.metadata.attempt > ended.attempt
    usual = is_usual(m)
    restart = Restart(
        ended,
        m.t - finished,
        entry.least_delay(finished) if usual else 0.0,
        entry.sure > 0 and finished - entry.most_t > EXPIRY,
        finished - entry.sure_t,
    )
    entry.attempted(m.t, finished, certain=certain)
    return restart


def _look_failed(m: Moment) -> None:
    """A failed ImageStatus names no pod: it may be for any pod with a container of that image."""
    image = m.request(ImageStatusRequest).image.image
    for pod in every_pod(m):
        series = _series_of(pod, m)
        if series.seq != m.seq:
            series.seq, series.now = m.seq, None
            _image_failed(series, pod, m, {image})


def _image_failed(series: _Series, pod: Pod, m: Moment, images: AbstractSet[str]) -> None:
    for name in pod.containers:
        spec, ended = pod.container_spec(name), _newest_exited(pod, name)
        finished = finished_t(ended) if ended else None
        if spec is not None and spec.image in images and ended and ended.config and finished is not None:
            entry = series.entry(name, ended.config.annotations.get(Annotation.HASH, ""), spec.image)
            entry.attempted(m.t, finished, certain=False)


def _newest_exited(pod: Pod, name: str) -> Container | None:
    exited = (one for one in reversed(pod.containers.get(name, ())) if one.state == "exited")
    return next(exited, None)


def _just_removed(pod: Pod, name: str) -> Container | None:
    """An init container that was removed with its sandbox; the pass that did so may have counted it."""
    newest = pod.newest(name)
    removed = newest is not None and newest.state == "removed" and not newest.vanished
    return newest if removed and pod.kind_of(name) in {"init", "sidecar"} else None


def _ended_before(pod: Pod, name: str) -> bool:
    """The newest record never began and is a later attempt: the first is gone, by garbage collection or with
    its sandbox.
    """
    newest = pod.newest(name)
    return newest is not None and newest.state in {"created", "removed"} and newest.attempt > 0


def most_delay(m: Moment, name: str) -> float:
    """The longest back-off that a container of the moment's pod may have to sit out if it ends now.

    Which of its definitions the spec has next is not known yet.
    """
    if m.pod is None:
        return 0.0
    every = _series_of(m.pod, m).by_hash.items()
    return max((entry.most_delay(m.t) for (one, _), entry in every if one == name), default=0.0)


def has_series(m: Moment, pod: Pod, name: str, image: str) -> bool:
    """The container was created before with this image: that definition may have a back-off of its own."""
    return (name, image) in _series_of(pod, m).images


def pulls_are_held_up(m: Moment, pod: Pod, image: str) -> bool:
    """A pull of the image failed for this pod: the back-off of that is shared by all its containers.

    It is by the pod and the image (image_manager.go).
    """
    pulls = pod.pulls.get(image)
    return pulls is not None and pulls.life == m.node.lives and bool(pulls.failed_seq)


def no_pull(m: Moment, pod: Pod, name: str) -> bool:
    """No call is made for this container while its image is absent: it may not be pulled, or not yet."""
    spec = pod.container_spec(name)
    return spec is not None and (spec.pull_policy == "Never" or pulls_are_held_up(m, pod, spec.image))


def may_stay_stopped(m: Moment, container: Container) -> bool:
    """The sync that stops the container may not make it again.

    Its postStart hook has failed, or the image that it is to have is not there, or has a back-off of its own.
    """
    spec, config, pod = container.spec, container.config, container.pod
    if spec is None or config is None or pod is None or post_start_may_have_failed(container):
        return spec is not None and config is not None
    had = image_origin(container)
    is_changed = bool(had) and had != spec.image
    if not is_changed or spec.pull_policy == "Never" or pulls_are_held_up(m, pod, spec.image):
        return is_changed
    return has_series(m, pod, container.name, spec.image)


def delay_before(m: Moment, pod: Pod, name: str) -> float:
    """The back-off that the previous kubelet kept in memory for certain, when another one starts."""
    series = note_for_all_instances(m, pod, _Series)
    entry = series.entries.get(name) if series.life == m.node.lives else None
    return entry.least_delay(m.t) if entry else 0.0


def after_the_delay(m: Moment, delay: float) -> float:
    """How long after a back-off of `delay` seconds its pod is synced at the latest (WORK-16)."""
    part, seconds = RETRY_JITTER.at(m.kubernetes)
    return part * min(delay, _LONGEST_WAIT) + seconds


def retry_bound(m: Moment, name: str) -> float:
    """How late the next instance may come where a retry makes it: at the one after its back-off."""
    delay = most_delay(m, name)
    return delay + max(after_the_delay(m, delay), RETRY + RETRY_SLACK)


def restart_bound(m: Moment, name: str) -> float:
    """How late the next instance may come after an end now: at once, or at the retry after its back-off."""
    return retry_bound(m, name) if most_delay(m, name) else REACTION
