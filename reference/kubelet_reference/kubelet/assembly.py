"""The wiring of a kubelet: makes every component and gives it the others that it needs."""

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from lightkube.models.core_v1 import Node, Pod, PodStatus

from kubelet_reference.allocation.admission import NodePressure
from kubelet_reference.allocation.dynamic_resources import DynamicResources
from kubelet_reference.api import pods
from kubelet_reference.api.metrics import Metrics
from kubelet_reference.api.records import PodRecords
from kubelet_reference.config import ApiSource, FileSource, HttpSource, Source
from kubelet_reference.eviction.eviction_manager import EvictionManager
from kubelet_reference.eviction.nodeshutdown import NodeShutdown
from kubelet_reference.images.keyring import pull_secrets
from kubelet_reference.kubelet.node_view import NodeView
from kubelet_reference.kubelet.parts import Parts
from kubelet_reference.kuberuntime.components import RuntimeDeps, build_runtime_side
from kubelet_reference.kuberuntime.runtime_tools import RuntimeTools
from kubelet_reference.pod_workers.worker_rules import WorkerRules, WorkerTools
from kubelet_reference.prober.worker import ProbeTools
from kubelet_reference.status.pod_status import StatusContext, generate_pod_status
from kubelet_reference.status.status_manager import PodSafety
from kubelet_reference.util.ports import Ports
from kubelet_reference.util.settings import Settings
from kubelet_reference.util.versions import Behaviour
from kubelet_reference.util.work_queue import WorkQueue


