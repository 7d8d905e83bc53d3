"""The node as a whole: evictions under pressure, room for critical pods, and the node's shutdown."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from lightkube.models.core_v1 import Pod

from kubelet_reference.admission import Distress
from kubelet_reference.events import Recorder
from kubelet_reference.eviction_manager import EvictionManager, EvictionTools
from kubelet_reference.kill_now import PodKiller
from kubelet_reference.node_shutdown import NodeShutdown, ShutdownTools
from kubelet_reference.pod_workers import PodWorkers
from kubelet_reference.ports import Ports
from kubelet_reference.preemption import Preemption
from kubelet_reference.settings import Settings
from kubelet_reference.versions import Behaviour


@dataclass(frozen=True, slots=True)
class NodeParts:
    """The components; a kubelet that is wrong in one way replaces one."""

    pod_killer: type[PodKiller] = PodKiller
    eviction_manager: type[EvictionManager] = EvictionManager
    node_shutdown: type[NodeShutdown] = NodeShutdown
    preemption: type[Preemption] = Preemption


@dataclass(frozen=True, slots=True)
class NodeTools:
    """What the components work with.

    `active` gives the pods that run here, `reclaim` removes what no pod needs, `is_gone` tells whether a pod
    has left nothing behind, `is_told` whether the API server has its status; `spawn` runs a coroutine as a
    task of the kubelet.
    """

    ports: Ports
    settings: Settings
    behaviour: Behaviour
    workers: PodWorkers
    recorder: Recorder
    active: Callable[[], Sequence[Pod]]
    reclaim: Callable[[], Awaitable[None]]
    is_gone: Callable[[Pod], bool]
    is_told: Callable[[Pod], bool]
    spawn: Callable[[Coroutine[Any, Any, Any]], asyncio.Task[Any]]


class NodeSide:
    """Has what the ports allow: no evictions without measurements, no shutdown that nobody announces."""

    def __init__(self, tools: NodeTools, parts: NodeParts) -> None:
        ports = tools.ports
        killer = parts.pod_killer(tools.workers, tools.recorder)
        self.preemption = parts.preemption(killer, tools.recorder, tools.behaviour)
        self._evictions: EvictionManager | None = None
        self._shutdown: NodeShutdown | None = None
        if ports.stats is not None:
            evictions = EvictionTools(
                stats=ports.stats,
                settings=tools.settings,
                behaviour=tools.behaviour,
                clock=ports.clock,
                recorder=tools.recorder,
                killer=killer,
                active=tools.active,
                reclaim=tools.reclaim,
                is_gone=tools.is_gone,
            )
            self._evictions = parts.eviction_manager(evictions)
        if ports.shutdown is not None:
            shutdown = ShutdownTools(
                signal=ports.shutdown,
                settings=tools.settings,
                behaviour=tools.behaviour,
                clock=ports.clock,
                killer=killer,
                active=tools.active,
                is_gone=tools.is_gone,
                is_told=tools.is_told,
                spawn=tools.spawn,
            )
            self._shutdown = parts.node_shutdown(shutdown)

    def services(self) -> Iterator[Coroutine[Any, Any, None]]:
        """What runs as long as the kubelet does."""
        if self._evictions is not None:
            yield self._evictions.run()
        if self._shutdown is not None:
            yield self._shutdown.run()

    def distress(self) -> Distress:
        """What the node suffers from now."""
        pressures = self._evictions.pressures() if self._evictions is not None else frozenset[str]()
        return Distress(pressures, goes_down=self._shutdown is not None and self._shutdown.has_begun)
