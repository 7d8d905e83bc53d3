"""The decision tables of the suite and of the reference, as a page of the guide.

A table has one line a row, with the conditions as they stand in the code.
"""

import ast
import dataclasses
import inspect
import linecache
from collections.abc import Callable, Collection, Iterator, Sequence
from enum import Enum, Flag
from functools import cache
from types import CodeType
from typing import cast

from kubelet_conformance.campaigns.coverage.decisions import suite_tables
from kubelet_conformance.targets.in_process.decision_tables import reference_tables

_PAGE = """# Decision tables

What a kubelet decides without looking anywhere else is written as tables, one condition
a row; the first row that holds decides. The reference decides by its own, and the suite
judges by its own, so that a mistake in one is no mistake in the other. Each row is a test
case of its own, and some scenario makes it decide.
"""


def decisions_page() -> str:
    """The page: for each decision the rows of the reference and those of the suite."""
    return "\n".join([_PAGE, *_sections()])


def _sections() -> Iterator[str]:
    reference, suite = reference_tables(), suite_tables()
    for question in {**reference, **suite}:
        yield f"## {question}\n"
        for whose, tables in (("The reference", reference), ("The suite", suite)):
            for place, rows in tables.get(question, ()):
                yield f"{whose}, `{place}`:\n\n{table(rows)}"


def table(rows: Sequence[object]) -> str:
    """The rows, all of one dataclass or named tuple, as a Markdown table with a column for each field.

    A field that no row fills has no column. A condition that is a lambda is shown as its expression, one that
    is a function as the first line of its docstring.
    """
    names = _fields(rows[0])
    cells = [[_shown(getattr(row, name)) for name in names] for row in rows]
    filled = [i for i in range(len(names)) if any(line[i] for line in cells)]
    lines = [[names[i].replace("_", " ") for i in filled], ["---"] * len(filled)]
    lines += [[line[i] for i in filled] for line in cells]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _fields(row: object) -> tuple[str, ...]:
    named = cast("tuple[str, ...] | None", getattr(row, "_fields", None))
    if named is not None:
        return named
    if dataclasses.is_dataclass(row):
        return tuple(field.name for field in dataclasses.fields(row))
    raise TypeError(f"{type(row).__name__} is no row of a table")


def _shown(value: object) -> str:
    match value:
        case None | bool():
            return "yes" if value else ""
        case str():
            return _text(str(value))
        case Enum():
            return _words(value)
        case Collection():
            return ", ".join(_shown(each) or "no" for each in cast("Collection[object]", value))
        case Callable():
            return _condition(cast("Callable[..., object]", value))
        case _:
            return _text(str(value))


def _words(member: Enum) -> str:
    """The names of a member, or of all that are joined in it."""
    joined = tuple(member) if isinstance(member, Flag) else (member,)
    return " and ".join((each.name or "").lower().replace("_", " ") for each in joined)


def _condition(decides: Callable[..., object]) -> str:
    """What a condition says: its expression, or what its docstring begins with."""
    code = cast("CodeType | None", getattr(decides, "__code__", None))
    if code is not None and code.co_name == "<lambda>":
        expression = _expression(code)
        return "otherwise" if expression == "True" else f"`{expression.replace('|', chr(92) + '|')}`"
    docstring = inspect.getdoc(decides)
    return _text(
        docstring.splitlines()[0].rstrip(".") if docstring else getattr(decides, "__name__", "?").strip("_")
    )


def _expression(code: CodeType) -> str:
    """The body of the lambda, found by where it stands."""
    position = next((column for _, _, column, _ in code.co_positions() if column is not None), 0)
    around = [
        node
        for node in ast.walk(_parsed(code.co_filename))
        if isinstance(node, ast.Lambda) and node.lineno == code.co_firstlineno
    ]
    nearest = min(around, key=lambda node: abs(node.body.col_offset - position))
    return ast.unparse(nearest.body)


@cache
def _parsed(path: str) -> ast.Module:
    return ast.parse("".join(linecache.getlines(path)))


def _text(words: str) -> str:
    return " ".join(words.replace("|", "\\|").replace("_", "\\_").replace("*", "\\*").split())
