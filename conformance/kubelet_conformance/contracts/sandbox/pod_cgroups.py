"""Pods' cgroups: what runs without one is killed, and comes again with one."""

from kubelet_conformance.contract import Moment, Pattern, Pod, Sandbox
from kubelet_conformance.contract.applicability import CRI, PODS
from kubelet_conformance.contract.definition import Findings, answered, broken, contract
from kubelet_conformance.contract.patterns import call, done
from kubelet_conformance.contracts.facts.pod import DISK, at_its_end, of, to_run
from kubelet_conformance.contracts.facts.sandbox import (
    BLIND,
    GONE,
    NOT_READY,
    lost_its_cgroup,
    runs_containers,
)
from kubelet_conformance.contracts.facts.timing import REACTION, RESYNC
from kubelet_conformance.contracts.runtime.expected import judges_waits
from kubelet_conformance.trace.format.records import Disk
from kubelet_conformance.trace.world.pod_cgroups import PodCgroup, pod_of_cgroup


def _changed(op: str) -> Pattern:
    return DISK.where(lambda m: isinstance(m.record, Disk) and m.record.op == op)


def _made(pod: Pod) -> Pattern:
    def fits(m: Moment) -> bool:
        return isinstance(m.record, Disk) and pod_of_cgroup(m.world, m.record.path) is pod

    return _changed("folder").where(fits)


@contract("SYNC-17", on=_changed("removed"), needs=(CRI, PODS))
def pod_without_cgroup_is_killed(m: Moment) -> Findings:
    """A pod that runs and whose cgroup is missing is killed at its next sync.

    Then it gets another cgroup, unless it is not to be restarted, so that it is killed once.
    """
    pod = pod_of_cgroup(m.world, m.record.path) if isinstance(m.record, Disk) else None
    if pod is None or not pod.born or not pod.wanted or pod.termination is not None or pod.finished:
        return None
    if not runs_containers(pod) or pod.calls_open or not m.node.kubelet_up or pod.spec is None:
        return None
    kill = call("StopContainer", "StopPodSandbox", "ExecSync").where(of(pod))
    return answered(
        by=kill,
        within=RESYNC,
        unless=BLIND.either(NOT_READY, GONE.where(of(pod))),
        text=f"the pod {pod.name} is killed, whose cgroup is missing,",
        whole_node=True,
    )


@pod_without_cgroup_is_killed.clause("once", on=done("StopPodSandbox"))
def killed_pod_gets_another_cgroup(m: Moment, pod: Pod, sandbox: Sandbox) -> Findings:
    """After the kill the cgroup is made again."""
    if not to_run(m) or pod.restart_policy == "Never" or at_its_end(pod):
        return None
    if pod.note(PodCgroup).there or not lost_its_cgroup(sandbox):
        return None
    return answered(
        by=_made(pod),
        within=REACTION,
        unless=GONE.where(of(pod)),
        text=f"the pod {pod.name} gets another cgroup",
        whole_node=True,
    )


@pod_without_cgroup_is_killed.clause("not again", on=_changed("folder"))
def killed_pod_that_runs_once_gets_none(m: Moment) -> Findings:
    """A pod that was killed, and is not to be restarted, gets no other cgroup."""
    pod = pod_of_cgroup(m.world, m.record.path) if isinstance(m.record, Disk) else None
    if pod is None or pod.sandbox is None or pod.sandbox.run is None or pod.restart_policy != "Never":
        return None
    lost = pod.note(PodCgroup).lost_seq
    if lost <= pod.sandbox.run.seq or not any(one.stops for one in pod.every_container()):
        return None
    return broken(f"the pod {pod.name}, which is not restarted, gets another cgroup", lost)


judges_waits(pod_without_cgroup_is_killed)
