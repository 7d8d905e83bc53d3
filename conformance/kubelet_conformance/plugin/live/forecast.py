"""How long a run on wall time will take, by how long its scenarios took on virtual time."""

import heapq
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

NODE_SECONDS = 3.0
"""What a node takes beside its scenarios: its kubelet starts, and what it made is removed."""
_NODE_CPU_SECONDS = 1.0
_SCENARIO_CPU_SECONDS = 0.4
_IDLE_CPU_SHARE = 0.04
"""What a start, a scenario and each second of a kubelet take of a processor, that of the fakes included."""
_NODES_A_SHARED_ONE = 5
"""One of so many nodes is shared."""


@dataclass(frozen=True, slots=True)
class Forecast:
    """Expects this number of `nodes` side by side, and `concurrency` scenarios at a time on a shared one."""

    nodes: int
    concurrency: int
    processors: int

    @property
    def shared_nodes(self) -> int:
        """How many of the nodes scenarios share."""
        return max(1, self.nodes // _NODES_A_SHARED_ONE)

    def seconds(self, nodes: Iterable[Sequence[float]]) -> float:
        """How long these nodes take, each by the seconds of its scenarios, in the order of their starts."""
        busy = [scenarios for scenarios in nodes if scenarios]
        whole = [NODE_SECONDS + _last_end(scenarios, self.concurrency) for scenarios in busy]
        cpu = len(busy) * _NODE_CPU_SECONDS + sum(whole) * _IDLE_CPU_SHARE
        cpu += sum(map(len, busy)) * _SCENARIO_CPU_SECONDS
        return max(_last_end(whole, self.nodes), cpu / self.processors)


def duration(seconds: float) -> str:
    """A duration in words, rounded up."""
    return f"{math.ceil(seconds)} s" if seconds < 2 * 60 else f"{math.ceil(seconds / 60)} min"


def _last_end(durations: Iterable[float], places: int) -> float:
    """When all are done that are begun in this order, each as soon as one of the places is free."""
    ends = [0.0] * places
    for each in durations:
        heapq.heapreplace(ends, ends[0] + each)
    return max(ends)
