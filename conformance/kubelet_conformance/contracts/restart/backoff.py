"""BACKOFF: how long a container that keeps ending has to wait before it is started again."""

import re
from collections.abc import Iterator

from kubelet_conformance.contract import Answered, Container, Finding, Kind, Moment, Pod, PodStatus, Sandbox
from kubelet_conformance.contract.applicability import CRI, PODS, STATUS
from kubelet_conformance.contract.definition import KEPT, Findings, answered, broken, contract
from kubelet_conformance.contract.patterns import failed, kubelet
from kubelet_conformance.contracts.facts import backoff as backoffs
from kubelet_conformance.contracts.facts import container as containers
from kubelet_conformance.contracts.facts import timing
from kubelet_conformance.contracts.facts.kubelet import sees_a_ready_runtime
from kubelet_conformance.contracts.facts.pod import LAST_END, at_its_end, of, to_run
from kubelet_conformance.contracts.facts.static_pod import has_come_back
from kubelet_conformance.contracts.facts.status import REFUSED, carries_on

_CALLED_OFF = containers.HELD_UP.either(containers.SIDECAR_ENDS)
_SIDECAR_CALLED_OFF = containers.HELD_UP.either(LAST_END, containers.INIT_FAILS)
_BACK_OFF_MESSAGE = re.compile(
    r"back-off (?:(\d+)m)?(\d+)s restarting failed container=(\S+) pod=(\S+)_(\S+)\((\S+)\)"
)


def _is_made(container: Container, within: float, how: str) -> Answered:
    """An instance follows this one, unless something keeps it from being made in time, or for good."""
    return answered(
        by=containers.start_of(container.name),
        within=within,
        unless=_SIDECAR_CALLED_OFF if container.kind == "sidecar" else _CALLED_OFF,
        text=f"{container.name} is made {how}",
    )


def _crashed(m: Moment, *kinds: Kind) -> Container | None:
    """The container of one of these kinds that ended here by itself (OWN_END) and is to run again."""
    container = m.container
    if container is None or m.exit is None or m.pod is None or container.kind not in kinds:
        return None
    if not containers.in_place(container) or _is_left(m, container):
        return None
    if containers.waits_for_sidecars(container) or containers.has_failed_init(m.pod):
        return None
    return None if at_its_end(m.pod, container, m.exit.code) else container


def _is_left(m: Moment, container: Container) -> bool:
    """By the restart policy it does not run again after this end."""
    if m.pod is None or m.exit is None or m.exit.code is None:
        return True
    if container.kind == "sidecar":
        return False
    if container.kind == "init":
        return m.exit.code == 0 or m.pod.restart_policy == "Never"
    spec = container.spec
    policy = m.pod.restart_policy
    return (spec is not None and spec.restart_policy is not None) or not (
        policy == "Always" or (policy == "OnFailure" and m.exit.code != 0)
    )


def _early(restart: backoffs.Restart) -> str:
    """What is wrong with a restart that comes before its time; empty where nothing is."""
    if restart.passed >= restart.least - timing.SAME_MOMENT:
        return ""
    name = restart.ended.name
    return f"{name} is made {restart.passed:.2f} s after it finished, expected {restart.least:g} s at least"


def _not_early(m: Moment, *kinds: Kind) -> Findings:
    """A restart that a back-off holds up comes no earlier than the back-off allows."""
    restart = backoffs.restart_at(m)
    if restart is None or not restart.least or restart.ended.exit is None:
        return None
    ended = restart.ended
    if backoffs.was_killed(ended) or ended.kind not in kinds:
        return None
    if ended.pod is not None and ended.kind == "app" and containers.wants_restart(ended.pod, ended) is False:
        return None  # That it is run again at all breaks RESTART-05.
    wrong = _early(restart)
    return broken(wrong, restart.ended.exit.seq) if wrong else KEPT


@contract("BACKOFF-01", on=backoffs.ATTEMPTS, needs=(CRI, PODS))
def doubles_from_ten_seconds(m: Moment) -> Findings:
    """After a first crash the restart is immediate; the next waits 10 s, then 20, 40, 80, 160 and 300 s."""
    return _not_early(m, "app")


@doubles_from_ten_seconds.clause("first-at-once", on=containers.OWN_END)
def _(m: Moment) -> Findings:
    """After its first crash an app container is made again at once."""
    if m.container is None or backoffs.most_delay(m, m.container.name):
        return None
    container = _crashed(m, "app")
    if container is None:
        return None
    return _is_made(container, timing.REACTION, "again at once after its first crash")


