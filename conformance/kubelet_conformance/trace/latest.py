"""A dictionary that knows only what was put into it last."""

from __future__ import annotations

from collections import OrderedDict
from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")
_REMEMBERED = 10_000


class Latest(OrderedDict[K, V]):
    """What was put in longest ago is forgotten first, so that notes about names do not grow for ever."""

    def __setitem__(self, key: K, value: V) -> None:
        super().__setitem__(key, value)
        self.move_to_end(key)
        if len(self) > _REMEMBERED:
            self.popitem(last=False)
