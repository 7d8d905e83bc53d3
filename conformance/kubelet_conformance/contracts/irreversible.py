"""WORK-04: a pod that was asked to go is not started any more."""

from __future__ import annotations

from collections.abc import Iterator

from kubelet_conformance.contract.frame import KEPT, Finding, Findings, broken, contract, observer
from kubelet_conformance.contract.needs import CRI, PODS
from kubelet_conformance.contract.versions import since
from kubelet_conformance.contract.words import call, deleted, done, failed
from kubelet_conformance.contracts.kills import stopped_for_itself
from kubelet_conformance.contracts.situations import (
    END,
    TERMINATION_ASKED,
    post_start_may_have_failed,
    worker_is_busy,
)
from kubelet_conformance.contracts.timing import REACTION, TOGETHER
from kubelet_conformance.trace.kubelet_view import informed_by
from kubelet_conformance.trace.moment import Moment
from kubelet_conformance.trace.records import Call
from kubelet_conformance.trace.under_way import is_the_workers
from kubelet_conformance.trace.views import Container, Pod, Sandbox, Stop

_KILLS = ("StopContainer", "StopPodSandbox")
_STARTING = (
    "RunPodSandbox",
    "PullImage",
    "CreateContainer",
    "StartContainer",
    "StopContainer",
    "StopPodSandbox",
)
_MAKING = call("RunPodSandbox", "CreateContainer", "StartContainer")
_START_OR_STOP_ANSWERED = done(*_STARTING).either(failed(*_STARTING))
_ASIDE = done("ExecSync", "RemoveContainer").either(failed("ExecSync", "RemoveContainer"))
"""What a sync waits for in some cases only: hooks, and the records of init containers that are made again."""


@contract("WORK-04", on=_MAKING, needs=(CRI, PODS), versions=since("1.22"), clause="no-start")
def termination_is_irreversible(m: Moment) -> Findings:
    """Once a pod was asked to go, nothing of it is made or started any more, but for the steps of the sync
    that was under way.
    """
    pod = m.pod
    if pod is None or not pod.born or pod.termination is None:
        return None
    asked, work = pod.termination, pod.note(_LastStep)
    died_around = any(_died_around(s, asked.t) for s in pod.sandboxes[-2:])
    if m.call.rpc == "RunPodSandbox" and not work.replaced_seq and (work.killing_when_asked or died_around):
        work.replaced_seq = m.seq
    begun = informed_by(m, asked.t) + (TOGETHER if work.busy_when_asked else 0.0)
    if died_around:
        begun += REACTION
    kill = _first_kill(m, pod, begun, work.replaced_seq)
    if kill is not None:
        text = f"{m.call.rpc} after the pod was asked to go and its termination had begun"
        return broken(text, asked.seq, kill.seq)
    if m.t - max(informed_by(m, asked.t), work.t) > REACTION:
        return broken(f"{m.call.rpc} long after the pod was asked to go", asked.seq)
    return None


def _died_around(sandbox: Sandbox, asked_t: float) -> bool:
    """A sandbox that died before the pod was asked to go, or just then, may be replaced by the next sync."""
    died_t, stopped_before = sandbox.died_t, any(stop.call.t < asked_t for stop in sandbox.stops)
    return died_t is not None and died_t <= asked_t + TOGETHER and not stopped_before


def _first_kill(m: Moment, pod: Pod, since_t: float, since_seq: int) -> Call | None:
    every = (one for one in pod.every_container() if not stopped_for_itself(m, pod, one))
    stops = [stop.call for one in every for stop in _kills_of(one)]
    stops += [stop.call for s in pod.sandboxes for stop in s.stops]
    return next((one for one in stops if one.t >= since_t and one.seq > since_seq), None)


def _kills_of(container: Container) -> list[Stop]:
    """Its stops but for the one by which its start ends when the postStart hook fails: the sync goes on."""
    return list(container.stops)[1 if post_start_may_have_failed(container) else 0 :]


class _LastStep:
    """When the last step of a pod's sync was answered, and whether one was under way when it was to go."""

    def __init__(self) -> None:
        self.t = 0.0
        self.busy_when_asked = False
        self.killing_when_asked = False
        """A kill was under way, be it to replace the sandbox: the sync may still make the new one."""
        self.replaced_seq = 0
        """Where it did so."""


@observer(on=TERMINATION_ASKED)
def sync_under_way_is_remembered(m: Moment) -> None:
    """Remember whether a sync may be under way: its remaining steps are still allowed."""
    if m.pod is not None and m.pod.termination is None:
        work = m.pod.note(_LastStep)
        work.busy_when_asked = worker_is_busy(m.pod) or m.t - work.t < TOGETHER
        sandbox, open_calls = m.pod.sandbox, m.pod.calls_open.values()
        # A sandbox that has died may be replaced by the sync that was begun for that.
        is_dead = sandbox is not None and sandbox.died_t is not None
        work.killing_when_asked = is_dead or any(one.rpc in _KILLS for one in open_calls)


@observer(on=_START_OR_STOP_ANSWERED)
def steps_are_remembered(m: Moment) -> None:
    """Remember when a step was answered: what follows it belongs to the same sync."""
    if m.pod is not None:
        m.pod.note(_LastStep).t = m.t


@observer(on=_ASIDE)
def waits_are_remembered(m: Moment) -> None:
    """Remember when a hook ended, and when the record of an init container was removed."""
    if m.pod is not None and m.container is not None and is_the_workers(m):
        m.pod.note(_LastStep).t = m.t


@termination_is_irreversible.clause("gone", on=deleted().either(END))
def pod_went_without_another_start(m: Moment) -> Iterator[Finding]:
    """A pod that had something running was asked to go, and went."""
    pods = [m.pod] if m.pod is not None else list(m.world.pods.values()) if "end" in m.keys else []
    for pod in pods:
        if pod.born and pod.termination is not None and pod.sandbox is not None and pod.sandbox.stopped:
            yield KEPT
