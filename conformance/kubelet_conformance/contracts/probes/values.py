"""PROBE: the effects of a failing exec probe. Other kinds of probes do not pass through the runtime."""

from collections.abc import Iterator

from kubelet_conformance.contract import Container, Finding, Moment, Note, Pattern, Pod, PodStatus
from kubelet_conformance.contract.applicability import CRI, PODS, STATUS
from kubelet_conformance.contract.definition import Findings, answered, broken, contract
from kubelet_conformance.contract.patterns import call, done, event, exited, status
from kubelet_conformance.contracts.facts import probe as probes
from kubelet_conformance.contracts.facts.container import REMAKING, worker_is_free
from kubelet_conformance.contracts.facts.kills import is_killed_already, to_be_explained
from kubelet_conformance.contracts.facts.pod import TERMINATION_ASKED, about
from kubelet_conformance.contracts.facts.timing import REACTION, RELIST
from kubelet_conformance.contracts.probes.effects import liveness_ends_with_the_deletion, without_reason
from kubelet_conformance.contracts.probes.execution import probe_without_result_is_tried_thrice
from kubelet_conformance.contracts.sync_loop.kubelet_restart import LIFE_ENDS
from kubelet_conformance.trace.format.bodies import CreateContainerRequest

_HANDOVER = 0.5
"""The longest time from the runtime's reply that a sandbox is stopped, or from the last status, to the last
probe (s): one that has begun is repeated up to three times (maxProbeRetries in prober.go).
"""
_PROMPTLY = RELIST + 0.5
"""An exit within this time may be read before the kill begins: a sync waits for a relist later than the last
one.
"""


@contract("PROBE-07", on=probes.PROBES, needs=(CRI, PODS))
def failing_liveness_kills_at_once(m: Moment, pod: Pod) -> Findings:
    """When a liveness probe has failed as often in a row as its threshold says, the container is killed at
    once, not at the next resync.
    """
    probed = probes.probe_at(m)
    if probed is None or probed.name != "liveness" or probed.outcome != "failure" or not probed.reached:
        return None
    container = probed.container
    if m.reply.error is not None or container.state != "running" or pod.termination:
        return None
    if is_killed_already(m, container) or not worker_is_free(m, pod):
        return None
    begun = m.t
    soon = exited().where(about(container)).where(lambda n: n.t - begun < _PROMPTLY)
    return answered(
        by=probes.kill_begins(container),
        within=REACTION + probes.unseen_hook_seconds(container),
        unless=soon.either(TERMINATION_ASKED),
        text=f"container {container.name} is killed after {probed.runs.count} failed probes",
    )


@probe_without_result_is_tried_thrice.clause("lives", on=call("StopContainer"))
def probe_without_result_kills_nobody(m: Moment, container: Container) -> Findings:
    """No container is stopped for an execution without a result."""
    if not without_reason(m):
        return None
    if not any(probes.runs_of(container, name, m).errors for name in ("liveness", "startup")):
        return None
    return to_be_explained(m, f"there is a reason to stop {container.name} beside a probe without a result")


@liveness_ends_with_the_deletion.clause("deadline", on=event("DeadlineExceeded"))
def liveness_ends_with_the_deadline(m: Moment) -> Iterator[Finding]:
    """Once the kubelet itself ends a pod, its liveness and startup probes are executed no more
    (K8S-105215).
    """
    pod, begun = m.pod, m.t
    for container in pod.every_container() if pod is not None and pod.born else ():
        if container.state != "running" or not container.born:
            continue
        for name, probe in probes.exec_probes(container).items():
            if name == "readiness":
                continue
            late = probes.runs_probe(container, probe).where(lambda n: n.t - begun > REACTION)
            yield answered(
                by=exited().where(about(container)).either(call("RemoveContainer", "StopPodSandbox")),
                not_before=late,
                text=f"container {container.name} ends and is not probed for {name}",
            )


@contract("PROBE-12", on=status(), needs=(CRI, PODS, STATUS), clause="ended")
def nothing_of_an_ended_pod_is_probed(m: Moment, pod: Pod, status: PodStatus) -> Iterator[Finding]:
    """When a pod has ended, or its sandbox is stopped for its termination, its probes are executed
    no more.
    """
    if not status.terminal or pod.finished or not pod.born:
        return
    if not any(c.state == "running" for c in pod.every_container()):
        yield from _is_not_probed(pod, since=m.t + _HANDOVER)


@nothing_of_an_ended_pod_is_probed.clause("stopped", on=done("StopPodSandbox"))
def nothing_of_a_stopped_pod_is_probed(m: Moment) -> Iterator[Finding]:
    """The pod is being terminated, and its sandbox has been stopped."""
    pod = m.pod
    if pod is not None and pod.born and pod.termination is not None and m.sandbox is pod.sandbox:
        last = [each.stops[-1] for each in pod.every_container() if each.stops]
        if any(each.failed and not each.not_found for each in last):
            return  # The kill as a whole has failed, and probes go on until it is tried again.
        # A sync that goes on may run another sandbox.
        runs_another = call("RunPodSandbox").where(lambda n: n.pod is pod)
        yield from _is_not_probed(pod, since=m.t + _HANDOVER, unless=runs_another)


def _is_not_probed(pod: Pod, since: float, unless: Pattern | None = None) -> Iterator[Finding]:
    for container in pod.every_container():
        for name, probe in probes.exec_probes(container).items():
            yield answered(
                by=LIFE_ENDS.either(call("RemoveContainer").where(about(container))),
                unless=unless,
                not_before=probes.runs_probe(container, probe).where(lambda n: n.t > since),
                whole_node=True,
                text=f"container {container.name} is not probed for {name}",
            )


@contract("PROBE-28", on=probes.PROBES, needs=(CRI, PODS), clause="kill")
def failed_liveness_under_never(m: Moment, pod: Pod) -> Findings:
    """Under restartPolicy Never a container whose liveness probe has failed is killed, and not run again."""
    probed = probes.probe_at(m)
    if probed is None or probed.outcome != "failure" or not probed.reached:
        return None
    spec, container = probed.container.spec, probed.container
    if pod.restart_policy != "Never" or probed.name == "readiness" or spec is None or spec.restart_policy:
        return None
    if container.state != "running" or is_killed_already(m, container) or pod.termination is not None:
        return None
    container.note(_Killed).by_probe = True
    return probes.is_killed(container, f"after its {probed.name} probe failed", RELIST + REACTION)


class _Killed(Note):
    """A container is killed for its probe."""

    by_probe: bool = False


@failed_liveness_under_never.clause("no-restart", on=REMAKING)
def killed_container_stays_dead(m: Moment, pod: Pod) -> Findings:
    """The container is not created again."""
    old = pod.newest(m.request(CreateContainerRequest).config.metadata.name)
    if old is None or not old.note(_Killed).by_probe:
        return None
    return broken(f"{old.name} is created again, after its probe failed under restartPolicy Never")
