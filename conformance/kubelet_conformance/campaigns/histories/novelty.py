"""Chooses among the histories that were drawn those that hold what few before them held.

To draw a history costs a tenth of what it costs to play and judge it. So more are drawn than are played, and
those are taken that bring something new: values of a pod's fields, one step after another, and a fault beside
a step.
"""

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any, cast

import msgspec

from kubelet_conformance.campaigns.histories.history import History

DRAWN_FOR_ONE = 4
"""So many histories are drawn for each that is played."""
_STEPS_ALIKE = 5
"""A play costs as much as so many steps before its first one."""


class Novelty:
    """What the histories that were chosen so far hold."""

    def __init__(self) -> None:
        self._seen = Counter[Hashable]()

    def chosen(self, histories: Iterable[History], count: int) -> Iterator[History]:
        """So many of them, each time the one with most that is rare, measured by what it costs."""
        left = [(each, traits_of(each)) for each in histories]
        for _ in range(min(count, len(left))):
            best = max(range(len(left)), key=lambda place: self._worth(*left[place]))
            history, traits = left.pop(best)
            self._seen.update(traits)
            yield history

    def _worth(self, history: History, traits: frozenset[Hashable]) -> float:
        rare = sum(1 / (1 + self._seen[each]) ** 2 for each in traits)
        return rare / (_STEPS_ALIKE + len(history.steps))


def traits_of(history: History) -> frozenset[Hashable]:
    """What a history holds: values of fields, steps one after another, and each fault beside each step."""
    steps: list[dict[str, Any]] = msgspec.to_builtins(history.steps)
    names = [" ".join(str(each.get(key, "")) for key in ("step", "rpc", "effect")) for each in steps]
    faults = [name for name, each in zip(names, steps, strict=True) if "rpc" in each]
    return frozenset(
        [
            *(("value", value) for each in steps for value in _values(each)),
            *(("follows", each) for each in pairwise(names)),
            *(("beside", fault, name) for fault in faults for name in names),
        ]
    )


def _values(of: object, path: str = "") -> Iterator[str]:
    """Each field that has a value, with the value unless it is a number."""
    if isinstance(of, dict):
        for name, value in cast("dict[str, object]", of).items():
            yield from _values(value, f"{path}.{name}")
    elif isinstance(of, (list, tuple)):
        for each in cast("Sequence[object]", of):
            yield from _values(each, path)
    else:
        yield path if type(of) in {int, float} else f"{path}={of}"
