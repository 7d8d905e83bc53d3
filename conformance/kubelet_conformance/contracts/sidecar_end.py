"""SIDECAR: how restartable init containers go down with their pod, and how they show in its status."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kubelet_conformance.contract.frame import KEPT, answered, broken, contract
from kubelet_conformance.contract.needs import CRI, PODS, STATUS
from kubelet_conformance.contract.versions import ByVersion, since
from kubelet_conformance.contract.words import call, done, exited, pod_set, status
from kubelet_conformance.contracts.instances import (
    creation_of,
    exit_of,
    of_container,
    recorded,
    sidecars,
    stop_of,
    to_watch,
)
from kubelet_conformance.contracts.kills import MINIMUM_GRACE
from kubelet_conformance.contracts.sandboxes import FINISHED
from kubelet_conformance.contracts.situations import (
    TERMINATION_ASKED,
    at_its_end,
    hook_command,
    runs_pre_stop,
)
from kubelet_conformance.contracts.timing import REACTION, ROUNDING
from kubelet_conformance.trace.bodies import StopContainerRequest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kubelet_conformance.contract.frame import Finding, Findings
    from kubelet_conformance.trace.manifests import ContainerStatus, PodStatus
    from kubelet_conformance.trace.moment import Moment
    from kubelet_conformance.trace.views import Container, Pod

_ON = since("1.29")


def _goes(pod: Pod) -> bool:
    """The pod is being killed as a whole: asked for, or because it came to its end."""
    return pod.termination is not None or at_its_end(pod)


def _up(pod: Pod, name: str) -> Container | None:
    """The instance of that name that still runs."""
    newest = recorded(pod, name)
    return newest if newest is not None and newest.state == "running" else None


def _ahead_of(pod: Pod, name: str) -> list[Container]:
    """What must have ended before this sidecar's turn: running app containers and later sidecars."""
    names = [spec.name for spec in sidecars(pod)]
    later = names[names.index(name) + 1 :]
    apps = [spec.name for spec in pod.spec.containers] if pod.spec else []
    found = (_up(pod, one) for one in (*apps, *later))
    return [one for one in found if one is not None]


def _kill_began(pod: Pod, t: float) -> float:
    """When the first container of the pod was told to stop, in the kill that goes on."""
    since_t = pod.termination.t if pod.termination else t
    stops = [stop.call.t for one in pod.every_container() for stop in one.stops if stop.call.t >= since_t]
    hooks = [hook.call.t for one in pod.every_container() for hook in one.hooks if hook.call.t >= since_t]
    return min([t, *stops, *hooks])


def _grace(pod: Pod) -> int:
    asked_for = pod.termination.grace if pod.termination else None
    return asked_for if asked_for is not None else pod.spec.grace_seconds if pod.spec else 0


@contract("SIDECAR-11", on=exited(), needs=(CRI, PODS), versions=_ON)
def does_not_keep_the_pod(m: Moment) -> Iterator[Finding]:
    """Sidecars do not keep a pod alive: when the app containers have ended for good, they are stopped.

    The pod's phase follows from the app containers alone.
    """
    pod, container = m.pod, m.container
    if pod is None or container is None or m.exit is None or container.kind != "app" or not to_watch(m):
        return
    sandbox = container.sandbox
    if sandbox is None or sandbox.state != "ready" or not at_its_end(pod, container, m.exit.code):
        return
    running = [one for one in (_up(pod, spec.name) for spec in sidecars(pod)) if one is not None]
    if running:
        yield answered(
            by=stop_of(running[-1]),
            within=REACTION,
            unless=exit_of(running[-1]),
            text=f"sidecar {running[-1].name} is stopped after the last app container ended",
        )


@does_not_keep_the_pod.clause("phase", on=FINISHED)
def _(m: Moment) -> Findings:
    pod, now = m.pod, m.status
    if pod is None or now is None or not now.terminal or now.reason or not any(sidecars(pod)):
        return None
    ended = [told.state.terminated for told in now.container_statuses or ()]
    inits = [told for told in now.init_container_statuses or () if pod.kind_of(told.name) == "init"]
    if not ended or any(not told.ready for told in inits):
        return None
    good = all(one is not None and one.exit_code == 0 for one in ended)
    if (now.phase == "Succeeded") != good:
        codes = [one.exit_code if one else None for one in ended]
        return broken(f"phase {now.phase} though the app containers exited with {codes}")
    return KEPT


