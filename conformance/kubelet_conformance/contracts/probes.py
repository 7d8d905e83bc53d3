"""PROBE: what a failing exec probe leads to. Other kinds of probes do not pass through the runtime."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kubelet_conformance.contract.frame import answered, contract
from kubelet_conformance.contract.needs import CRI, PODS, STATUS
from kubelet_conformance.contract.words import call, done, exited, failed, status
from kubelet_conformance.contracts.kubelet_restart import LIFE_ENDS
from kubelet_conformance.contracts.probe_runs import exec_probes, runs_probe
from kubelet_conformance.contracts.situations import TERMINATION_ASKED, about
from kubelet_conformance.contracts.timing import REACTION
from kubelet_conformance.trace.bodies import ExecSyncReply, ExecSyncRequest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kubelet_conformance.contract.frame import Finding, Findings
    from kubelet_conformance.trace.manifests import Probe
    from kubelet_conformance.trace.moment import Moment
    from kubelet_conformance.trace.views import Container, Pod

_HANDOVER = 0.5
"""So long the news that a sandbox is stopped may take from the runtime's reply to whoever probes."""
_PROMPTLY = 0.5
"""An exit so soon after the last failure may be read before the kill begins."""


class _Failures:
    """How often the liveness probe has failed without a success in between."""

    def __init__(self) -> None:
        self.count = 0


def _liveness(container: Container, m: Moment) -> Probe | None:
    spec, request = container.spec, m.request(ExecSyncRequest)
    probe = spec.liveness_probe if spec else None
    if probe is None or probe.exec is None or request.timeout == 0 or probe.exec.command != request.cmd:
        return None
    readiness = spec.readiness_probe if spec else None
    same = readiness is not None and readiness.exec is not None and readiness.exec.command == request.cmd
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
        within=REACTION,
        unless=soon.either(TERMINATION_ASKED),
        text=f"container {container.name} is killed after {failures.count} failed probes",
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
