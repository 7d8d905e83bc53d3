"""Stops containers, and pods as a whole.

A pod is stopped from the inside out (TERM-01, SANDBOX-18). All its running containers are stopped in
parallel: for each the event Killing, then its preStop hook, then StopContainer with what is left of the grace
period. When each stop has ended, well or not, the sandboxes are stopped. Nothing is removed: the records stay
for the status, and for the garbage collector.

Sidecars outlive the app containers (SIDECAR-12). Before its StopContainer a sidecar waits for every app
container and for the sidecars after it, and that wait is part of its grace period (SIDECAR-12 to SIDECAR-16).
A container that does not run when the pod is killed delays no other (SIDECAR-16). Regular init containers
wait for nothing and delay no other.
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass

import grpc
from lightkube.models.core_v1 import LifecycleHandler, Pod

from kubelet_reference.api import pods
from kubelet_reference.api.events import Reason
from kubelet_reference.api.pods import AnyContainer
from kubelet_reference.api.results import KillReason
from kubelet_reference.api.sync_result import Action, ActionResult, Failure
from kubelet_reference.cri.errors import is_not_found, wrapped_text
from kubelet_reference.kuberuntime.container.hooks import HookError, Hooks
from kubelet_reference.kuberuntime.container.stop_timeout import base_grace, hook_grace, stop_timeout
from kubelet_reference.kuberuntime.runtime_tools import RuntimeTools
from kubelet_reference.util.versions import Behaviour


class TerminationOrder:
    """Which container waits for which in one kill of a pod; `running` names those that run as it begins."""

    def __init__(self, pod: Pod, running: Iterable[str]) -> None:
        self._ended = {name: asyncio.Event() for name in running}
        self._ahead = self.ahead(pod)

    def ahead(self, pod: Pod) -> dict[str, list[str]]:
        """For each sidecar the containers that have to end before it."""
        apps, names = [one.name for one in pods.containers(pod)], [one.name for one in pods.sidecars(pod)]
        return {name: [*apps, *names[index + 1 :]] for index, name in enumerate(names)}

    async def wait_for_turn(self, name: str, seconds: float) -> None:
        """Wait until all that come before this container have ended, `seconds` at most (SIDECAR-14)."""
        waits = [self._ended[one] for one in self._ahead.get(name, ()) if one in self._ended]
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                for one in waits:
                    await one.wait()

    def ended(self, name: str) -> None:
        """The container has ended: those that wait for it may go on."""
        if name in self._ended:
            self._ended[name].set()


@dataclass(frozen=True, slots=True)
class ContainerKill:
    """A container to stop: why, the text of its event ("" is the usual one), and a grace set from above."""

    pod: Pod
    container_id: str
    name: str
    reason: KillReason = KillReason.UNKNOWN
    message: str = ""
    grace_override: int | None = None


@dataclass(eq=False)
class ContainerKiller:
    """Stops containers and sandboxes; every method returns the outcome and raises nothing."""

    tools: RuntimeTools
    hooks: Hooks
    timeout: Callable[[int, int | None, float, Behaviour], int] = stop_timeout

    async def kill_pod(
        self, pod: Pod, kills: Sequence[ContainerKill], sandbox_ids: Sequence[str]
    ) -> tuple[ActionResult, ...]:
        """Stop containers, then sandboxes, even if a container's stop failed (SANDBOX-26)."""
        containers = await self.kill_containers(kills, self.order(pod, kills))
        return (*containers, *await self.stop_sandboxes(pod, sandbox_ids))

    def order(self, pod: Pod, kills: Sequence[ContainerKill]) -> TerminationOrder | None:
        """Which container waits for which, in a pod with sidecars, from 1.29 on; None otherwise."""
        if not self.tools.behaviour.stops_sidecars_in_order or not pods.has_sidecars(pod):
            return None
        return TerminationOrder(pod, (kill.name for kill in kills))

    async def kill_containers(
        self, kills: Sequence[ContainerKill], order: TerminationOrder | None = None
    ) -> Sequence[ActionResult]:
        """Stop containers, all at one time but for what `order` says (TERM-02, HOOK-14)."""
        return await asyncio.gather(*(self.kill_container(kill, order) for kill in kills))

    async def stop_sandboxes(self, pod: Pod, sandbox_ids: Sequence[str]) -> Sequence[ActionResult]:
        """Stop each sandbox, ready or not, whatever becomes of the others (SANDBOX-04, SANDBOX-19)."""
        return [await self._stop_sandbox(pod, sandbox_id) for sandbox_id in sandbox_ids]

    async def kill_container(
        self, kill: ContainerKill, order: TerminationOrder | None = None
    ) -> ActionResult:
        """Stop one container, its preStop hook first; one that is gone counts as stopped (TERM-10).

        `order` has it wait for its turn; a single container has none to wait for (SIDECAR-15).
        """
        container = pods.container(kill.pod, kill.name)
        if container is None:
            return self._unknown_to_spec(kill)
        base = self.base_grace(kill, container)
        grace = hook_grace(base, kill.grace_override, self.tools.behaviour)
        waited = await self.prepare(kill, container, grace, order)
        timeout = self.timeout(base, kill.grace_override, waited, self.tools.behaviour)
        try:
            await self.tools.client.stop_container(kill.container_id, timeout)
        except grpc.RpcError as error:
            if not self.is_gone(error):
                return _failed_kill(kill, wrapped_text(error))
        if order is not None:
            order.ended(kill.name)
        return ActionResult(Action.KILL_CONTAINER, kill.name)

    async def prepare(
        self, kill: ContainerKill, container: AnyContainer, grace: int, order: TerminationOrder | None
    ) -> float:
        """All that comes before StopContainer; how much of the grace it took, in seconds."""
        began = self.tools.clock.monotonic()
        self.report_killing(kill)
        await self._pre_stop(kill, container, grace)
        if order is not None:
            await order.wait_for_turn(kill.name, grace - (self.tools.clock.monotonic() - began))
        return self.tools.clock.monotonic() - began

    def is_gone(self, error: grpc.RpcError) -> bool:
        """Whether a stop failed since there is nothing left to stop (TERM-10)."""
        return is_not_found(error)

    def report_killing(self, kill: ContainerKill) -> None:
        """The event comes first of all, and does not wait for a turn either (SIDECAR-27)."""
        text = kill.message or f"Stopping container {kill.name}"
        self.tools.recorder.normal(kill.pod, Reason.KILLING, text, kill.name, container_id=kill.container_id)

    def base_grace(self, kill: ContainerKill, container: AnyContainer) -> int:
        """The grace period before anything is taken off it (TERM-03)."""
        return base_grace(kill.pod, container, kill.reason)

    async def _pre_stop(self, kill: ContainerKill, container: AnyContainer, limit: int) -> None:
        """Run the preStop hook, `limit` seconds at most; its failure changes nothing (HOOK-05, HOOK-06)."""
        handler = container.lifecycle.preStop if container.lifecycle else None
        if handler is not None and self.runs_hook(limit):
            await self._within(limit, kill, container, handler)

    def runs_hook(self, grace: int) -> bool:
        """Whether there is time for a preStop hook: none at a grace of 0 (TERM-07)."""
        return grace > 0

    async def _within(
        self, limit: int, kill: ContainerKill, container: AnyContainer, handler: LifecycleHandler
    ) -> None:
        """Wait for the hook as long as `limit` allows, then leave it to itself (TERM-06)."""
        hook = self.tools.spawn(self._run_hook(kill, container, handler))
        await asyncio.wait((hook,), timeout=limit)

    async def _run_hook(
        self, kill: ContainerKill, container: AnyContainer, handler: LifecycleHandler
    ) -> None:
        """Run the hook to its end; a failure is reported even after the wait for it is over (HOOK-06)."""
        try:
            await self.hooks.run(kill.pod, container, kill.container_id, handler)
        except HookError:
            # The event does not have what the hook printed: that may be secret (EVENTS-04).
            self.tools.recorder.warning(
                kill.pod, Reason.FAILED_PRE_STOP_HOOK, "PreStopHook failed", kill.name
            )

    def _unknown_to_spec(self, kill: ContainerKill) -> ActionResult:
        """What the spec does not have cannot be stopped by it (TERM-13)."""
        what = (
            f"failed to get containerSpec {kill.name} (id={kill.container_id}) in pod {pods.name(kill.pod)}"
        )
        return _failed_kill(kill, f"{what} when killing container for reason {kill.message}")

    async def _stop_sandbox(self, pod: Pod, sandbox_id: str) -> ActionResult:
        try:
            await self.tools.client.stop_sandbox(sandbox_id)
        except grpc.RpcError as error:
            if not self.is_gone(error):
                return ActionResult(
                    Action.KILL_SANDBOX, pods.uid(pod), Failure.KILL_SANDBOX, wrapped_text(error)
                )
        return ActionResult(Action.KILL_SANDBOX, pods.uid(pod))


def _failed_kill(kill: ContainerKill, text: str) -> ActionResult:
    return ActionResult(Action.KILL_CONTAINER, kill.name, Failure.KILL_CONTAINER, text)