@contract("BACKOFF-02", on=containers.OWN_END, needs=(CRI, PODS))
def counts_from_the_end(m: Moment) -> Findings:
    """The delay is measured from the end of the newest exited instance, not from a refused attempt.

    So the restart comes with the first retry after it.
    """
    delay = backoffs.most_delay(m, m.container.name) if m.container is not None else 0.0
    container = _crashed(m, "app", "init", "sidecar") if delay else None
    if container is None:
        return None
    within = backoffs.retry_bound(m, container.name)
    return _is_made(container, within, f"again after a back-off of {delay:g} s")


@contract("BACKOFF-03", on=containers.OWN_END.either(backoffs.ATTEMPTS), needs=(CRI, PODS))
def long_run_begins_anew(m: Moment) -> Findings:
    """A run that ends over 600 s after the last attempt begins the series anew; a shorter one does not."""
    restart = backoffs.restart_at(m)
    if (
        restart is not None
        and restart.least >= backoffs.BASE
        and backoffs.CAP < restart.since_last <= backoffs.EXPIRY
    ):
        wrong = _early(restart)
        return broken(wrong) if wrong else KEPT
    container = m.container
    if container is None or not container.attempt or container.created_t is None:
        return None
    lasted = m.t - container.created_t
    if lasted <= backoffs.EXPIRY or not _crashed(m, "app", "init", "sidecar"):
        return None
    if backoffs.most_delay(m, container.name):
        return None
    return _is_made(container, timing.REACTION, f"again at once after a run of {lasted:.0f} s")


@contract("BACKOFF-04", on=backoffs.ATTEMPTS, needs=(CRI, PODS))
def success_is_held_up_too(m: Moment) -> Findings:
    """Under policy Always, ends with code 0 are subject to the same back-off."""
    restart = backoffs.restart_at(m)
    if restart is None or containers.failed_run(restart.ended):
        return None
    return _not_early(m, "app", "sidecar")


@contract("BACKOFF-05", on=containers.FREE_CHANGE, needs=(CRI, PODS))
def change_begins_anew(m: Moment) -> Iterator[Finding]:
    """The back-off belongs to one pod, container and definition: a changed image is started at once."""
    for newest in containers.newly_imaged(m, "exited"):
        pod = newest.pod
        sent = m.manifest.spec.entries.get(newest.name) if m.manifest is not None else None
        if pod is None or sent is None or containers.waits_for_sidecars(newest):
            continue
        if sent[1].pull_policy == "Never" or backoffs.pulls_are_held_up(m, pod, sent[1].image):
            continue
        if containers.wants_restart(pod, newest) and not backoffs.has_series(
            m, pod, newest.name, sent[1].image
        ):
            yield answered(
                by=containers.start_of(newest.name),
                within=timing.REACTION,
                unless=_CALLED_OFF,
                text=f"{newest.name} is made at once with its new image",
            )


@contract("BACKOFF-06", on=REFUSED, needs=(CRI, PODS, STATUS))
def refusal_is_reported(m: Moment, pod: Pod, status: PodStatus) -> Iterator[Finding]:
    """While a container is held up its status is Waiting with reason CrashLoopBackOff.

    The message names delay, container and pod; lastState has the exit, and restartCount stays that of the
    instance that ended. From 1.36 on that may be more than its attempt, and what was reported of it counts.
    """
    every = status.lasting_containers
    for reported in every:
        waiting, ended = reported.state.waiting, reported.last_state.terminated
        if waiting is None or waiting.reason != "CrashLoopBackOff":
            continue
        newest = m.world.containers.get(reported.runtime_id)
        if ended is None and newest is not None and newest.state == "created":
            continue  # What was made before it was never started either.
        if ended is None and not reported.container_id and has_come_back(m, pod):
            continue  # Reasons are kept by the pod's UID, longer than its statuses.
        if ended is None:
            yield broken(f"{reported.name} is in CrashLoopBackOff without a terminated lastState")
            continue
        wrong = _message_wrong(m, pod, reported.name, waiting.message)
        gone = next(
            (c for c in pod.containers.get(reported.name, ()) if ended.container_id.endswith(c.id)), None
        )
        is_newest = gone is not None and reported.runtime_id in {"", gone.id}
        expected = _restart_count(m, pod, gone) if is_newest and gone is not None else None
        if not wrong and expected is not None and reported.restart_count != expected:
            wrong = f"{reported.name} has restartCount {reported.restart_count}, expected {expected}"
        yield broken(wrong) if wrong else KEPT


