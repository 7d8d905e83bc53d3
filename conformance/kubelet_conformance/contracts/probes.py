"""PROBE: what a failing exec probe leads to. Other kinds of probes do not pass through the runtime."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kubelet_conformance.contract.frame import answered, contract
from kubelet_conformance.contract.needs import CRI, PODS, STATUS
from kubelet_conformance.contract.words import call, done, event, exited, failed, status
from kubelet_conformance.contracts.kubelet_restart import LIFE_ENDS
from kubelet_conformance.contracts.probe_effects import liveness_ends_with_the_deletion, without_reason
from kubelet_conformance.contracts.probe_exec import probe_without_result_is_tried_thrice
from kubelet_conformance.contracts.probe_runs import exec_probes, runs_of, runs_probe
from kubelet_conformance.contracts.situations import TERMINATION_ASKED, about
from kubelet_conformance.contracts.timing import REACTION, RELIST
from kubelet_conformance.contracts.unprovoked import to_be_explained
from kubelet_conformance.trace.bodies import ExecSyncReply, ExecSyncRequest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kubelet_conformance.contract.frame import Finding, Findings
    from kubelet_conformance.trace.manifests import Probe
    from kubelet_conformance.trace.moment import Moment
    from kubelet_conformance.trace.views import Container, Pod

_HANDOVER = 0.5
"""So long the news that a sandbox is stopped may take from the runtime's reply to whoever probes."""
_PROMPTLY = RELIST + 0.5
"""An exit so soon may be read before the kill begins: a sync waits for a relist later than the last one."""


class _Failures:
    """How often the liveness probe has failed without a success in between."""

    def __init__(self) -> None:
        self.count = 0


def _liveness(container: Container, m: Moment) -> Probe | None:
    spec, request = container.spec, m.request(ExecSyncRequest)
    probe = spec.liveness_probe if spec else None
    if probe is None or probe.exec is None or request.timeout == 0 or probe.exec.command != request.cmd:
        return None
    others = (spec.readiness_probe, spec.startup_probe) if spec else ()
    same = any(one is not None and one.exec == probe.exec for one in others)
    return None if same else probe


@contract("PROBE-07", on=done("ExecSync").either(failed("ExecSync")), needs=(CRI, PODS))
def failing_liveness_kills_at_once(m: Moment) -> Findings:
    """When a liveness probe has failed as often in a row as its threshold says, the container is killed at
    once, not at the next resync.
    """
    container, pod = m.container, m.pod
    probe = _liveness(container, m) if container else None
    if container is None or pod is None or probe is None or m.reply.error is not None or not container.born:
        return None
    failures = container.note(_Failures)
    failures.count = 0 if m.response(ExecSyncReply).exit_code == 0 else failures.count + 1
    if failures.count != probe.failure_threshold or container.state != "running" or pod.termination:
        return None
    begun = m.t
    soon = exited().where(about(container)).where(lambda n: n.t - begun < _PROMPTLY, "it was soon")
    return answered(
        by=call("StopContainer", "ExecSync").where(about(container)),
        within=REACTION + _unseen_hook_seconds(pod, container),
        unless=soon.either(TERMINATION_ASKED),
        text=f"container {container.name} is killed after {failures.count} failed probes",
    )


def _unseen_hook_seconds(pod: Pod, container: Container) -> int:
    """How long a preStop hook that does not pass through the runtime may take before the StopContainer."""
    spec = container.spec
    hook = spec.lifecycle.pre_stop if spec is not None else None
    if spec is None or hook is None or hook.exec is not None or pod.spec is None:
        return 0
    own = spec.liveness_probe.termination_grace_period_seconds if spec.liveness_probe else None
    return pod.spec.grace_seconds if own is None else own


@probe_without_result_is_tried_thrice.clause("lives", on=call("StopContainer"))
def probe_without_result_kills_nobody(m: Moment) -> Findings:
    """No container is stopped for an execution without a result."""
    container = m.container
    if container is None or not without_reason(m):
        return None
    if not any(runs_of(container, name, m).errors for name in ("liveness", "startup")):
        return None
    return to_be_explained(f"there is a reason to stop {container.name} beside a probe without a result")


@liveness_ends_with_the_deletion.clause("deadline", on=event("DeadlineExceeded"))
def liveness_ends_with_the_deadline(m: Moment) -> Iterator[Finding]:
    """So it is when the kubelet itself ends a pod (K8S-105215)."""
    pod, begun = m.pod, m.t
    for container in pod.every_container() if pod is not None and pod.born else ():
        if container.state != "running" or not container.born:
            continue
        for name, probe in exec_probes(container).items():
            if name == "readiness":
                continue
            late = runs_probe(container, probe).where(lambda n: n.t - begun > REACTION, "it is long after")
            yield answered(
                by=exited().where(about(container)).either(call("RemoveContainer", "StopPodSandbox")),
                not_before=late,
                text=f"container {container.name} ends and is not probed for {name}",
            )


@contract("PROBE-12", on=status(), needs=(CRI, PODS, STATUS), clause="ended")
def nothing_of_an_ended_pod_is_probed(m: Moment) -> Iterator[Finding]:
    """When a pod has ended, or is stopped because it is to go, its probes are executed no more."""
    pod, now = m.pod, m.status
    if pod is None or now is None or not now.terminal or pod.finished or not pod.born:
        return
    if not any(c.state == "running" for c in pod.every_container()):
        yield from _is_not_probed(pod)


@nothing_of_an_ended_pod_is_probed.clause("stopped", on=done("StopPodSandbox"))
def nothing_of_a_stopped_pod_is_probed(m: Moment) -> Iterator[Finding]:
    """It is on its way out, and its sandbox has been stopped."""
    pod = m.pod
    if pod is not None and pod.born and pod.termination is not None and m.sandbox is pod.sandbox:
        yield from _is_not_probed(pod, since=m.t + _HANDOVER)


def _is_not_probed(pod: Pod, since: float = 0) -> Iterator[Finding]:
    for container in pod.every_container():
        for name, probe in exec_probes(container).items():
            yield answered(
                by=LIFE_ENDS.either(call("RemoveContainer").where(about(container))),
                not_before=runs_probe(container, probe).where(lambda n: n.t > since),
                whole_node=True,
                text=f"container {container.name} is not probed for {name}",
            )