@contract("SIDECAR-12", on=call("StopContainer"), needs=(CRI, PODS), versions=_ON)
def stopped_in_reverse(m: Moment) -> Findings:
    """When a pod goes, a sidecar is stopped after every app container and every later sidecar has ended.

    Only when the grace period is used up is it stopped without waiting.
    """
    pod, container = m.pod, m.container
    if pod is None or container is None or container.kind != "sidecar" or not _goes(pod):
        return None
    if container.sandbox is not None and container.sandbox.state != "ready":
        return None
    ahead = _ahead_of(pod, container.name)
    if not ahead:
        return KEPT
    if m.t - _kill_began(pod, m.t) >= _grace(pod) - MINIMUM_GRACE - ROUNDING and pod.termination is not None:
        return None
    names = " and ".join(one.name for one in ahead)
    return broken(f"sidecar {container.name} is stopped while {names} runs", *(_seq(one) for one in ahead))


def _seq(container: Container) -> int | None:
    return container.start.seq if container.start else None


@stopped_in_reverse.clause("turn-comes", on=done("StopContainer"))
def _(m: Moment) -> Findings:
    pod, container = m.pod, m.container
    if pod is None or container is None or not pod.born or not _goes(pod):
        return None
    for spec in reversed(list(sidecars(pod))):
        waiting = _up(pod, spec.name)
        if waiting is None or waiting is container or waiting.stops or not waiting.born:
            continue
        if any(one is not container for one in _ahead_of(pod, spec.name)):
            return None
        return answered(
            by=stop_of(waiting),
            within=REACTION,
            unless=exit_of(waiting),
            text=f"sidecar {waiting.name} is stopped in its turn",
        )
    return None


@contract("SIDECAR-13", on=call("StopContainer"), needs=(CRI, PODS), versions=_ON)
def hooks_do_not_wait(m: Moment) -> Iterator[Finding]:
    """When a pod goes, the preStop hooks of its sidecars begin at once; only the stop waits for its turn."""
    pod, container = m.pod, m.container
    if pod is None or container is None or container.kind != "app" or not pod.termination:
        return
    for spec in sidecars(pod):
        waiting = _up(pod, spec.name)
        command = hook_command(waiting, "pre_stop") if waiting else None
        if waiting is None or command is None or _hook_ran(waiting, command, pod.termination.t):
            continue
        yield answered(
            by=call("ExecSync").where(runs_pre_stop).where(of_container(waiting), f"it is in {waiting.name}"),
            within=REACTION,
            unless=exit_of(waiting),
            not_before=stop_of(waiting),
            text=f"the preStop hook of sidecar {waiting.name} runs",
        )


def _hook_ran(container: Container, command: list[str], since_t: float) -> bool:
    return any(hook.cmd == command and hook.call.t >= since_t for hook in container.hooks)


@contract("SIDECAR-14", on=call("StopContainer"), needs=(CRI, PODS), versions=_ON)
def waiting_uses_up_the_grace(m: Moment) -> Findings:
    """The time a sidecar waits for its turn is taken from its grace, down to the minimum of 2 s."""
    pod, container = m.pod, m.container
    if pod is None or container is None or container.kind != "sidecar" or not pod.termination:
        return None
    if not pod.born or pod.termination.cause == "forced" or hook_command(container, "pre_stop"):
        return None
    waited = m.t - _kill_began(pod, m.t)
    expected = max(MINIMUM_GRACE, _grace(pod) - waited)
    timeout = m.request(StopContainerRequest).timeout
    if abs(timeout - expected) > ROUNDING:
        return broken(
            f"sidecar {container.name} waited {waited:.1f} s and has timeout {timeout}, "
            f"expected {expected:.0f} of {_grace(pod)}",
            pod.termination.seq,
        )
    return KEPT if waited >= ROUNDING else None


