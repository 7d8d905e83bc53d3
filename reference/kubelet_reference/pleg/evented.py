"""The evented PLEG: it receives changes instead of looking for them (PLEG-14 to PLEG-16, KEP-3386).

The runtime's stream of events brings each change with what is true of the pod right then, so the cache is
written without asking. The runtime is still listed every five minutes, in case something was missed, and at
once whenever the stream breaks. A stream that broke five times is no longer used: from then on the runtime is
listed every second, as if it streamed nothing.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping
from typing import Protocol

import grpc

from kubelet_reference.cri.container_events import NewsKind, PodNews, with_news
from kubelet_reference.cri.errors import wrapped_text
from kubelet_reference.pleg.cache import PodCache
from kubelet_reference.pleg.generic import SLOW, USUAL, Happening, Pleg, PodLifecycleEvent
from kubelet_reference.util.ports import Clock

TRIES = 5
"""How often the stream may break before the kubelet no longer uses it (PLEG-15)."""
TIME_SECONDS = 5.0
"""How often the cache is declared up to date while no event arrives (PLEG-14)."""
MEANS: Mapping[NewsKind, tuple[Happening, ...]] = {
    NewsKind.CREATED: (),
    NewsKind.STARTED: (Happening.STARTED,),
    NewsKind.STOPPED: (Happening.DIED,),
    NewsKind.DELETED: (Happening.DIED, Happening.REMOVED),
}
"""What the sync loop gets; that something was created only changes the cache."""

_log = logging.getLogger("kubelet_reference.evented_pleg")


class NewsSource(Protocol):
    """The source of the runtime's events."""

    def container_events(self) -> AsyncIterator[PodNews]:
        """Each event as it happens; raises `grpc.RpcError` when the stream breaks."""
        ...


class EventedPleg:
    """Receives the runtime's events; `pleg` lists seldom, or every second where there is no stream."""

    def __init__(self, pleg: Pleg, runtime: NewsSource, cache: PodCache, clock: Clock) -> None:
        self._pleg = pleg
        self._runtime = runtime
        self._cache = cache
        self._clock = clock
        self._reported: dict[str, frozenset[str]] = {}
        """The containers of each sandbox, by id, as reported last."""
        self._newest: dict[str, int] = {}
        """The time of each pod's last event, by the runtime's clock."""

    async def run(self) -> None:
        """Receive events until that fails for good, and list the runtime from then on."""
        self._pleg.pace = SLOW
        async with asyncio.TaskGroup() as tasks:
            slow = [tasks.create_task(self._pleg.run()), tasks.create_task(self._keep_time())]
            await self.listen()
            for task in slow:
                task.cancel()
            self._fall_back()
            tasks.create_task(self._pleg.run())

    async def listen(self) -> None:
        """Take events; after each break of the stream list what was missed (PLEG-15)."""
        for number in range(1, TRIES + 1):
            try:
                async for news in self._runtime.container_events():
                    self.take(news)
            except grpc.RpcError as error:
                _log.warning("container events broke off (%d of %d): %s", number, TRIES, wrapped_text(error))
            await self._look()

    async def _look(self) -> None:
        """See what may have been missed."""
        await self._pleg.relist()

    def _fall_back(self) -> None:
        """List the runtime as often as if it streamed nothing (K8S-129827)."""
        self._pleg.pace = USUAL

    async def _keep_time(self) -> None:
        """Let workers of pods without events go on: the cache says that nothing happened (PLEG-06).

        Not during a relist: what the stream did not report is not in the cache yet.
        """
        while True:
            await self._clock.sleep(TIME_SECONDS)
            if self._pleg.is_up_to_date:
                self._cache.update_time(self._clock.monotonic())

    def take(self, news: PodNews) -> None:
        """Write the event into the cache and pass it on, unless something newer is known (PLEG-16)."""
        if self.is_late(news):
            return
        known = self._cache.get(news.uid)
        own = self._reported.get(news.sandbox.id, frozenset())
        records = with_news(known, news, own.__contains__)
        self._remember(news)
        if records.sandboxes or records.containers:
            self._cache.set(news.uid, self._pleg.with_ips(records), self._moment(news))
        else:
            self._newest.pop(news.uid, None)
            self._cache.delete(news.uid)
        for kind in MEANS[news.kind]:
            self._pleg.deliver(PodLifecycleEvent(news.uid, kind, news.record_id))

    def is_late(self, news: PodNews) -> bool:
        """Whether something newer is known of the pod: this must not overwrite it (K8S-123087)."""
        is_older = self._newest.get(news.uid, 0) > news.created_at
        return is_older or self._cache.is_older(news.uid, self._moment(news))

    def _moment(self, news: PodNews) -> float:
        """When it happened, in seconds of the kubelet's clock, and never later than now."""
        return self._clock.monotonic() - max(0.0, (self._clock.wall_ns() - news.created_at) / 1e9)

    def _remember(self, news: PodNews) -> None:
        self._newest[news.uid] = news.created_at
        if news.sandbox_is_gone:
            self._reported.pop(news.sandbox.id, None)
        else:
            self._reported[news.sandbox.id] = frozenset(one.id for one in news.containers)
