"""Decision tables: the rows are tried from the top, and the first that fits decides."""

from collections import Counter
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

S = TypeVar("S")
"""What decides."""
T = TypeVar("T")
"""What is decided."""
R = TypeVar("R", bound="Row[Any, Any]")

taken: Counter[Hashable] = Counter()
"""How often each row of any table has decided in this process; for the coverage of the tables."""


@dataclass(frozen=True, slots=True, eq=False)
class Row(Generic[S, T]):
    """Where `when` holds, `then` is what is decided."""

    name: str
    when: Callable[[S], bool]
    then: T


class Table(Generic[S, R]):
    """The rows, all of one class."""

    def __init__(self, *rows: R) -> None:
        self._rows = rows

    def __iter__(self) -> Iterator[R]:
        return iter(self._rows)

    def fitting(self, seen: S) -> Iterator[R]:
        """The rows that fit, from the top; the first decides, and those after it only where it lets them."""
        for row in self._rows:
            if row.when(seen):
                taken[row] += 1
                yield row

    def row(self, seen: S) -> R:
        """The row that decides; `LookupError` where none fits."""
        for row in self.fitting(seen):
            return row
        raise LookupError(f"no row fits {seen}")
