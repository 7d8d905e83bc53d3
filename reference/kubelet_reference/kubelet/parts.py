"""The replaceable parts of a kubelet: the classes of its components, and its pure decisions.

A kubelet that is wrong in one way is the right one with one part replaced:

    Parts(housekeeping=ForgetfulHousekeeping)
    replace(Parts(), runtime=RuntimeParts(compute_actions=eager_actions))
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from lightkube.models.core_v1 import Pod

from kubelet_reference.allocation.admission import HANDLERS, Admission, Handler
from kubelet_reference.allocation.allocation_manager import Allocations
from kubelet_reference.allocation.dynamic_resources import DynamicResources
from kubelet_reference.api.events import Recorder
from kubelet_reference.api.results import ProbeKind, ProbeOutcome
from kubelet_reference.config import ApiSource, FileSource, HttpSource, Mux, classify_change
from kubelet_reference.config.changes import Classify
from kubelet_reference.config.mirror_client import MirrorClient
from kubelet_reference.config.pod_manager import PodManager
from kubelet_reference.cri.client import CriClient
from kubelet_reference.eviction.eviction_manager import EvictionManager
from kubelet_reference.eviction.nodeshutdown import NodeShutdown
from kubelet_reference.eviction.pod_killer import PodKiller
from kubelet_reference.eviction.preemption import Preemption
from kubelet_reference.kubelet.housekeeping import Housekeeping
from kubelet_reference.kubelet.pod_handlers import PodHandlers
from kubelet_reference.kubelet.runtime_state import RuntimeState
from kubelet_reference.kubelet.sync_loop import SyncLoop
from kubelet_reference.kuberuntime.components import RuntimeParts
from kubelet_reference.kuberuntime.pod_files import PodFiles
from kubelet_reference.pleg.cache import PodCache
from kubelet_reference.pleg.evented import EventedPleg
from kubelet_reference.pleg.generic import Pleg
from kubelet_reference.pod_workers.active_deadline import Deadlines
from kubelet_reference.pod_workers.pod_state_queries import PodActivity
from kubelet_reference.pod_workers.pod_workers import PodWorkers
from kubelet_reference.pod_workers.sync_pod import PodSyncer
from kubelet_reference.pod_workers.worker_rules import Timing, effective_grace
from kubelet_reference.pod_workers.worker_table import WorkerTable, worker_table
from kubelet_reference.prober.network_probes import NetworkProbes
from kubelet_reference.prober.prober import ProbeRunner
from kubelet_reference.prober.prober_manager import Prober
from kubelet_reference.prober.worker import (
    ProbeFacts,
    ProbeState,
    ProbeTransition,
    Tick,
    probe_transition,
    tick,
)
from kubelet_reference.status.pod_status import StatusDecisions
from kubelet_reference.status.reason_cache import ReasonCache
from kubelet_reference.status.status_manager import StatusManager
from kubelet_reference.util.versions import Behaviour
from kubelet_reference.volumemanager import Volumes


@dataclass(frozen=True, slots=True)
class NodeParts:
    """The components that end pods to protect the node: eviction, node shutdown, preemption."""

    pod_killer: type[PodKiller] = PodKiller
    eviction_manager: type[EvictionManager] = EvictionManager
    node_shutdown: type[NodeShutdown] = NodeShutdown
    preemption: type[Preemption] = Preemption


@dataclass(frozen=True, slots=True)
class Parts:
    """The parts of a correct kubelet; `status`, `runtime` and `node` hold those of their packages."""

    # Decisions
    worker_table: Callable[[Behaviour], WorkerTable] = worker_table
    effective_grace: Callable[[int, Pod, int | None, Behaviour], int] = effective_grace
    classify_change: Classify = classify_change
    admission_handlers: Sequence[Handler] = HANDLERS
    probe_tick: Callable[[ProbeKind, ProbeState, ProbeFacts], Tick] = tick
    probe_transition: Callable[[ProbeKind, ProbeState, ProbeOutcome, int, Behaviour], ProbeTransition] = (
        probe_transition
    )
    status: StatusDecisions = field(default_factory=StatusDecisions)
    runtime: RuntimeParts = field(default_factory=RuntimeParts)
    node: NodeParts = field(default_factory=NodeParts)

    # Where pods come from
    mux: type[Mux] = Mux
    api_source: type[ApiSource] = ApiSource
    file_source: type[FileSource] = FileSource
    http_source: type[HttpSource] = HttpSource
    pod_manager: type[PodManager] = PodManager
    admission: type[Admission] = Admission
    allocations: type[Allocations] = Allocations

    # The loop and the workers
    sync_loop: type[SyncLoop] = SyncLoop
    pod_handlers: type[PodHandlers] = PodHandlers
    pod_workers: type[PodWorkers] = PodWorkers
    timing: type[Timing] = Timing
    pod_syncer: type[PodSyncer] = PodSyncer
    pod_activity: type[PodActivity] = PodActivity
    deadlines: type[Deadlines] = Deadlines
    housekeeping: type[Housekeeping] = Housekeeping
    mirror_client: type[MirrorClient] = MirrorClient
    volumes: type[Volumes] = Volumes
    dynamic_resources: type[DynamicResources] = DynamicResources

    # What is observed, and what is reported
    cri_client: type[CriClient] = CriClient
    pod_files: type[PodFiles] = PodFiles
    runtime_state: type[RuntimeState] = RuntimeState
    pod_cache: type[PodCache] = PodCache
    pleg: type[Pleg] = Pleg
    evented_pleg: type[EventedPleg] = EventedPleg
    prober: type[Prober] = Prober
    probe_runner: type[ProbeRunner] = ProbeRunner
    network_probes: type[NetworkProbes] = NetworkProbes
    reason_cache: type[ReasonCache] = ReasonCache
    status_manager: type[StatusManager] = StatusManager
    recorder: type[Recorder] = Recorder
