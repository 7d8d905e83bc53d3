"""Node pressure: what a node is short of, what pods use of it, and which thresholds the kubelet has.

Only what was made scarce on purpose is known: the trace of a real node records no pressure. How little is
too little stands in the header's `configuration`; in a trace without one it is unknown.
"""

import math
import re
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
from msgspec import field

from kubelet_conformance.contract import Moment, Note, Pod, PodSpec
from kubelet_conformance.contract.definition import observer
from kubelet_conformance.contracts.facts.pod import FAULT
from kubelet_conformance.trace.format.records import Fault
from kubelet_conformance.trace.world.views import Latest

DISK = "ephemeral-storage"
SYSTEM_CRITICAL = 2_000_000_000
"""The priority from which on a pod is critical (scheduling.k8s.io)."""
LEAST_KILL_TIMEOUT = 10.0
"""How long an eviction waits for a kill at least (pod_workers.go)."""


def kill_timeout(grace: float) -> float:
    """How many seconds an eviction or a preemption waits for a pod that has this grace (pod_workers.go)."""
    return max(LEAST_KILL_TIMEOUT, 1.5 * grace)


_HARD = {
    "memory.available": "100Mi",
    "nodefs.available": "10%",
    "nodefs.inodesFree": "5%",
    "imagefs.available": "15%",
    "imagefs.inodesFree": "5%",
}
_UNITS = {
    "": 1.0,
    "m": 1e-3,
    "k": 1e3,
    "M": 1e6,
    "G": 1e9,
    "T": 1e12,
    **{unit: 1024.0 ** (place + 1) for place, unit in enumerate(("Ki", "Mi", "Gi", "Ti"))},
}
_QUANTITY = re.compile(r"(\d+(?:\.\d+)?)(m|[kMGT]|[KMGT]i)?")


class Low(msgspec.Struct, frozen=True):
    """A signal of the node's resources that is low, such as memory.available, since `t`."""

    signal: str
    available: str
    t: float
    seq: int

    @property
    def of_disk(self) -> bool:
        """Room on a disk is short."""
        return self.signal.endswith("fs.available")


class NodePressure(Note):
    """What the node is short of, and what each pod uses, as faults have shown it so far."""

    low: dict[str, Low] = {}
    usage: Latest[str, dict[str, str]] = field(default_factory=Latest[str, dict[str, str]])
    """What each pod uses, by UID and resource."""
    eased_t: float = -math.inf
    """When there was enough of something again."""
    is_recorded: bool = False
    """The trace records pressure or usage at all."""


def node_pressure(m: Moment) -> NodePressure:
    """What the node is short of by now."""
    return m.node.note(NodePressure)


@observer(on=FAULT)
def _fault_is_injected(m: Moment) -> None:
    known, record = node_pressure(m), m.record
    if not isinstance(record, Fault):
        return
    signal = record.subject.removesuffix(" is low")
    if record.is_healed:
        known.eased_t = m.t if known.low.pop(signal, None) else known.eased_t
    elif record.what.endswith(" is low") and record.values:
        known.low[signal] = Low(signal, record.values.get(signal, ""), m.t, m.seq)
    elif record.uid:
        known.usage.setdefault(record.uid, {}).update(record.values)
    known.is_recorded = known.is_recorded or bool(known.low or known.usage)


def setting(m: Moment, field: str, usual: Any) -> Any:  # noqa: ANN401 - a JSON value
    """A field of the kubelet's configuration, with its default; None where it is not known how it was set."""
    configuration = m.header.configuration
    return None if configuration is None else configuration.get(field, usual)


def amount(text: str) -> float:
    """A quantity such as 500m or 1Gi; 0 for what is none."""
    found = _QUANTITY.fullmatch(text)
    return float(found[1]) * _UNITS[found[2] or ""] if found else 0.0


def _is_below(low: Low, limits: Mapping[str, str]) -> bool:
    """The signal is below its limit: both are shares, or both are amounts, else it is not known."""
    limit = limits.get(low.signal, "")
    if limit.endswith("%") and low.available.endswith("%"):
        return float(low.available[:-1]) < float(limit[:-1])
    both = limit and not limit.endswith("%") and not low.available.endswith("%")
    return bool(both) and amount(low.available) < amount(limit)


def is_hard(m: Moment, low: Low) -> bool:
    """What is available is certainly below the hard eviction threshold."""
    limits = setting(m, "evictionHard", _HARD)
    return limits is not None and _is_below(low, limits)


def is_soft(m: Moment, low: Low) -> bool:
    """What is available is certainly below the soft eviction threshold, and not below the hard one."""
    limits = setting(m, "evictionSoft", {})
    return limits is not None and not is_hard(m, low) and _is_below(low, limits)


def is_critical(pod: Pod) -> bool:
    """The node cannot do without the pod: it is static, or of system priority."""
    return pod.static or _is_of_the_system(pod.spec)


def _is_of_the_system(spec: PodSpec | None) -> bool:
    return spec is not None and (spec.priority or 0) >= SYSTEM_CRITICAL


def every_pod(m: Moment) -> Iterable[Pod]:
    """Every pod that the trace knows, static ones by their names."""
    return dict.fromkeys((*m.world.pods.values(), *m.world.names.values()))


def runs(pod: Pod) -> bool:
    """A container of the pod runs, and the pod was not asked to terminate."""
    if not (pod.born and pod.wanted) or pod.termination is not None or pod.finished:
        return False
    return any(c.state == "running" and c.born for c in pod.every_container())


def demand(spec: PodSpec, resource: str) -> float:
    """The sum of the pod's app containers' requests; a limit without a request counts as one."""
    return sum(amount(one.resources.asked(resource)) for one in spec.containers)


def is_best_effort(spec: PodSpec) -> bool:
    """No container of the pod asks for CPU or memory."""
    every = (*spec.containers, *(spec.init_containers or ()))
    return not any(one.resources.asked(resource) for one in every for resource in ("cpu", "memory"))


def exceeds_its_limits(spec: PodSpec, used: Mapping[str, str]) -> bool:
    """The pod uses more disk than its limits allow: a volume's, a container's, or all of them together.

    A limit of 0 of a volume or of one container is none.
    """
    for volume in spec.volumes or ():
        empty_dir: dict[str, Any] = volume.get("emptyDir") or {}
        limit = str(empty_dir.get("sizeLimit") or "")
        if 0 < amount(limit) < amount(used.get(f"volume {volume.get('name')}", "")):
            return True
    limits = {one.name: str((one.resources.limits or {}).get(DISK, "")) for one in spec.containers}
    for name, limit in limits.items():
        if 0 < amount(limit) < amount(used.get(f"container {name}", "")):
            return True
    return all(limits.values()) and amount(used.get(DISK, "")) > sum(map(amount, limits.values()))
