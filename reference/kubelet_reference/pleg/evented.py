"""The evented PLEG: receives container events instead of relisting (PLEG-14 to PLEG-16, KEP-3386).

The runtime's stream of events brings each change with what is true of the pod right then, so the cache is
written without asking. The runtime is still listed every five minutes, in case something was missed, and at
once whenever the stream breaks. A stream that broke five times is no longer used: from then on the runtime is
listed every second, as if it streamed nothing.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass

import grpc

from kubelet_reference.api.records import NANOSECONDS
from kubelet_reference.cri.container_events import ContainerEvent, ContainerEventType, with_event
from kubelet_reference.cri.errors import wrapped_text
from kubelet_reference.pleg.cache import PodCache
from kubelet_reference.pleg.generic import SLOW, USUAL, Pleg, PodLifecycleEvent, PodLifeCycleEventType
from kubelet_reference.util.ports import Clock

TRIES = 5
"""How often the stream may break before the kubelet no longer uses it (PLEG-15)."""
TIME_SECONDS = 5.0
"""How often the cache is declared up to date while no event arrives (PLEG-14)."""
MEANS: Mapping[ContainerEventType, tuple[PodLifeCycleEventType, ...]] = {
    ContainerEventType.CREATED: (),
    ContainerEventType.STARTED: (PodLifeCycleEventType.STARTED,),
    ContainerEventType.STOPPED: (PodLifeCycleEventType.DIED,),
    ContainerEventType.DELETED: (PodLifeCycleEventType.DIED, PodLifeCycleEventType.REMOVED),
}
"""What the sync loop gets; that something was created only changes the cache."""

_log = logging.getLogger("kubelet_reference.evented_pleg")


@dataclass(eq=False)
class EventedPleg:
    """Receives the runtime's events; `pleg` lists seldom, or every second where there is no stream."""

    pleg: Pleg
    container_events: Callable[[], AsyncIterator[ContainerEvent]]
    cache: PodCache
    clock: Clock

    def __post_init__(self) -> None:
        self._reported: dict[str, frozenset[str]] = {}
        """The containers of each sandbox, by id, as reported last."""
        self._newest: dict[str, int] = {}
        """The time of each pod's last event, by the runtime's clock."""

    async def run(self) -> None:
        """Receive events until that fails for good, and list the runtime from then on."""
        self.pleg.pace = SLOW
        async with asyncio.TaskGroup() as tasks:
            slow = [tasks.create_task(self.pleg.run()), tasks.create_task(self._keep_time())]
            await self.listen()
            for task in slow:
                task.cancel()
            self._fall_back()
            tasks.create_task(self.pleg.run())

    async def listen(self) -> None:
        """Take events; after each break of the stream list what was missed (PLEG-15)."""
        for _ in range(TRIES):
            try:
                async for event in self.container_events():
                    self.take(event)
            except grpc.RpcError as error:
                _log.warning("container events broke off: %s", wrapped_text(error))
            await self._look()

    async def _look(self) -> None:
        """See what may have been missed."""
        await self.pleg.relist()

    def _fall_back(self) -> None:
        """List the runtime as often as if it streamed nothing (K8S-129827)."""
        self.pleg.pace = USUAL

    async def _keep_time(self) -> None:
        """Let workers of pods without events go on: the cache says that nothing happened (PLEG-06).

        Not during a relist: what the stream did not report is not in the cache yet.
        """
        while True:
            await self.clock.sleep(TIME_SECONDS)
            if self.pleg.is_up_to_date:
                self.cache.update_time(self.clock.monotonic())

    def take(self, event: ContainerEvent) -> None:
        """Write the event into the cache and pass it on, unless something newer is known (PLEG-16)."""
        if self.is_late(event):
            return
        known = self.cache.get(event.uid)
        own = self._reported.get(event.sandbox.id, frozenset())
        records = with_event(known, event, own.__contains__)
        self._remember(event)
        if records.sandboxes or records.containers:
            self.cache.set(event.uid, self.pleg.with_ips(records), self._moment(event))
        else:
            self._newest.pop(event.uid, None)
            self.cache.delete(event.uid)
        for kind in MEANS[event.kind]:
            self.pleg.deliver(PodLifecycleEvent(event.uid, kind, event.record_id))

    def is_late(self, event: ContainerEvent) -> bool:
        """Whether something newer is known of the pod: this must not overwrite it (K8S-123087)."""
        is_older = self._newest.get(event.uid, 0) > event.created_at
        return is_older or self.cache.is_older(event.uid, self._moment(event))

    def _moment(self, event: ContainerEvent) -> float:
        """When it happened, in seconds of the kubelet's clock, and never later than now."""
        return self.clock.monotonic() - max(0.0, (self.clock.wall_ns() - event.created_at) / NANOSECONDS)

    def _remember(self, event: ContainerEvent) -> None:
        self._newest[event.uid] = event.created_at
        if event.sandbox_is_gone:
            self._reported.pop(event.sandbox.id, None)
        else:
            self._reported[event.sandbox.id] = frozenset(one.id for one in event.containers)
