"""Bugs of the evented PLEG: what it makes of events, and of a stream that breaks."""

from __future__ import annotations

from kubelet_bugs.bug import bug
from kubelet_reference.evented_pleg import EventedPleg
from kubelet_reference.pleg import USUAL
from kubelet_reference.pod_news import PodNews


@bug("MUT-PLEG-14", breaks="PLEG-14")
class LooksAllTheSame(EventedPleg):
    """The runtime is listed each second although it tells what happens by itself."""

    async def listen(self) -> None:
        self._pleg.pace = USUAL
        await super().listen()


@bug("MUT-PLEG-15", breaks="PLEG-15")
class LetsItGo(EventedPleg):
    """What happened while the stream of events was broken is not looked for."""

    async def _look(self) -> None:
        """Wait for the next relist, whenever that is."""


@bug("K8S-129827", breaks="PLEG-15")
class StaysSlow(EventedPleg):
    """After the stream of events was given up the runtime is still listed every five minutes only."""

    def _fall_back(self) -> None:
        """The pace stays what it was."""


@bug("K8S-123087", breaks="PLEG-16", aliases=("K8S-122721", "K8S-121349"))
class AsItComes(EventedPleg):
    """An event that comes late overwrites what a newer one has told."""

    def is_late(self, news: PodNews) -> bool:
        return False

    def _moment(self, news: PodNews) -> float:
        return self._clock.monotonic()
