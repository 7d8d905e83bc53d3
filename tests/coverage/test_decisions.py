"""Decision tables as Markdown."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Flag, StrEnum, auto
from typing import NamedTuple

import pytest
from decision_pages import decisions_page, table

from kubelet_conformance.campaigns.coverage.decisions import suite_tables
from kubelet_conformance.targets.in_process.decision_tables import reference_tables


class Step(StrEnum):
    """What may be done."""

    GO_ON = "go on"


class Does(Flag):
    """What is done."""

    NOTHING = 0
    START = auto()
    KILL_IT = auto()


@dataclass(frozen=True)
class Row:
    """A row with a condition."""

    row: str
    when: Callable[[int], bool]
    step: Step
    notes: tuple[str, ...] = ()
    never: str = ""


def is_small(number: int) -> bool:
    """The number is below ten."""
    return number < 10


class Pair(NamedTuple):
    """A row without a condition."""

    kind: str
    counts: object


def test_conditions_are_shown() -> None:
    """A lambda is shown as its expression, a function by its docstring; an empty column is left out."""
    rows = (
        Row("A1", lambda n: n > 3 and n | 1 > 5, Step.GO_ON, ("one", "two")),
        Row("A2", is_small, Step.GO_ON),
        Row("A3", lambda _: True, Step.GO_ON),
    )

    assert table(rows).splitlines() == [
        "| row | when | step | notes |",
        "| --- | --- | --- | --- |",
        "| A1 | `n > 3 and n \\| 1 > 5` | go on | one, two |",
        "| A2 | The number is below ten | go on |  |",
        "| A3 | otherwise | go on |  |",
    ]


def test_named_tuples_are_rows_too() -> None:
    """Any named fields do; what is no row is refused."""
    assert table([Pair("init_one", counts=True)]).splitlines()[2] == "| init\\_one | yes |"
    with pytest.raises(TypeError, match="int is no row"):
        table([1])


def test_members_are_shown_as_words() -> None:
    """Members joined are shown together; none of them is an empty cell."""
    rows = (Pair("a", Does.START | Does.KILL_IT), Pair("b", Does.NOTHING))

    assert table(rows).splitlines()[2:] == ["| a | start and kill it |", "| b |  |"]


def test_every_decision_is_on_the_page() -> None:
    """The page shows the tables of the reference and of the suite, which are different objects."""
    page = decisions_page()

    ours = {place: rows for tables in suite_tables().values() for place, rows in tables}
    theirs = {place: rows for tables in reference_tables().values() for place, rows in tables}
    assert all(f"`{place}`" in page for place in (*ours, *theirs))
    assert not {id(row) for rows in ours.values() for row in rows} & {
        id(row) for rows in theirs.values() for row in rows
    }
    assert page.count("| --- |") > len(ours)
