"""What is changed in the reference: operators of cosmic-ray, and three more of its kind.

cosmic-ray has none for a removed statement, a lost result or a text. They are written here in its terms: an
operator names the places where it changes a node of parso's tree, and changes one of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from importlib import import_module
from typing import Any, Protocol

Span = tuple[tuple[int, int], tuple[int, int]]


class Node(Protocol):
    """A node of parso's tree, whose own types say less. Leaves have a value, all others have children."""

    type: str
    parent: Node | None
    children: list[Node]
    value: str
    prefix: str
    start_pos: tuple[int, int]
    end_pos: tuple[int, int]

    def get_code(self, *, include_prefix: bool = True) -> str:
        """The code of it, with the white space and the comments before it unless that is left out."""
        ...

    def get_first_leaf(self) -> Node:
        """Its first leaf."""
        ...


class Operator(Protocol):
    """An operator as cosmic-ray defines it."""

    def mutation_positions(self, node: Node) -> Iterable[Span]:
        """Where it changes this node: first and last line and column of each change."""
        ...

    def mutate(self, node: Node, index: int) -> Node:
        """The node with the change of this number."""
        ...


_COMPARISONS = (
    ("Eq", "NotEq"),
    ("NotEq", "Eq"),
    ("Lt", "LtE"),
    ("Lt", "GtE"),
    ("LtE", "Lt"),
    ("LtE", "Gt"),
    ("Gt", "GtE"),
    ("Gt", "LtE"),
    ("GtE", "Gt"),
    ("GtE", "Lt"),
    ("Is", "IsNot"),
    ("IsNot", "Is"),
)
"""The opposite of each comparison, and its neighbour where it has a boundary."""
_OF_COSMIC_RAY = {
    "comparison": [f"ReplaceComparisonOperator_{old}_{new}" for old, new in _COMPARISONS],
    "boolean": [
        "AddNot",
        "ReplaceUnaryOperator_Delete_Not",
        "ReplaceTrueWithFalse",
        "ReplaceFalseWithTrue",
        "ReplaceAndWithOr",
        "ReplaceOrWithAnd",
    ],
    "constant": ["NumberReplacer"],
}
_REMOVED = {"expr_stmt", "atom_expr", "await", "raise_stmt", "del_stmt"}
"""Statements that can be left out: assignments, calls, awaits, raises and deletions."""


class EmptyText:
    """Replaces a text by an empty one; one with a space in it is a message."""

    def mutation_positions(self, node: Node) -> Iterator[Span]:
        """Each text that is no message and no docstring."""
        is_text = node.type == "string" and node.value[0] in "'\"" and len(node.value) > len("''")
        if (
            is_text
            and " " not in node.value
            and node.parent is not None
            and node.parent.type != "simple_stmt"
        ):
            yield node.start_pos, node.end_pos

    def mutate(self, node: Node, index: int) -> Node:
        """The empty text."""
        del index
        return _code('""', node)


class LostResult:
    """Lets a function return None; where it returns False that makes no difference."""

    def mutation_positions(self, node: Node) -> Iterator[Span]:
        """Each `return` of something else."""
        is_return = node.type == "return_stmt"
        if is_return and node.children[1].get_code(include_prefix=False) not in {"None", "False"}:
            yield node.start_pos, node.end_pos

    def mutate(self, node: Node, index: int) -> Node:
        """The same `return` of None."""
        del index
        return _code("return None", node)


class RemovedStatement:
    """Leaves a statement out."""

    def mutation_positions(self, node: Node) -> Iterator[Span]:
        """Each statement that does something."""
        if node.type == "simple_stmt" and _does_something(node.children[0]):
            yield node.start_pos, node.end_pos

    def mutate(self, node: Node, index: int) -> Node:
        """`pass` in its place."""
        del index
        node.children[0] = _code("pass", node.children[0])
        return node


def _does_something(statement: Node) -> bool:
    """Whether it is no declaration of a type either."""
    if statement.type not in _REMOVED:
        return False
    declared = statement.children[1]
    return declared.type != "annassign" or "=" in declared.get_code()


def _code(text: str, instead_of: Node) -> Node:
    """This code with the white space of what it replaces."""
    return parsed(f"{instead_of.get_first_leaf().prefix}{text}")


def parsed(source: str) -> Node:
    """The tree of a source."""
    tree: Node = _untyped("parso", "parse")(source)
    return tree


@cache
def operators() -> dict[str, tuple[str, Operator]]:
    """All operators by name, each with its kind."""
    get_operator = _untyped("cosmic_ray.plugins", "get_operator")
    found: dict[str, tuple[str, Operator]] = {}
    for kind, names in _OF_COSMIC_RAY.items():
        for name in names:
            found[name.removeprefix("ReplaceComparisonOperator_")] = kind, get_operator(f"core/{name}")()
    found["EmptyText"] = "constant", EmptyText()
    found["LostResult"] = "return", LostResult()
    found["RemovedStatement"] = "statement", RemovedStatement()
    return found


def mutated(source: str, operator: Operator, occurrence: int) -> str:
    """The source with one change; raises LookupError where there is none of this number."""
    changed: str | None = _untyped("cosmic_ray.mutating", "mutate_code")(source, operator, occurrence)
    if changed is None:
        raise LookupError(f"no change {occurrence} by {type(operator).__name__}")
    return changed


def _untyped(module: str, name: str) -> Any:
    return vars(import_module(module))[name]
