"""What every view has in common: judges keep notes about it."""

from __future__ import annotations

from typing import Any, Protocol, TypeVar

__all__ = ("Entity",)

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

    __slots__ = ("born", "monitors", "note", "owed")

    def __init__(self, *, born: bool) -> None:
        self.born = born
        self.monitors: dict[int, list[bool]] = {}
        self.owed: list[Any] = []
        """What the judges still wait for."""
        self.note: _Note = _Notes().__getitem__
        """The judge's own memory about this entity: one value of each kind, made on first use."""
