"""The wiring of the runtime manager: makes its components, each from those that it needs."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from cri_api.v1 import api_pb2 as cri
from lightkube.models.core_v1 import Pod

from kubelet_reference.api.events import WARNING, Reason
from kubelet_reference.api.records import PodRecords
from kubelet_reference.api.results import ProbeOutcome
from kubelet_reference.cri.runtime_reader import RuntimeReader
from kubelet_reference.cri.termination_message import TerminationMessages
from kubelet_reference.images.image_gc_manager import ImageGCManager
from kubelet_reference.images.image_manager import ImageManager
from kubelet_reference.images.image_pull_rules import ImageFacts, ImageStep, image_decision
from kubelet_reference.images.pull_records import PullRecords
from kubelet_reference.kuberuntime.actions.pod_actions import PodActions, compute_actions
from kubelet_reference.kuberuntime.actions.sandbox_changed import SandboxChange, sandbox_changed
from kubelet_reference.kuberuntime.actions.sync_input import SyncInput
from kubelet_reference.kuberuntime.container.crash_backoff import CrashBackoff
from kubelet_reference.kuberuntime.container.environment import Environment
from kubelet_reference.kuberuntime.container.hooks import Hooks
from kubelet_reference.kuberuntime.container.kill_container import ContainerKiller
from kubelet_reference.kuberuntime.container.resize import Resizer, WatchPod
from kubelet_reference.kuberuntime.container.start_container import ContainerStarter, ImageVolumes, StartParts
from kubelet_reference.kuberuntime.container.stop_timeout import stop_timeout
from kubelet_reference.kuberuntime.container_gc.container_deletor import ContainerDeletor, RecordRemover
from kubelet_reference.kuberuntime.container_gc.garbage_collector import GarbageCollector, GarbageRules
from kubelet_reference.kuberuntime.runtime_manager import RuntimeComponents, RuntimeManager
from kubelet_reference.kuberuntime.runtime_tools import RuntimeTools
from kubelet_reference.kuberuntime.sandbox import RuntimeClasses, SandboxCreator
from kubelet_reference.kuberuntime.sandbox_config import sandbox_config
from kubelet_reference.util.ports import ApiServer, Disk, HttpGet, NodeStats
from kubelet_reference.util.settings import Settings
from kubelet_reference.util.versions import Behaviour


@dataclass(frozen=True, slots=True)
class RuntimeParts:
    """The replaceable decisions and component classes of the runtime manager."""

    sandbox_changed: Callable[[Pod, PodRecords], SandboxChange] = sandbox_changed
    compute_actions: Callable[[SyncInput], PodActions] = compute_actions
    sandbox_config: Callable[[Pod, int, Settings], cri.PodSandboxConfig] = sandbox_config
    image_decision: Callable[[ImageFacts], ImageStep] = image_decision
    stop_timeout: Callable[[int, int | None, float, Behaviour], int] = stop_timeout
    crash_backoff: type[CrashBackoff] = CrashBackoff
    environment: type[Environment] = Environment
    garbage_collector: type[GarbageCollector] = GarbageCollector
    hooks: type[Hooks] = Hooks
    image_gc_manager: type[ImageGCManager] = ImageGCManager
    image_manager: type[ImageManager] = ImageManager
    image_volumes: type[ImageVolumes] = ImageVolumes
    reader: type[RuntimeReader] = RuntimeReader
    record_remover: type[RecordRemover] = RecordRemover
    resizer: type[Resizer] = Resizer
    runtime_manager: type[RuntimeManager] = RuntimeManager
    sandbox_creator: type[SandboxCreator] = SandboxCreator
    starter: type[ContainerStarter] = ContainerStarter
    container_killer: type[ContainerKiller] = ContainerKiller


@dataclass(frozen=True, slots=True)
class RuntimeDeps:
    """What the runtime manager's components need from the rest of the kubelet and from the node.

    `liveness` and `startup` give a probe's outcome by container id; by pod UID `is_ending` says whether the
    pod's termination has been asked for, `should_content_be_removed` whether nothing of it need be kept;
    `watch_pod` has it inspected until something holds of its records. `stats` says how full the disks are;
    `sandbox_ready` is called with each pod whose sandbox has just been made.
    """

    disk: Disk
    api: ApiServer | None
    http: HttpGet
    liveness: Callable[[str], ProbeOutcome | None]
    startup: Callable[[str], ProbeOutcome | None]
    is_ending: Callable[[str], bool]
    should_content_be_removed: Callable[[str], bool]
    sources_ready: Callable[[], bool]
    watch_pod: WatchPod
    stats: NodeStats | None = None
    sandbox_ready: Callable[[Pod], None] = lambda _: None


@dataclass(frozen=True, slots=True)
class RuntimeSide:
    """The runtime manager and the components that other parts of the kubelet use."""

    manager: RuntimeManager
    reader: RuntimeReader
    garbage_collector: GarbageCollector
    image_gc_manager: ImageGCManager
    container_deletor: ContainerDeletor


def build_runtime_side(
    tools: RuntimeTools, deps: RuntimeDeps, parts: RuntimeParts | None = None
) -> RuntimeSide:
    """Make all components, each from those it needs."""
    parts = parts or RuntimeParts()
    reader = parts.reader(tools.client, TerminationMessages(deps.disk, tools.settings))
    hooks = parts.hooks(tools, deps.http, reader.pod_ip)
    container_killer = parts.container_killer(tools, hooks, parts.stop_timeout)
    records = PullRecords(deps.disk, tools.settings)
    images = parts.image_manager(tools, records, parts.image_decision)
    remover = parts.record_remover(tools)
    environment = parts.environment(deps.api, tools.settings)
    components = RuntimeComponents(
        liveness=deps.liveness,
        startup=deps.startup,
        sandbox_changed=parts.sandbox_changed,
        compute_actions=parts.compute_actions,
        sandbox_config=parts.sandbox_config,
        image_volumes=parts.image_volumes(images, tools.behaviour),
        reader=reader,
        sandboxes=parts.sandbox_creator(tools, RuntimeClasses(deps.api), deps.is_ending),
        starter=parts.starter(tools, StartParts(images, environment, hooks, container_killer)),
        container_killer=container_killer,
        backoff=parts.crash_backoff(tools),
        remover=remover,
        resizer=parts.resizer(tools, deps.watch_pod),
        sandbox_ready=deps.sandbox_ready,
    )
    manager = parts.runtime_manager(tools, components)
    image_gc_manager = parts.image_gc_manager(tools, deps.stats)
    rules = GarbageRules(
        deps.sources_ready,
        deps.should_content_be_removed,
        image_gc_manager.free_everything,
        partial(tools.recorder.of_node, tools.settings.node_name, WARNING, Reason.CONTAINER_GC_FAILED),
    )
    collector = parts.garbage_collector(tools, remover, container_killer, rules)
    deletor = ContainerDeletor(remover.remove)
    return RuntimeSide(manager, reader, collector, image_gc_manager, deletor)