@contract("SIDECAR-16", on=TERMINATION_ASKED, needs=(CRI, PODS), versions=_ON)
def ended_ones_hold_up_nobody(m: Moment) -> Findings:
    """A container that does not run when its pod goes holds up no sidecar."""
    pod = m.pod
    if pod is None or not to_watch(m) or pod.deleted_t is not None:
        return None
    running = [one for one in (_up(pod, spec.name) for spec in sidecars(pod)) if one is not None]
    if not running or any(one.state == "running" for one in pod.of_kind("app")):
        return None
    last = running[-1]
    if not any(one.ended for one in pod.every_container()) or hook_command(last, "pre_stop"):
        return None
    return answered(
        by=stop_of(last),
        within=REACTION,
        unless=exit_of(last),
        text=f"sidecar {last.name} is stopped at once",
    )


@contract("SIDECAR-24", on=exited(), needs=(CRI, PODS), versions=ByVersion({"1.29..1.36": True}))
def not_restarted_in_termination(m: Moment) -> Findings:
    """A sidecar that ends while its pod is being terminated is not run again."""
    pod, container = m.pod, m.container
    if pod is None or container is None or container.kind != "sidecar" or pod.termination is None:
        return None
    if not any(one.stops for one in pod.every_container()):
        return None
    return answered(
        by=done("StopPodSandbox"),
        unless=pod_set().where(lambda now: now.pod is not None and not now.pod.wanted, "it is wanted again"),
        not_before=creation_of(container.name),
        text=f"sidecar {container.name} is not made again in a pod that goes",
    )


def _told(pod: Pod, now: PodStatus) -> list[ContainerStatus]:
    return [told for told in now.init_container_statuses or () if pod.kind_of(told.name) == "sidecar"]


def _app_runs_or_ended(now: PodStatus) -> bool:
    return any(told.state.running or told.state.terminated for told in now.container_statuses or ())


def _app_has_run(now: PodStatus) -> bool:
    return _app_runs_or_ended(now) or any(told.last_state.terminated for told in now.container_statuses or ())


@contract("SIDECAR-17", on=status(), needs=(PODS, STATUS), versions=_ON)
def counts_for_readiness(m: Moment) -> Findings:
    """The readiness of sidecars counts for ContainersReady, and that they have started for Initialized."""
    pod, now = m.pod, m.status
    told = _told(pod, now) if pod and now else []
    if now is None or not told or now.terminal:
        return None
    ready, initialized = now.condition("ContainersReady"), now.condition("Initialized")
    unready = [one.name for one in told if not one.ready]
    if unready and ready and ready.status == "True":
        return broken(f"ContainersReady is True though {unready[0]} is not ready")
    late = [one.name for one in told if not one.started]
    if late and initialized and initialized.status == "True" and not _app_has_run(now):
        return broken(f"Initialized is True though {late[0]} has not started")
    return KEPT


@contract("SIDECAR-18", on=status(), needs=(PODS, STATUS), versions=_ON)
def stays_initialized(m: Moment) -> Findings:
    """Once an app container has run, Initialized stays True whatever the sidecars do."""
    pod, now = m.pod, m.status
    condition = now.condition("Initialized") if now else None
    if (
        pod is None
        or now is None
        or condition is None
        or not any(sidecars(pod))
        or not _app_runs_or_ended(now)
    ):
        return None
    if condition.status != "True":
        return broken(f"Initialized is {condition.status} though an app container has run")
    return KEPT


@contract("SIDECAR-19", on=status(), needs=(PODS, STATUS), versions=_ON)
def pending_until_they_started(m: Moment) -> Findings:
    """Sidecars that have not started keep a pod Pending only until an app container has run."""
    pod, now = m.pod, m.status
    told = _told(pod, now) if pod and now else []
    if now is None or not told or now.terminal:
        return None
    if not _app_has_run(now):
        if any(not one.started for one in told) and now.phase != "Pending":
            return broken(f"phase {now.phase} before the sidecars have started")
        return KEPT
    apps = now.container_statuses or []
    inits = [one for one in now.init_container_statuses or () if one not in told]
    waiting = any(one.state.waiting and not one.last_state.terminated for one in (*apps, *told))
    waiting = waiting or any(one.state.terminated is None for one in inits)
    if now.phase == "Pending" and not waiting:
        return broken("phase Pending though an app container has run and nothing waits")
    return KEPT
