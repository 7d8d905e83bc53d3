"""What every view has in common: judges keep notes about it."""

from __future__ import annotations

import math
from typing import Any, Protocol, TypeVar

N = TypeVar("N")


class _Note(Protocol):
    def __call__(self, kind: type[N], /) -> N: ...


class _Notes(dict[type, Any]):
    """One value of each kind, made on first use."""

    def __missing__(self, kind: type[N]) -> N:
        made = self[kind] = kind()
        return made


class Entity:
    """Anything whose life a judge follows; it carries the judges' own notes about it."""

    __slots__ = ("awaited", "born", "note", "owed")

    def __init__(self, *, born: bool) -> None:
        self.born = born
        self.owed: list[Any] = []
        """What the judges still wait for."""
        self.awaited = frozenset[str]()
        """The keys of the records that may put an end to that."""
        self.note: _Note = _Notes().__getitem__
        """The judge's own memory about this entity: one value of each kind, made on first use."""


class Served(Entity):
    """What a worker of the kubelet sees to, one thing after another."""

    __slots__ = ("at_work_t", "worked_t")

    def __init__(self, *, born: bool) -> None:
        super().__init__(born=born)
        self.at_work_t = -math.inf
        """When the kubelet began what it did last without a break: a sync, a kill, or both."""
        self.worked_t = -math.inf
        """When it was last seen to do something of that."""
