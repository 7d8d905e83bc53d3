"""A decision table: rows are tried from the top, the first that fits decides, and each says why."""

from collections import Counter
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Generic, TypeVar

S = TypeVar("S")
"""What decides."""
T = TypeVar("T")
"""What is decided."""

taken: Counter[Hashable] = Counter()
"""How often each row of any table has decided in this process; for the coverage of the tables."""


@dataclass(frozen=True, slots=True, eq=False)
class Row(Generic[S, T]):
    """Where `when` holds, `then` is what is decided."""

    name: str
    when: Callable[[S], bool]
    then: T
    why: str


class Table(Generic[S, T]):
    """The rows; the last fits whatever no other does."""

    def __init__(self, *rows: Row[S, T], remembered: int = 0) -> None:
        """`remembered` is how many answers are kept: for what is asked often and can be hashed."""
        self._rows = rows
        self._find: Callable[[S], Row[S, T]] = (
            lru_cache(remembered)(self._first) if remembered else self._first
        )

    def __iter__(self) -> Iterator[Row[S, T]]:
        return iter(self._rows)

    def row(self, seen: S) -> Row[S, T]:
        """The row that decides."""
        row = self._find(seen)
        taken[row] += 1
        return row

    def decide(self, seen: S) -> T:
        """What the row that decides says."""
        return self.row(seen).then

    def _first(self, seen: S) -> Row[S, T]:
        for row in self._rows:
            if row.when(seen):
                return row
        raise LookupError(f"no row fits {seen}")
