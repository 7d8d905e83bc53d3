"""SYNC: a status says why a container could not be started, until it starts or the kubelet restarts."""

from collections.abc import Iterator

from kubelet_conformance.contract import Container, Finding, Moment, Note, Pattern, Pod, PodStatus
from kubelet_conformance.contract.applicability import CRI, EVERY_STATUS, PODS, STATUS
from kubelet_conformance.contract.definition import KEPT, Findings, answered, broken, contract, observer
from kubelet_conformance.contract.patterns import done, failed, sandbox_died, status
from kubelet_conformance.contracts.facts.container import failing_start, left_created_state
from kubelet_conformance.contracts.facts.kubelet import api_is_away
from kubelet_conformance.contracts.facts.pod import FAULT, NOBODY, to_run, was_seen_started, will_not_restart
from kubelet_conformance.contracts.facts.sandbox import GONE
from kubelet_conformance.contracts.facts.status import REFUSED
from kubelet_conformance.contracts.facts.timing import REACTION, RETRY, RETRY_SLACK
from kubelet_conformance.contracts.images.pull_policy import known_image

_REASONS = {"CreateContainer": "CreateContainerError", "StartContainer": "RunContainerError"}
"""What a status says while such a call was the last that failed for a container."""
_UNTRIED = frozenset({"", "ContainerCreating", "PodInitializing"})
"""What it says of a container that this kubelet has not tried to start."""


class _Tries(Note):
    """The results of the last attempts to create and start each container."""

    failed: dict[tuple[str, str], tuple[int, int]] = {}
    """By name and reason: the seq of the last one, and the run of the kubelet it was in."""
    started: dict[str, tuple[int, float]] = {}
    """By name: seq and time of the first good start since the last one that failed."""


_TRIED = failed("CreateContainer", "StartContainer").either(done("StartContainer"))


class _Taken(Note):
    seq: int = 0


@observer(on=_TRIED)
def _take_try(m: Moment, pod: Pod) -> None:
    if pod.note(_Taken).seq == m.seq:
        return
    pod.note(_Taken).seq = m.seq
    tries, name = pod.note(_Tries), failing_start(m)
    if m.reply.error is None:
        tries.started.setdefault(name, (m.seq, m.t))
    else:
        tries.started.pop(name, None)
        tries.failed[name, _REASONS[m.call.rpc]] = m.seq, m.node.lives


@contract("SYNC-15", on=REFUSED, needs=(CRI, PODS, STATUS))
def reason_goes_with_the_next_success(m: Moment, pod: Pod, status: PodStatus) -> Iterator[Finding]:
    """A container that could not be started waits with the reason in the pod's next status.

    When it could be started the reason is forgotten.
    """
    if not pod.born:
        return
    tries = pod.note(_Tries)
    for one in status.every_container:
        reason = one.state.waiting.reason if one.state.waiting is not None else ""
        failure, start = tries.failed.get((one.name, reason)), tries.started.get(one.name)
        if failure is None:
            continue
        if start is not None and m.t - start[1] > REACTION:
            text = f"{one.name} waits for {reason}, and has been started since that failed"
            yield broken(text, failure[0], start[0])
        else:
            yield KEPT


def _started(pod: Pod, name: str) -> Pattern:
    def fits(m: Moment) -> bool:
        return m.pod is pod and m.container is not None and m.container.name == name

    return done("StartContainer").where(fits)


def _shown(name: str, reason: str) -> Pattern:
    def fits(m: Moment) -> bool:
        one = m.status.by_name.get(name) if m.status is not None else None
        return one is not None and one.state.waiting is not None and one.state.waiting.reason == reason

    return status().where(fits)


def _runs_after_all(m: Moment, container: Container | None) -> Pattern:
    """A start whose answer was lost may have taken place."""
    return left_created_state(container) if container is not None and m.reply.effect else NOBODY


@reason_goes_with_the_next_success.clause("reported", on=failed("CreateContainer", "StartContainer"))
def reason_is_shown(m: Moment, pod: Pod) -> Findings:
    """The next status shows why a container could not be started."""
    name = failing_start(m)
    if not to_run(m) or pod.kind_of(name) not in {"app", "init"}:
        return None
    if m.header.channels.api != "full" or api_is_away(m) or will_not_restart(pod, name):
        return None
    if m.container is not None and was_seen_started(m.container):
        return None  # An event has reported that the start took place.
    others = failed("CreateContainer", "StartContainer", "PullImage", "PodSandboxStatus", "ContainerStatus")
    return answered(
        by=_shown(name, _REASONS[m.call.rpc]),
        within=RETRY + RETRY_SLACK + REACTION,
        unless=GONE.either(
            _started(pod, name), sandbox_died(), FAULT, others, REFUSED, _runs_after_all(m, m.container)
        ),
        text=f"the pod's status says why {name} could not be started",
    )


def _tried_here(m: Moment, pod: Pod, name: str, reason: str) -> bool | None:
    """Whether this kubelet itself has failed to start it for that reason; None where it is not known."""
    if reason in _REASONS.values():
        return pod.note(_Tries).failed.get((name, reason), (0, 0))[1] == m.node.lives
    spec = pod.container_spec(name)
    pulls = pod.pulls.get(spec.image) if spec is not None else None
    if _has_failed_for_a_former_image(m, pod):
        return None
    if spec is None or pulls is None or reason not in {"ErrImagePull", "ImagePullBackOff"}:
        return None
    answers = known_image(m, spec.image).answers
    if any(each.seq > m.node.started_seq and not each.present for each in answers):
        return None  # It was looked for and absent, and a limit of pulls may have kept it from being pulled.
    # The reason is kept by the container's name: it may be that of the image of a version before.
    every = pod.pulls.values() if _changed_in_this_life(m, pod) else (pulls,)
    return any(one.life == m.node.lives and one.failed_seq for one in every)


def _changed_in_this_life(m: Moment, pod: Pod) -> bool:
    since, started = pod.spec_changed_t, m.node.started_t
    return since is not None and (started is None or since >= started)


def _has_failed_for_a_former_image(m: Moment, pod: Pod) -> bool:
    """This kubelet could not pull an image of an earlier spec: the status shows that until the next start."""
    every = (*(pod.spec.init_containers or ()), *pod.spec.containers) if pod.spec is not None else ()
    named = {one.image for one in every}
    former = (pulls for image, pulls in pod.pulls.items() if image not in named)
    return any(pulls.life == m.node.lives and pulls.failed_seq for pulls in former)


def _after_a_restart(m: Moment) -> bool:
    return m.node.lives > 1 and m.pod is not None and m.pod.status is not None


@contract(
    "SYNC-16",
    on=status().where(_after_a_restart),
    needs=(CRI, PODS, EVERY_STATUS),
)
def reasons_do_not_outlive_the_kubelet(m: Moment, pod: Pod, status: PodStatus) -> Iterator[Finding]:
    """A restarted kubelet reports why a container could not be started only after its own next try."""
    if pod.status is None or not pod.born:
        return
    before = pod.status.by_name
    for one in status.every_container:
        waiting, old = one.state.waiting, before.get(one.name)
        was = old.state.waiting.reason if old is not None and old.state.waiting is not None else ""
        if waiting is None or was in _UNTRIED:
            continue
        if waiting.reason in _UNTRIED:
            yield KEPT
        elif _tried_here(m, pod, one.name, waiting.reason) is False:
            yield broken(f"{one.name} waits for {waiting.reason}, and was not tried since the restart")
