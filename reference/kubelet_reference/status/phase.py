"""The phase of a pod: what its containers amount to.

First every container of the spec counts as something, by what its status says (`count`). Then the counts
decide: `PHASES` is tried from the top, and the first row that fits gives the phase. Ephemeral
containers have no part in it (PHASE-01).
"""

from collections.abc import Iterator

import msgspec
from lightkube.models.core_v1 import Container, ContainerState, ContainerStatus, Pod, PodStatus

from kubelet_reference.api import pods
from kubelet_reference.api.restart_policy import (
    RESTART_ALL,
    fails_for_good,
    has_own_rules,
    restarts_after,
    rule_for,
)
from kubelet_reference.util.decision_table import Row, Table
from kubelet_reference.util.versions import Behaviour


class Counts(msgspec.Struct, frozen=True):
    """What the containers of a pod count as, and what else decides with them."""

    policy: str
    final: bool
    """The pod is in its last sync and is not static: it will never run again."""
    app_was_up: bool
    own_policies: bool
    """Some app container says itself when it is started again."""
    coming_again: int
    """App containers that have stopped and are to be started again."""
    pending_init: int
    doomed_init: int
    """Init containers that have failed and never restart."""
    pending_sidecar: int
    waiting: int
    running: int
    stopped: int
    succeeded: int

    @property
    def all_succeeded(self) -> bool:
        """What stopped did so with exit code 0, and none of it waits to run again."""
        return self.stopped == self.succeeded


PHASES = Table[Counts, Row[Counts, str]](
    Row("P1", lambda c: bool(c.doomed_init), pods.FAILED),
    Row("P2", lambda c: bool(c.pending_init), pods.PENDING),
    Row("P3", lambda c: bool(c.pending_sidecar) and not c.app_was_up, pods.PENDING),
    Row("P4", lambda c: bool(c.waiting), pods.PENDING),
    Row("P5", lambda c: bool(c.running), pods.RUNNING),
    # From here on all app containers have stopped.
    Row("P6", lambda c: c.final and c.all_succeeded, pods.SUCCEEDED),
    Row("P7", lambda c: c.final, pods.FAILED),
    Row("P7a", lambda c: c.own_policies and bool(c.coming_again), pods.RUNNING),
    Row("P7b", lambda c: c.own_policies and c.all_succeeded, pods.SUCCEEDED),
    Row("P7c", lambda c: c.own_policies, pods.FAILED),
    Row("P8", lambda c: c.policy == pods.ALWAYS, pods.RUNNING),
    Row("P9", lambda c: c.all_succeeded, pods.SUCCEEDED),
    Row("P10", lambda c: c.policy == pods.NEVER, pods.FAILED),
    Row("P11", lambda _: True, pods.RUNNING),
)


def pod_phase(pod: Pod, status: PodStatus, behaviour: Behaviour, *, terminating: bool) -> str:
    """The phase that the container statuses in `status` amount to.

    `terminating` says that this is the pod's last status: from 1.27 on it becomes Succeeded or Failed by
    the exit codes alone, unless the pod is static (PHASE-14, STATIC-21).
    """
    final = terminating and behaviour.terminal_phase_before_deletion
    return PHASES.row(count(pod, status, behaviour, final=final)).then


def count(pod: Pod, status: PodStatus, behaviour: Behaviour, *, final: bool) -> Counts:
    """What each init and app container of the spec counts as."""
    inits = {one.name: one for one in status.initContainerStatuses or ()}
    apps = {one.name: one for one in status.containerStatuses or ()}
    found = [
        kind
        for one in pods.init_containers(pod)
        for kind in _as_init(pod, one, inits.get(one.name), behaviour)
    ]
    found += [
        kind for one in pods.containers(pod) for kind in _as_app(pod, one, apps.get(one.name), behaviour)
    ]
    return Counts(
        policy=pods.restart_policy(pod),
        final=final and not pods.is_static(pod),
        app_was_up=any(was_up(one) for one in apps.values()),
        own_policies=any(has_own_rules(pod, one, behaviour) for one in pods.containers(pod)),
        **{kind: found.count(kind) for kind, counted in Counts.__annotations__.items() if counted is int},
    )


def may_begin_anew(pod: Pod, behaviour: Behaviour) -> bool:
    """Whether a container has a rule that restarts the whole pod (RESTART-22)."""
    every = (*pods.init_containers(pod), *pods.containers(pod))
    rules = (rule for one in every for rule in one.restartPolicyRules or ())
    return behaviour.restarts_all_containers and any(rule.action == RESTART_ALL for rule in rules)


def begins_anew(pod: Pod, status: PodStatus, behaviour: Behaviour) -> bool:
    """Whether the last end of some container restarts the whole pod (RESTART-22, COND-10)."""
    every = (*(status.initContainerStatuses or ()), *(status.containerStatuses or ()))
    shown = {one.name: one for one in every}
    return any(
        rule_for(pod, one, ended, behaviour) == RESTART_ALL
        for one in (*pods.init_containers(pod), *pods.containers(pod))
        if (ended := _exit_code(shown.get(one.name))) is not None
    )


def was_up(status: ContainerStatus) -> bool:
    """Whether the state shows that the container has run."""
    return status.state is not None and (status.state.running or status.state.terminated) is not None


def _as_init(
    pod: Pod, container: Container, status: ContainerStatus | None, behaviour: Behaviour
) -> Iterator[str]:
    """A regular init container counts only while it is not through."""
    if pods.is_sidecar(container):
        yield from _as_sidecar(status)
        return
    ended = _exit_code(status)
    if ended is None:
        yield "pending_init"
    elif ended != 0 and fails_for_good(pod, container, ended, behaviour):
        yield "doomed_init"


def exit_code(state: ContainerState | None) -> int | None:
    """The exit code of a container that is shown as terminated."""
    return state.terminated.exitCode if state is not None and state.terminated is not None else None


def _exit_code(status: ContainerStatus | None) -> int | None:
    """How the container ended last, if it has ended: now, or before it came to wait (PHASE-10)."""
    if status is None or status.state is None:
        return None
    return exit_code(status.state if status.state.waiting is None else status.lastState)


def _as_sidecar(status: ContainerStatus | None) -> Iterator[str]:
    """One that ended says nothing of the pod, and nor does one that waits to come again (SIDECAR-19)."""
    if _exit_code(status) is None:
        if status is None or not status.started or _now(status) != "running":
            yield "pending_sidecar"
        yield _now(status)


def _as_app(
    pod: Pod, container: Container, status: ContainerStatus | None, behaviour: Behaviour
) -> Iterator[str]:
    """One that waits after it ran counts as stopped, whatever its exit code was (PHASE-03)."""
    ended = _exit_code(status)
    if ended is None:
        yield _now(status)
        return
    yield "stopped"
    if restarts_after(pod, container, ended, behaviour):
        yield "coming_again"
    if status is not None and exit_code(status.state) == 0:
        yield "succeeded"


def _now(status: ContainerStatus | None) -> str:
    """What a container that has not ended does."""
    state = status.state if status is not None else None
    return "waiting" if state is None or state.running is None else "running"
