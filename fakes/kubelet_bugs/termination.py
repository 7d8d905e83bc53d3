"""Bugs in how pods and containers are stopped: in which order, and with how much grace."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence

from lightkube.models.core_v1 import LifecycleHandler, Pod

from kubelet_bugs.bug import bug
from kubelet_reference import pods
from kubelet_reference.grace import MINIMUM_SECONDS, effective_grace
from kubelet_reference.pod_handlers import PodHandlers
from kubelet_reference.pods import AnyContainer
from kubelet_reference.results import KillReason
from kubelet_reference.stop_timeout import base_grace
from kubelet_reference.sync_result import ActionResult
from kubelet_reference.termination import ContainerKill, Terminator
from kubelet_reference.termination_order import TerminationOrder
from kubelet_reference.updates import KillOptions, Update, UpdateKind
from kubelet_reference.versions import Behaviour

_FOR_EVER = 10**9


@bug(
    "K8S-83916",
    breaks=("WORK-07", "WORK-09"),
    part="effective_grace",
    aliases=("K22", "K8S-113717", "K8S-113882", "K8S-98507"),
)
def first_grace_holds(previous: int, pod: Pod, override: int | None, behaviour: Behaviour) -> int:
    """A second deletion with a shorter grace changes nothing."""
    return previous or effective_grace(0, pod, override, behaviour)


@bug("K8S-104743", breaks="WORK-33", part="effective_grace")
def no_grace_for_static(previous: int, pod: Pod, override: int | None, behaviour: Behaviour) -> int:
    """A static pod is stopped without its grace."""
    return MINIMUM_SECONDS if pods.is_static(pod) else effective_grace(previous, pod, override, behaviour)


@bug("K8S-60631", breaks="TERM-03", part="stop_timeout")
def least_timeout(_base: int, _override: int | None, _waited: float, _behaviour: Behaviour) -> int:
    """Every container is stopped with the least grace, whatever was asked for."""
    return 2


@bug("K8S-49626", breaks="WORK-33", aliases="K8S-14266")
class NoGraceWhenRemoved(PodHandlers):
    """A pod that its source dropped is stopped without its grace."""

    def remove(self, gone: Iterable[Pod]) -> None:
        dropped = list(gone)
        for pod in dropped:
            if not pods.is_mirror(pod) and self.may_remove():
                kill = KillOptions(grace_override=0)
                self._tools.workers.update_pod(Update(UpdateKind.KILL, pod, kill=kill))
        super().remove(dropped)


@bug("K8S-119377", breaks="TERM-03", aliases="K08")
class ForgetsProbeGrace(Terminator):
    """A container that failed its probe gets the grace of its pod, not that of the probe."""

    def base_grace(self, kill: ContainerKill, container: AnyContainer) -> int:
        return base_grace(kill.pod, container, KillReason.UNKNOWN)


@bug("K8S-49449", breaks="TERM-07", aliases="K07")
class HookWithoutTime(Terminator):
    """With a grace of 0 a preStop hook is begun all the same."""

    def runs_hook(self, grace: int) -> bool:
        return grace >= 0


@bug("K8S-9764", breaks="TERM-01", aliases="K11")
class AllAtOnce(Terminator):
    """The sandbox is stopped while containers are still stopping."""

    async def kill_pod(
        self, pod: Pod, kills: Sequence[ContainerKill], sandbox_ids: Sequence[str]
    ) -> tuple[ActionResult, ...]:
        containers, sandboxes = await asyncio.gather(
            self.kill_containers(kills), self.stop_sandboxes(pod, sandbox_ids)
        )
        return (*containers, *sandboxes)


@bug("K8S-53727", breaks=("TERM-02", "HOOK-14"), aliases="K10")
class OneByOne(Terminator):
    """The containers of a pod are stopped one after another."""

    async def kill_containers(
        self, kills: Sequence[ContainerKill], order: TerminationOrder | None = None
    ) -> Sequence[ActionResult]:
        return [await self.kill_container(kill, order) for kill in kills]


@bug("K8S-45140", breaks="HOOK-05", aliases="K8S-24695")
class WaitsOutTheGrace(Terminator):
    """A preStop hook that has ended is followed by the rest of the grace, and only then by the stop."""

    async def _within(
        self, limit: int, kill: ContainerKill, container: AnyContainer, handler: LifecycleHandler
    ) -> None:
        began = self._clock.monotonic()
        await super()._within(limit, kill, container, handler)
        await self._clock.sleep(limit - (self._clock.monotonic() - began))


@bug("K8S-8768", breaks="TERM-06", aliases="K8S-127339")
class WaitsForHooks(Terminator):
    """A preStop hook that does not end holds up the stop for ever."""

    async def _within(
        self, limit: int, kill: ContainerKill, container: AnyContainer, handler: LifecycleHandler
    ) -> None:
        await super()._within(max(limit, _FOR_EVER), kill, container, handler)
