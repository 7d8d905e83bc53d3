"""The status of a pod, made from what the runtime remembers of it and from the status before."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from lightkube.models.core_v1 import HostIP, Pod, PodCondition, PodIP, PodStatus
from msgspec.structs import replace

from kubelet_reference.allocation.allocation_manager import Refusal
from kubelet_reference.api import pods
from kubelet_reference.api.records import PodRecords
from kubelet_reference.api.resources import qos_class
from kubelet_reference.kuberuntime.actions.sandbox_changed import SandboxChange, sandbox_changed
from kubelet_reference.status import conditions
from kubelet_reference.status.conditions import pod_conditions
from kubelet_reference.status.container_statuses import ContainerStatuses, StatusInput, container_statuses
from kubelet_reference.status.phase import pod_phase
from kubelet_reference.status.reason_cache import ReasonCache
from kubelet_reference.status.resize_status import with_resize
from kubelet_reference.util.versions import Behaviour


@dataclass(frozen=True, slots=True)
class Ending:
    """Why a pod has to end although its containers would go on: DeadlineExceeded, Evicted (PHASE-13)."""

    reason: str
    message: str


class PhaseOf(Protocol):
    """As `phase.pod_phase`."""

    def __call__(self, pod: Pod, status: PodStatus, behaviour: Behaviour, *, terminating: bool) -> str:
        """The pod's phase."""
        ...


def lasting_phase(phase: str, *earlier: str | None) -> str:
    """The first of the earlier phases that is terminal, for such a phase stays for good; else `phase`."""
    return next((one for one in earlier if one and pods.is_terminal_phase(one)), phase)


def addresses_in_order(addresses: tuple[str, ...], node: str) -> list[str]:
    """One address of each family, the node's family first, or IPv4 if it has no address (SANDBOX-22)."""
    families = {":" in address: address for address in reversed(addresses)}
    first = ":" in node
    return [families[family] for family in (first, not first) if family in families]


class LastingPhase(Protocol):
    """As `lasting_phase`."""

    def __call__(self, phase: str, *earlier: str | None) -> str:
        """The phase to report."""
        ...


class ConditionsOf(Protocol):
    """As `conditions.pod_conditions`."""

    def __call__(
        self, pod: Pod, status: PodStatus, behaviour: Behaviour, *, sandbox_usable: bool
    ) -> list[PodCondition]:
        """The pod's conditions."""
        ...


WithResize: TypeAlias = Callable[[PodStatus, Pod, PodRecords, Refusal | None, Behaviour], PodStatus]


@dataclass(frozen=True, slots=True)
class StatusDecisions:
    """The pure decisions that make a status; each can be replaced by itself."""

    container_statuses: Callable[[StatusInput], ContainerStatuses] = container_statuses
    pod_phase: PhaseOf = pod_phase
    lasting_phase: LastingPhase = lasting_phase
    pod_conditions: ConditionsOf = pod_conditions
    sandbox_changed: Callable[[Pod, PodRecords], SandboxChange] = sandbox_changed
    addresses_in_order: Callable[[tuple[str, ...], str], list[str]] = addresses_in_order
    with_resize: WithResize = with_resize


@dataclass(frozen=True, slots=True)
class StatusContext:
    """What all statuses of a node are made with.

    `update_statuses` fills in `ready` and `started` from the probes; `ending` asks the handlers that may end
    a pod, `resize_refused` why a pod has not been given what it wants.

    `node_ip` is "" where no API server is there to know it; `runtime` is the runtime's name.
    """

    behaviour: Behaviour
    reasons: ReasonCache
    update_statuses: Callable[[Pod, PodStatus], PodStatus]
    node_ip: str
    runtime: Callable[[], str]
    ending: Callable[[Pod], Ending | None]
    resize_refused: Callable[[Pod], Refusal | None]
    decisions: StatusDecisions