@dataclass(eq=False)
class Assembly:
    """The components of one kubelet, made in the order in which they need each other.

    Only two look forward: the status manager and the runtime side ask the pod workers, which come later,
    whether a pod is ending. `spawn` runs a coroutine as a task of this kubelet.
    """

    ports: Ports
    settings: Settings
    behaviour: Behaviour
    parts: Parts
    spawn: Callable[[Coroutine[Any, Any, Any]], asyncio.Task[Any]]

    def __post_init__(self) -> None:
        self._api = self.ports.api if self.settings.with_api_server else None
        self.metrics = Metrics()
        self.recorder = self.parts.recorder(self.ports.events)
        self._make_config()
        self._make_statuses()
        self._make_runtime()
        self._make_workers()
        self._make_node()
        self._make_handlers()
        self._make_loop()

    def services(self) -> Iterator[Coroutine[Any, Any, None]]:
        """What runs as long as the kubelet does."""
        yield self.state.run()
        yield self.evented_pleg.run() if self.behaviour.streams_container_events else self.pleg.run()
        yield self.prober.run()
        yield self.statuses.run()
        yield self.side.garbage_collector.run()
        yield self.side.image_gc_manager.run()
        yield self.side.container_deletor.run()
        if self.node_view is not None:
            yield self.node_view.run()
        for source in self.sources.values():
            yield source.run()
        if self.evictions is not None:
            yield self.evictions.run()
        if self.shutdown is not None:
            yield self.shutdown.run()
        yield self.loop.run()

    def _make_config(self) -> None:
        """Where pods come from."""
        self.sources: dict[Source, ApiSource | FileSource | HttpSource] = {}
        parts, ports, settings = self.parts, self.ports, self.settings
        self.mux = parts.mux(self.recorder, ports.clock, self._source_names(), parts.classify_change)
        self.manager = parts.pod_manager()
        clock, mux = ports.clock, self.mux
        arguments = clock, mux, settings, self.behaviour
        if settings.static_pod_path:
            self.sources[Source.FILE] = parts.file_source(ports.disk, *arguments)
        if settings.static_pod_url:
            self.sources[Source.HTTP] = parts.http_source(ports.url, *arguments)
        if self._api is not None:
            source = parts.api_source(self._api, clock, ports.random, mux, settings.node_name)
            self.sources[Source.API] = source
        self.node_view = NodeView(self._api, clock, settings.node_name) if self._api is not None else None
        self.mirrors = parts.mirror_client(self._api, settings.node_name)
        self.volumes = parts.volumes(self._api, ports.disk, clock, self.recorder, settings, ports.tokens)

    def _source_names(self) -> Iterator[Source]:
        """The sources that the mux waits for."""
        if self.settings.static_pod_path:
            yield Source.FILE
        if self.settings.static_pod_url:
            yield Source.HTTP
        if self._api is not None:
            yield Source.API

    def _make_statuses(self) -> None:
        """Statuses, and the probes and deadlines that they report."""
        parts, ports = self.parts, self.ports
        self.client = parts.cri_client(ports.runtime, ports.images, self.settings, self.metrics)
        safety = PodSafety(
            could_run=self._could_run,
            reclaimed=self._is_reclaimed,
        )
        self.statuses = parts.status_manager(self._api, ports.clock, self.manager, safety, self.behaviour)
        network = parts.network_probes(ports.network, self.behaviour.minor)
        stored = self.statuses.get
        probes = ProbeTools(
            probe=parts.probe_runner(self.client, network, stored, self.recorder, self.metrics).run,
            stored_status=stored,
            clock=ports.clock,
            random=ports.random,
            behaviour=self.behaviour,
            began=ports.clock.monotonic(),
            tick=parts.probe_tick,
            probe_transition=parts.probe_transition,
        )
        self.prober = parts.prober(probes)
        self.reasons = parts.reason_cache()
        self.deadlines = parts.deadlines(self.statuses.get, ports.clock, self.recorder)

    def _make_runtime(self) -> None:
        """The runtime side, and what is observed of it."""
        parts, ports = self.parts, self.ports
        self.resources: DynamicResources | None = None
        files = parts.pod_files(ports.disk, ports.random, self.settings, self.behaviour)
        if self.behaviour.prepares_resources:
            self.resources = parts.dynamic_resources(ports.resources, ports.disk, self.settings)
        tools = RuntimeTools(
            client=self.client,
            files=files,
            recorder=self.recorder,
            metrics=self.metrics,
            clock=ports.clock,
            settings=self.settings,
            behaviour=self.behaviour,
            spawn=self.spawn,
            resources=self.resources,
        )
        deps = RuntimeDeps(
            disk=ports.disk,
            api=self._api,
            http=ports.http,
            liveness=self.prober.liveness,
            startup=self.prober.startup,
            is_ending=self._is_ending,
            should_content_be_removed=self._should_content_be_removed,
            sources_ready=self.mux.all_seen,
            watch_pod=self._watch_pod,
            stats=ports.stats,
            sandbox_ready=self._sandbox_ready,
        )
        self.allocations = parts.allocations(ports.disk, self.settings, self.behaviour, self._other_pods)
        self.side = build_runtime_side(tools, deps, parts.runtime)
        self.cache = parts.pod_cache()
        self.pleg = parts.pleg(self.side.reader, self.cache, ports.clock, self.metrics)
        self.evented_pleg = parts.evented_pleg(
            self.pleg, self.side.reader.container_events, self.cache, ports.clock
        )
        self.state = parts.runtime_state(self.client, ports.clock, self.behaviour, self.pleg.healthy)

    def _make_workers(self) -> None:
        """The syncs and the workers that run them."""
        parts, ports = self.parts, self.ports
        self._status_context = StatusContext(
            behaviour=self.behaviour,
            reasons=self.reasons,
            update_statuses=self.prober.update_statuses,
            node_ip=self.settings.node_ip if self._api is not None else "",
            runtime=lambda: self.state.runtime_name,
            ending=self.deadlines.ending,
            decisions=parts.status,
            resize_refused=self.allocations.pending,
        )
        syncer = parts.pod_syncer(
            generate=self._status_of,
            statuses=self.statuses,
            runtime=self.side.manager,
            prober=self.prober,
            mirrors=self.mirrors,
            volumes=self.volumes,
            resources=self.resources,
            cgroups=ports.cgroups,
            disk=ports.disk,
            recorder=self.recorder,
            reasons=self.reasons,
            root_dir=self.settings.root_dir,
            network_error=self.state.network_error,
            pull_secrets=partial(pull_secrets, self._api, self.recorder),
            allocate=self.allocations.resized,
        )
        self.queue = WorkQueue(ports.clock)
        tools = WorkerTools(ports.clock, self.queue, self.recorder, self.spawn, self.metrics)
        timing = parts.timing(ports.random, self.settings.sync_frequency)
        table = parts.worker_table(self.behaviour)
        rules = WorkerRules(table, timing, self.behaviour, parts.effective_grace)
        self.workers = parts.pod_workers(syncer, self.cache, tools, rules)

    def _make_node(self) -> None:
        """What ends pods for the sake of the node; only where ports measure it or announce its shutdown."""
        parts, ports, settings, behaviour = self.parts.node, self.ports, self.settings, self.behaviour
        self.activity = self.parts.pod_activity(self.workers, self.statuses)
        killer = parts.pod_killer(self.workers, self.recorder)
        self.preemption = parts.preemption(killer, self.recorder, behaviour)
        self.evictions: EvictionManager | None = None
        self.shutdown: NodeShutdown | None = None
        if ports.stats is not None:
            self.evictions = parts.eviction_manager(
                stats=ports.stats,
                settings=settings,
                behaviour=behaviour,
                clock=ports.clock,
                recorder=self.recorder,
                killer=killer,
                active=self._active_pods,
                reclaim=self._reclaim,
                is_gone=self._is_gone,
            )
        if ports.shutdown is not None:
            self.shutdown = parts.node_shutdown(
                signal=ports.shutdown,
                settings=settings,
                behaviour=behaviour,
                clock=ports.clock,
                killer=killer,
                active=self._active_pods,
                is_gone=self._is_gone,
                is_reported=lambda pod: self.statuses.is_written(pods.uid(pod)),
                spawn=self.spawn,
            )

    def _make_handlers(self) -> None:
        """What the sync loop hands pods to: the handlers of their changes, and housekeeping."""
        parts, ports, behaviour = self.parts, self.ports, self.behaviour
        admission = parts.admission(
            self.settings, self._node, parts.admission_handlers, behaviour, self._node_pressure
        )
        self.handlers = parts.pod_handlers(
            manager=self.manager,
            workers=self.workers,
            activity=self.activity,
            admission=admission,
            statuses=self.statuses,
            preemption=self.preemption,
            recorder=self.recorder,
            behaviour=behaviour,
            all_sources_seen=self.mux.all_seen,
            remove_dead_containers=self._remove_dead_containers,
            allocated=self.allocations.applied,
        )
        self.housekeeping = parts.housekeeping(
            manager=self.manager,
            workers=self.workers,
            activity=self.activity,
            statuses=self.statuses,
            mirrors=self.mirrors,
            volumes=self.volumes,
            disk=ports.disk,
            metrics=self.metrics,
            behaviour=behaviour,
            root_dir=self.settings.root_dir,
            list_running=self.side.reader.list_running_pods,
            forget_expired=self._forget_expired,
            cgroups=ports.cgroups,
        )

    def _make_loop(self) -> None:
        """The sync loop."""
        self.loop = self.parts.sync_loop(
            mux=self.mux,
            pleg_events=self.pleg.events,
            probe_updates=self.prober.updates,
            queue=self.queue,
            handlers=self.handlers,
            housekeeping=self.housekeeping,
            statuses=self.statuses,
            deadlines=self.deadlines,
            state=self.state,
            clock=self.ports.clock,
            random=self.ports.random,
            container_died=self._container_died,
            sync_frequency=self.settings.sync_frequency,
        )

    # Questions to the workers from those that are made before them

    def _could_run(self, uid: str) -> bool:
        return self.workers.could_have_running_containers(uid)

    def _is_ending(self, uid: str) -> bool:
        return self.workers.is_termination_requested(uid)

    def _should_content_be_removed(self, uid: str) -> bool:
        return self.workers.should_content_be_removed(uid)

    def _other_pods(self, pod: Pod) -> Iterator[Pod]:
        """The pods that take something of the node, but for this one."""
        uid, is_active = pods.uid(pod), self.activity.is_active
        return (one for one in self.manager.pods() if pods.uid(one) != uid and is_active(one))

    def _watch_pod(self, uid: str, name: str, met: Callable[[PodRecords], bool]) -> None:
        self.pleg.watch(uid, name, met)

    # Joints between components

    def _active_pods(self) -> Sequence[Pod]:
        return self.activity.active(self.manager.pods())

    async def _reclaim(self) -> None:
        await self.side.garbage_collector.reclaim(self.workers.is_pod_known_terminated)

    def _node_pressure(self) -> NodePressure:
        """What the node suffers from now."""
        pressures = self.evictions.pressures() if self.evictions is not None else frozenset[str]()
        return NodePressure(pressures, is_shutting_down=self.shutdown is not None and self.shutdown.has_begun)

    def _is_gone(self, pod: Pod) -> bool:
        uid = pods.uid(pod)
        return not self._could_run(uid) and self._is_reclaimed(uid)

    def _is_reclaimed(self, uid: str) -> bool:
        return not self.volumes.is_mounted(uid)

    def _status_of(self, pod: Pod, records: PodRecords, *, terminal: bool) -> PodStatus:
        pod = self.allocations.applied(pod)
        stored = self.statuses.get(pod.metadata.uid or "") if pod.metadata else None
        return generate_pod_status(self._status_context, pod, records, stored=stored, terminal=terminal)

    def _sandbox_ready(self, pod: Pod) -> None:
        if self.behaviour.network_ready_at_once:
            self.statuses.set_sandbox_ready(pod)

    def _node(self) -> Node | None:
        return self.node_view.node() if self.node_view is not None else None

    def _container_died(self, uid: str, container_id: str) -> None:
        """Older instances go; all of them if nothing of the pod need be kept (GC-10).

        The last status reports how each container ended: till then an evicted pod keeps them (K8S-141857).
        """
        remove_all = self.workers.should_content_be_removed(uid) and not self._could_run(uid)
        self.side.container_deletor.container_died(self.cache.get(uid), container_id, remove_all=remove_all)

    def _remove_dead_containers(self, uid: str) -> None:
        self.side.container_deletor.container_died(self.cache.get(uid), "", remove_all=True)

    def _forget_expired(self) -> None:
        self.allocations.keep_only({pods.uid(pod) for pod in self.manager.pods()})
