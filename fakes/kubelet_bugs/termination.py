"""Bugs in how pods and containers are stopped: in which order, and with how much grace."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence

from lightkube.models.core_v1 import LifecycleHandler, Pod

from kubelet_bugs.bug import Bug
from kubelet_reference import pods
from kubelet_reference.grace import MINIMUM_SECONDS, effective_grace
from kubelet_reference.parts import Parts
from kubelet_reference.pod_handlers import PodHandlers
from kubelet_reference.pods import AnyContainer
from kubelet_reference.results import KillReason
from kubelet_reference.runtime_side import RuntimeParts
from kubelet_reference.stop_timeout import base_grace
from kubelet_reference.sync_result import ActionResult
from kubelet_reference.termination import ContainerKill, Terminator
from kubelet_reference.termination_order import TerminationOrder
from kubelet_reference.updates import KillOptions, Update, UpdateKind
from kubelet_reference.versions import Behaviour

_FOR_EVER = 10**9


def _first_grace_holds(previous: int, pod: Pod, override: int | None, behaviour: Behaviour) -> int:
    return previous or effective_grace(0, pod, override, behaviour)


def _no_grace_for_static(previous: int, pod: Pod, override: int | None, behaviour: Behaviour) -> int:
    return MINIMUM_SECONDS if pods.is_static(pod) else effective_grace(previous, pod, override, behaviour)


def _least_timeout(_base: int, _override: int | None, _waited: float, _behaviour: Behaviour) -> int:
    return 2


class _NoGraceWhenRemoved(PodHandlers):
    """Kills what its source dropped with no grace at all."""

    def remove(self, gone: Iterable[Pod]) -> None:
        dropped = list(gone)
        for pod in dropped:
            if not pods.is_mirror(pod) and self.may_remove():
                kill = KillOptions(grace_override=0)
                self._tools.workers.update_pod(Update(UpdateKind.KILL, pod, kill=kill))
        super().remove(dropped)


class _ForgetsProbeGrace(Terminator):
    """Does not ask why a container is killed."""

    def base_grace(self, kill: ContainerKill, container: AnyContainer) -> int:
        return base_grace(kill.pod, container, KillReason.UNKNOWN)


class _HookWithoutTime(Terminator):
    """Runs a preStop hook though there is no time for it."""

    def runs_hook(self, grace: int) -> bool:
        return grace >= 0


class _AllAtOnce(Terminator):
    """Stops the sandboxes together with the containers."""

    async def kill_pod(
        self, pod: Pod, kills: Sequence[ContainerKill], sandbox_ids: Sequence[str]
    ) -> tuple[ActionResult, ...]:
        containers, sandboxes = await asyncio.gather(
            self.kill_containers(kills), self.stop_sandboxes(pod, sandbox_ids)
        )
        return (*containers, *sandboxes)


class _OneByOne(Terminator):
    """Stops the containers of a pod one after another."""

    async def kill_containers(
        self, kills: Sequence[ContainerKill], order: TerminationOrder | None = None
    ) -> Sequence[ActionResult]:
        return [await self.kill_container(kill, order) for kill in kills]


class _WaitsOutTheGrace(Terminator):
    """Goes on after a preStop hook only when the grace is over."""

    async def _within(
        self, limit: int, kill: ContainerKill, container: AnyContainer, handler: LifecycleHandler
    ) -> None:
        began = self._clock.monotonic()
        await super()._within(limit, kill, container, handler)
        await self._clock.sleep(limit - (self._clock.monotonic() - began))


class _WaitsForHooks(Terminator):
    """Waits for a preStop hook as long as it takes."""

    async def _within(
        self, limit: int, kill: ContainerKill, container: AnyContainer, handler: LifecycleHandler
    ) -> None:
        await super()._within(max(limit, _FOR_EVER), kill, container, handler)


BUGS: tuple[Bug, ...] = (
    Bug(
        "K8S-83916",
        "A second deletion with a shorter grace changes nothing.",
        lambda: Parts(effective_grace=_first_grace_holds),
        ("WORK-07", "WORK-09"),
        ("K22", "K8S-113717", "K8S-113882", "K8S-98507"),
    ),
    Bug(
        "K8S-104743",
        "A static pod is stopped without its grace.",
        lambda: Parts(effective_grace=_no_grace_for_static),
        ("WORK-33",),
    ),
    Bug(
        "K8S-49626",
        "A pod that its source dropped is stopped without its grace.",
        lambda: Parts(pod_handlers=_NoGraceWhenRemoved),
        ("WORK-33",),
        ("K8S-14266",),
    ),
    Bug(
        "K8S-60631",
        "Every container is stopped with the least grace, whatever was asked for.",
        lambda: Parts(runtime=RuntimeParts(stop_timeout=_least_timeout)),
        ("TERM-03",),
    ),
    Bug(
        "K8S-119377",
        "A container that failed its probe gets the grace of its pod, not that of the probe.",
        lambda: Parts(runtime=RuntimeParts(terminator=_ForgetsProbeGrace)),
        ("TERM-03",),
        ("K08",),
    ),
    Bug(
        "K8S-49449",
        "With a grace of 0 a preStop hook is begun all the same.",
        lambda: Parts(runtime=RuntimeParts(terminator=_HookWithoutTime)),
        ("TERM-07",),
        ("K07",),
    ),
    Bug(
        "K8S-9764",
        "The sandbox is stopped while containers are still stopping.",
        lambda: Parts(runtime=RuntimeParts(terminator=_AllAtOnce)),
        ("TERM-01",),
        ("K11",),
    ),
    Bug(
        "K8S-53727",
        "The containers of a pod are stopped one after another.",
        lambda: Parts(runtime=RuntimeParts(terminator=_OneByOne)),
        ("TERM-02", "HOOK-14"),
        ("K10",),
    ),
    Bug(
        "K8S-45140",
        "A preStop hook that has ended is followed by the rest of the grace, and only then by the stop.",
        lambda: Parts(runtime=RuntimeParts(terminator=_WaitsOutTheGrace)),
        ("HOOK-05",),
        ("K8S-24695",),
    ),
    Bug(
        "K8S-8768",
        "A preStop hook that does not end holds up the stop for ever.",
        lambda: Parts(runtime=RuntimeParts(terminator=_WaitsForHooks)),
        ("TERM-06",),
        ("K8S-127339",),
    ),
)