def _restart_count(m: Moment, pod: Pod, gone: Container) -> int | None:
    """The restart count of the instance that ended; None where it was not reported before it ended."""
    if not carries_on(m):
        return gone.attempt
    before = pod.status.by_name.get(gone.name) if pod.status is not None else None
    return before.restart_count if before is not None and before.runtime_id == gone.id else None


def _message_wrong(m: Moment, pod: Pod, name: str, message: str) -> str:
    found = _BACK_OFF_MESSAGE.fullmatch(message)
    if found is None or found[3] != name or (found[5], found[4]) != (pod.namespace, pod.name):
        return f"the message {message!r} does not name delay, container {name} and pod {pod.name}"
    seconds = 60 * int(found[1] or 0) + int(found[2])
    if backoffs.is_usual(m) and seconds not in {10, 20, 40, 80, 160, 300}:
        return f"a delay of {seconds} s is not of the series 10, 20, 40, 80, 160, 300 s"
    return ""


@contract("BACKOFF-07", on=containers.OWN_END, needs=(CRI, PODS))
def siblings_are_not_held_up(m: Moment, pod: Pod, container: Container) -> Findings:
    """The back-off of one container does not delay another: its first crash is answered at once."""
    others = [c for c in pod.of_kind("app", "sidecar") if c.name != container.name and c.state == "exited"]
    if not any(backoffs.most_delay(m, other.name) > timing.REACTION for other in others):
        return None
    if _crashed(m, "app", "sidecar") is None or backoffs.most_delay(m, container.name):
        return None
    return _is_made(container, timing.REACTION, "at once while another container is held up")


def _waits_for_inits(pod: Pod, container: Container) -> bool:
    """The container's sandbox is gone: in the next one the init containers come first."""
    is_gone = container.sandbox is None or container.sandbox.state != "ready"
    return is_gone and pod.spec is not None and bool(pod.spec.init_containers)


@contract("BACKOFF-08", on=kubelet("started"), needs=(CRI, PODS))
def forgotten_with_the_kubelet(m: Moment) -> Iterator[Finding]:
    """Back-offs live in memory only: a kubelet that starts runs a crashed container again at once."""
    for pod in list(m.world.pods.values()):
        if not (pod.born and pod.wanted) or pod.termination is not None or pod.finished:
            continue
        for name in pod.containers:
            newest = pod.newest(name)
            if newest is None or newest.kind != "app" or newest.state != "exited" or newest.exit is None:
                continue
            if _waits_for_inits(pod, newest) or containers.waits_for_sidecars(newest):
                continue
            held_up = backoffs.delay_before(m, pod, name) - (m.t - newest.exit.t)
            if held_up > timing.KUBELET_START + timing.RETRY and containers.wants_restart(pod, newest):
                yield answered(
                    by=containers.start_of(name).where(of(pod)),
                    within=timing.KUBELET_START,
                    unless=containers.HELD_UP.where(of(pod)),
                    whole_node=True,
                    text=f"{name} of {pod.name} is made at once by the new kubelet",
                )


@contract("BACKOFF-10", on=backoffs.ATTEMPTS, needs=(CRI, PODS))
def init_containers_and_sidecars_too(m: Moment) -> Findings:
    """Init containers and sidecars are held up by the same series."""
    return _not_early(m, "init", "sidecar")


@contract("BACKOFF-13", on=failed("CreateContainer"), needs=(CRI, PODS))
def failed_creation_is_only_retried(m: Moment, pod: Pod, sandbox: Sandbox) -> Findings:
    """A container that could not be made has no back-off: it is tried again within the 16 s of a retry."""
    if not to_run(m) or not sees_a_ready_runtime(m):
        return None
    name = containers.asked(m).metadata.name
    if pod.kind_of(name) not in {"app", "init", "sidecar"} or sandbox.state != "ready":
        return None
    if any(one.state == "exited" for one in pod.containers.get(name, ())):
        return None
    return answered(
        by=containers.start_of(name),
        within=timing.RETRY + timing.RETRY_SLACK,
        unless=_CALLED_OFF,
        text=f"{name} is tried again",
    )
