"""Bugs of the evented PLEG: what it makes of events, and of a stream that breaks."""

from __future__ import annotations

from kubelet_bugs.bug import Bug
from kubelet_reference.evented_pleg import EventedPleg
from kubelet_reference.parts import Parts
from kubelet_reference.pleg import USUAL
from kubelet_reference.pod_news import PodNews


class _LooksAllTheSame(EventedPleg):
    """Hears of every change, and lists the runtime each second for all that."""

    async def listen(self) -> None:
        self._pleg.pace = USUAL
        await super().listen()


class _LetsItGo(EventedPleg):
    """Does not look what it has missed while the stream was broken."""

    async def _look(self) -> None:
        """Wait for the next relist, whenever that is."""


class _StaysSlow(EventedPleg):
    """Gives the stream up, and goes on listing the runtime every five minutes."""

    def _fall_back(self) -> None:
        """The pace stays what it was."""


class _AsItComes(EventedPleg):
    """Takes what is told last for the newest."""

    def is_late(self, news: PodNews) -> bool:
        return False

    def _moment(self, news: PodNews) -> float:
        return self._clock.monotonic()


BUGS: tuple[Bug, ...] = (
    Bug(
        "MUT-PLEG-14",
        "The runtime is listed each second although it tells what happens by itself.",
        lambda: Parts(evented_pleg=_LooksAllTheSame),
        ("PLEG-14",),
    ),
    Bug(
        "MUT-PLEG-15",
        "What happened while the stream of events was broken is not looked for.",
        lambda: Parts(evented_pleg=_LetsItGo),
        ("PLEG-15",),
    ),
    Bug(
        "K8S-129827",
        "After the stream of events was given up the runtime is still listed every five minutes only.",
        lambda: Parts(evented_pleg=_StaysSlow),
        ("PLEG-15",),
    ),
    Bug(
        "K8S-123087",
        "An event that comes late overwrites what a newer one has told.",
        lambda: Parts(evented_pleg=_AsItComes),
        ("PLEG-16",),
        ("K8S-122721", "K8S-121349"),
    ),
)
