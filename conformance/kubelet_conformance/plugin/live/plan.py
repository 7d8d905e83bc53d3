"""Which scenarios are played, on which nodes and in which order, and how long that takes."""

from bisect import bisect_right
from collections import deque
from collections.abc import Iterable, Sequence

from kubelet_conformance.plugin.live.dry_run import Place, Placement
from kubelet_conformance.plugin.live.forecast import NODE_SECONDS, Forecast, duration
from kubelet_conformance.reports.safe import counted

QUICK_SECONDS = 60.0
"""The time of --quick."""
_LONG_SHARE = 2 / 3
"""Of the time of nodes that are not shared: with less the last node is long, with more starts come late."""


class Plan:
    """The scenarios of a run on wall time, by name.

    Those that cost least come first if it is `cheapest_first`. Else the longest do, and with them short ones:
    a long scenario waits most of its time, and the start of a kubelet for a short one takes the processor
    meanwhile. The shortest come last, so that all are done at about the same time.
    """

    def __init__(self, *, cheapest_first: bool = False) -> None:
        self.placements: dict[str, Placement] = {}
        self.long: frozenset[str] = frozenset()
        """The scenarios that are left out to save time."""
        self.forecast = Forecast(1, 1, 1)
        self.noun: tuple[str, ...] = ("scenario",)
        """What is played, and the plural where that has no -s."""
        self._cheapest_first = cheapest_first
        self._begun: dict[str, float] = {}
        self._over: set[str] = set()

    @property
    def to_play(self) -> list[str]:
        """The scenarios that are to be played."""
        applicable = (name for name, each in self.placements.items() if each.place is not Place.NOWHERE)
        return [name for name in applicable if name not in self.long]

    def leave_out_what_is_long(self) -> None:
        """Keep the cheapest scenarios, as many as fit into the time of --quick together."""
        names = sorted(self.to_play, key=lambda name: self._seconds([name]))
        fitting = bisect_right(range(len(names)), QUICK_SECONDS, key=lambda i: self._seconds(names[: i + 1]))
        self.long = frozenset(names[fitting:])

    def by_node(self, names: Iterable[str]) -> list[list[str]]:
        """Scenarios by the node that they are played on, in the order in which nodes and scenarios begin."""
        longest_first = not self._cheapest_first
        ordered = sorted(names, key=lambda name: self.placements[name].seconds, reverse=longest_first)
        beside = [name for name in ordered if self.placements[name].place is Place.SHARED]
        alone = [name for name in ordered if self.placements[name].place is Place.ALONE]
        if longest_first:
            alone = self._long_beside_short(alone)
        shared = min(self.forecast.shared_nodes, -(-len(beside) // self.forecast.concurrency))
        return [*(beside[first::shared] for first in range(shared)), *([name] for name in alone)]

    def _long_beside_short(self, ordered: Sequence[str]) -> list[str]:
        """The longest and the shortest: up to any place the long ones take `_LONG_SHARE` of the time.

        As many of the shortest as there are nodes are kept for the end.
        """
        last = ordered[-self.forecast.nodes :]
        left = deque(ordered[: -self.forecast.nodes])
        order = list[str]()
        lead = 0.0
        while left:
            is_long = lead <= 0
            name = left.popleft() if is_long else left.pop()
            order.append(name)
            seconds = NODE_SECONDS + self.placements[name].seconds
            lead += seconds * (1 - _LONG_SHARE if is_long else -_LONG_SHARE)
        return [*order, *last]

    def begin(self, name: str, now: float) -> None:
        """A scenario begins, at this number of seconds."""
        self._begun[name] = now

    def end(self, name: str) -> None:
        """A scenario is over."""
        self._over.add(name)

    @property
    def estimate(self) -> str:
        """How much is to be played and how long that takes, in words."""
        names = self.to_play
        on = f"{counted(len(names), *self.noun)} on {counted(len(self.by_node(names)), 'node')}"
        return f"{on}, about {duration(self._seconds(names))}"

    def time_left(self, now: float) -> str:
        """How long it takes to play what is not over, in words."""
        names = [name for name in self.to_play if name not in self._over]
        return f"about {duration(self._seconds(names, now))} left"

    def _seconds(self, names: Iterable[str], now: float = 0.0) -> float:
        """How long it takes to play these from where they are."""
        nodes = [[self._left(name, now) for name in node] for node in self.by_node(names)]
        return self.forecast.seconds(nodes)

    def _left(self, name: str, now: float) -> float:
        seconds = self.placements[name].seconds
        return max(seconds - (now - self._begun[name]), 0.0) if name in self._begun else seconds