def generate_pod_status(
    context: StatusContext, pod: Pod, records: PodRecords, *, stored: PodStatus | None, terminal: bool
) -> PodStatus:
    """The status that a sync publishes, computed before it acts (SYNC-01).

    `stored` is the status that was set last, the pod's own if there is none; `terminal` says that this is
    the pod's last one. Times of conditions and startTime are left to the status manager.
    """
    before = stored or pod.status or PodStatus()
    decide = context.decisions
    lists = decide.container_statuses(
        StatusInput(pod, records, before, context.reasons, context.runtime(), context.behaviour)
    )
    status = PodStatus(
        containerStatuses=lists.app,
        initContainerStatuses=lists.init or None,
        ephemeralContainerStatuses=lists.ephemeral or None,
        qosClass=qos_class(pod),
        observedGeneration=observed_generation(pod, context.behaviour),
        startTime=before.startTime,
        conditions=_conditions_of_others(pod, before),
    )
    # The phase depends on which sidecars have started, which the probes know.
    status = context.update_statuses(pod, status)
    phase = decide.pod_phase(pod, status, context.behaviour, terminating=terminal)
    status = _with_phase(replace(status, phase=phase), decide, pod, before, context.ending(pod))
    status = _with_addresses(status, context, pod, records, before)
    usable = not decide.sandbox_changed(pod, records).changed
    found = decide.pod_conditions(pod, status, context.behaviour, sandbox_usable=usable)
    found = conditions.lasting_initialized(found, before.conditions, context.behaviour)
    status = replace(status, conditions=[*(status.conditions or ()), *found])
    if not context.behaviour.resizes_in_place:
        return status
    return decide.with_resize(status, pod, records, context.resize_refused(pod), context.behaviour)


def observed_generation(pod: Pod, behaviour: Behaviour) -> int | None:
    """The generation of the spec that a status is made from (STATUS-18)."""
    return pods.metadata(pod).generation if behaviour.reports_observed_generation else None


def _conditions_of_others(pod: Pod, before: PodStatus) -> list[PodCondition]:
    """Conditions that are not the kubelet's, and DisruptionTarget as an eviction has set it (STATUS-06)."""
    theirs = pod.status.conditions if pod.status else None
    kept = [one for one in theirs or () if not conditions.is_owned(one.type)]
    disruption = conditions.condition(before.conditions, conditions.DISRUPTION_TARGET)
    return conditions.put(kept, disruption) if disruption is not None else kept


def _with_phase(
    status: PodStatus, decide: StatusDecisions, pod: Pod, before: PodStatus, ending: Ending | None
) -> PodStatus:
    """The phase with its reason and message; one that is terminal stays for good (STATUS-17, PHASE-11)."""
    own = pod.status or PodStatus()
    # What ended a pod decides, not how its containers took it: an evicted pod is Failed (K8S-118310).
    phase = decide.lasting_phase(status.phase or "", before.phase, own.phase)
    reason = message = None
    if phase == before.phase:
        reason, message = before.reason or own.reason, before.message or own.message
    if ending is not None:
        phase, reason, message = pods.FAILED, ending.reason, ending.message
    phase = decide.lasting_phase(phase, own.phase)
    return replace(status, phase=phase, reason=reason, message=message)


def _with_addresses(
    status: PodStatus, context: StatusContext, pod: Pod, records: PodRecords, before: PodStatus
) -> PodStatus:
    """The node's address, and the pod's: its sandbox's, or the node's on the host network (STATUS-16)."""
    node = context.node_ip
    addresses = context.decisions.addresses_in_order(_last_ips(records, before), node)
    if pods.host_network(pod) and not addresses:
        addresses = [before.podIP or node] if before.podIP or node else []
    return replace(
        status,
        hostIP=node or None,
        hostIPs=[HostIP(ip=node)] if node and context.behaviour.reports_host_ips else None,
        podIP=addresses[0] if addresses else None,
        podIPs=[PodIP(ip=address) for address in addresses] or None,
    )


def _last_ips(records: PodRecords, before: PodStatus) -> tuple[str, ...]:
    """The IPs of the sandbox; once none is ready, those of the status before, which a restart cannot lose."""
    if records.ips or not records.sandboxes or any(sandbox.ready for sandbox in records.sandboxes):
        return records.ips
    return tuple(one.ip for one in before.podIPs or () if one.ip)
