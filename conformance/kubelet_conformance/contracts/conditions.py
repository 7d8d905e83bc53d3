"""COND: the conditions of a pod, held against the container statuses they are written with."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from kubelet_conformance.contract.frame import KEPT, broken, contract
from kubelet_conformance.contract.needs import CRI, PODS, STATUS
from kubelet_conformance.contract.versions import ByVersion, since
from kubelet_conformance.contract.words import status
from kubelet_conformance.contracts.sandboxes import why_replaced
from kubelet_conformance.contracts.timing import REACTION
from kubelet_conformance.contracts.written import written

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kubelet_conformance.contract.frame import Finding, Findings
    from kubelet_conformance.contracts.written import Written
    from kubelet_conformance.trace.moment import Moment

NEEDS = (STATUS, PODS)
READY_TO_START = "PodReadyToStartContainers"


class Expected(NamedTuple):
    """A condition as it should stand."""

    status: str
    reason: str = ""
    message: str = ""


_TRUE = Expected("True")


def _list_of(names: list[str], what: str) -> str:
    """How the kubelet lists containers in a condition's message (generate.go)."""
    return f"containers with {what} status: [{' '.join(names)}]" if names else ""


def _not_so(reason: str, *messages: str) -> Expected:
    return Expected("False", reason, ", ".join(message for message in messages if message))


def _judged(now: Written, kind: str, expected: list[Expected]) -> Finding:
    """The condition is one of those expected."""
    said = now.status.condition(kind)
    if said is None:
        return broken(f"condition {kind} is missing")
    if (said.status, said.reason, said.message) in expected:
        return KEPT
    text = " or ".join(f"{e.status} {e.reason} {e.message}".strip() for e in expected)
    return broken(f"{kind} is {said.status} {said.reason} {said.message!r}, expected {text}")


@contract("COND-01", on=status(), needs=NEEDS)
def pod_scheduled_is_always_true(m: Moment) -> Findings:
    """Every status that a kubelet writes has the condition PodScheduled, and it is True."""
    now = written(m)
    return _judged(now, "PodScheduled", [_TRUE]) if now is not None else None


def _initialized(now: Written, phase: str, *, app_suffices: bool) -> Expected:
    """The condition Initialized for a generated phase."""
    unknown, incomplete = list[str](), list[str]()
    statuses = now.statuses
    for c in now.pod.spec.init_containers or () if now.pod.spec else ():
        said = statuses.get(c.name)
        if said is None:
            unknown.append(c.name)
        elif not (said.started if c.is_sidecar else said.ready):
            incomplete.append(c.name)
    if phase == "Succeeded" and not unknown:
        return Expected("True", "PodCompleted")
    if app_suffices and now.counts.app_was_up:
        return _TRUE
    if not unknown and not incomplete:
        return _TRUE
    if not now.status.init_container_statuses:
        return Expected("False", "UnknownContainerStatuses")
    return _not_so(
        "ContainersNotInitialized", _list_of(unknown, "unknown"), _list_of(incomplete, "incomplete")
    )


APP_MEANS_INITIALIZED = ByVersion({"<=1.26": False, ">=1.28": True})
"""An app container that has started proves that the init containers were done."""


@contract("COND-02", on=status(), needs=NEEDS, versions=APP_MEANS_INITIALIZED)
def initialized_follows_the_init_containers(m: Moment) -> Findings:
    """Initialized is True once every init container is done and every sidecar started, else False with names.

    From 1.28 on it is also True once an app container has started. A pod that has succeeded has the reason
    PodCompleted.
    """
    now = written(m)
    if now is None:
        return None
    app_suffices = APP_MEANS_INITIALIZED.at(m.kubernetes)
    expected = [_initialized(now, phase, app_suffices=app_suffices) for phase in now.phases]
    return _judged(now, "Initialized", expected)


def _containers_ready(now: Written, phase: str) -> Expected:
    """The condition ContainersReady for a generated phase."""
    unknown, unready = list[str](), list[str]()
    spec, statuses = now.pod.spec, now.statuses
    for c in (*spec.sidecars, *spec.containers) if spec is not None else ():
        said = statuses.get(c.name)
        if said is None:
            unknown.append(c.name)
        elif not said.ready:
            unready.append(c.name)
    if phase == "Succeeded" and not unknown:
        return Expected("False", "PodCompleted")
    if phase == "Failed":
        return Expected("False", "PodFailed")
    if not unknown and not unready:
        return _TRUE
    if not now.status.container_statuses:
        return Expected("False", "UnknownContainerStatuses")
    return _not_so("ContainersNotReady", _list_of(unknown, "unknown"), _list_of(unready, "unready"))


@contract("COND-03", on=status(), needs=NEEDS, versions=since("1.23"))
def containers_ready_follows_the_containers(m: Moment) -> Findings:
    """ContainersReady is True when every app container and sidecar is ready, else False with their names.

    At the end its reason is PodCompleted or PodFailed, by the phase that the containers amount to.
    """
    now = written(m)
    if now is None:
        return None
    return _judged(now, "ContainersReady", [_containers_ready(now, phase) for phase in now.phases])


@contract("COND-04", on=status(), needs=NEEDS)
def ready_needs_every_gate(m: Moment) -> Findings:
    """A pod with readiness gates is Ready only when ContainersReady and the condition of every gate are True.

    A gate whose condition is missing counts as False; the reason is then ReadinessGatesNotReady.
    """
    now = written(m)
    gates = now.pod.spec.readiness_gates or () if now is not None and now.pod.spec is not None else ()
    containers = now.status.condition("ContainersReady") if now is not None else None
    if now is None or not gates or containers is None or containers.status != "True":
        return None
    conditions = [now.status.condition(gate.condition_type) for gate in gates]
    open_ = all(c is not None and c.status == "True" for c in conditions)
    ready = now.status.condition("Ready")
    if ready is None:
        return broken("condition Ready is missing")
    if open_:
        return KEPT if ready.status == "True" else broken("every gate is True, and the pod is not Ready")
    if ready.status == "True" or ready.reason != "ReadinessGatesNotReady":
        return broken(f"a gate is not True, and Ready is {ready.status} {ready.reason}")
    return KEPT


@contract("COND-05", on=status(), needs=NEEDS)
def ready_copies_containers_ready(m: Moment) -> Findings:
    """Without readiness gates, or with ContainersReady not True, Ready has its status, reason and message."""
    now = written(m)
    containers = now.status.condition("ContainersReady") if now is not None else None
    if now is None or containers is None:
        return None
    if now.pod.spec is not None and now.pod.spec.readiness_gates and containers.status == "True":
        return None
    return _judged(now, "Ready", [Expected(containers.status, containers.reason, containers.message)])


@contract("COND-06", on=status(), needs=(*NEEDS, CRI), versions=since("1.29"))
def ready_to_start_means_a_usable_sandbox(m: Moment) -> Iterator[Finding]:
    """PodReadyToStartContainers is True only while the pod has a ready sandbox, False again once it is gone.

    It is True with every status that is built from containers in a sandbox that needs no replacement.
    """
    now = written(m)
    if now is None or not now.pod.born:
        return
    said = now.status.condition(READY_TO_START)
    if said is None:
        yield broken(f"condition {READY_TO_START} is missing")
        return
    sandboxes = now.pod.sandboxes
    if said.status == "True":
        yield _true(m, now)
    elif sandboxes and why_replaced(now.pod) is None and _is_in_use(now):
        yield broken(f"{READY_TO_START} is False, and containers are in a ready sandbox", now.pod.set_seq)
    else:
        yield KEPT


def _true(m: Moment, now: Written) -> Finding:
    sandboxes = now.pod.sandboxes
    if not any(s.ready_t is not None or not s.born for s in sandboxes):
        return broken(f"{READY_TO_START} is True, and no sandbox was ever run", now.pod.set_seq)
    if any(s.state == "ready" for s in sandboxes):
        return KEPT
    newest = sandboxes[-1]
    ends = [stop.end_t for stop in newest.stops if stop.succeeded and stop.end_t is not None]
    gone_t = min([*ends, *(t for t in (newest.died_t, newest.removed_t) if t is not None)], default=m.t)
    if m.t - gone_t > REACTION:
        return broken(
            f"{READY_TO_START} is True, the sandbox is gone", newest.run.seq if newest.run else None
        )
    return KEPT


def _is_in_use(now: Written) -> bool:
    """The status is built from a container of the newest sandbox."""
    newest, status = now.pod.sandboxes[-1], now.status
    every = status.lasting_containers
    return any(said.runtime_id in newest.containers for said in every)
