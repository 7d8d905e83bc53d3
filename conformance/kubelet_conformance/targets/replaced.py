"""What a bug of the zoo has replaced in the right kubelet or runtime."""

from __future__ import annotations

import inspect
from dataclasses import fields, is_dataclass
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any

from kubelet_conformance.targets.in_process import parts_of, runtime_parts_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kubelet_conformance.targets.stage import Choice

__all__ = ("functions_replaced", "replaced")

_TELLS_NOTHING = frozenset(
    {"__module__", "__qualname__", "__doc__", "__annotations__", "__slots__", "__dict__", "__weakref__"}
    | {"__orig_bases__", "__parameters__", "__firstlineno__", "__static_attributes__"}
)
"""Names in every class that say nothing of what its instances do."""


def functions_replaced(choice: Choice) -> frozenset[CodeType] | None:
    """The functions of the right kubelet and the right runtime in whose place the chosen ones have others.

    As long as none of these is entered, the chosen ones do what the right ones do. None: that cannot be told.
    """
    try:
        return frozenset(
            (
                *replaced(parts_of("reference"), parts_of(choice.kubelet)),
                *replaced(runtime_parts_of("fake"), runtime_parts_of(choice.runtime)),
            )
        )
    except _UntoldError:
        return None


class _UntoldError(Exception):
    """Something else than a function was replaced."""


def replaced(right: object, wrong: object) -> Iterator[CodeType]:
    """The functions of one part that are others in the other, through parts of parts."""
    if right is wrong:
        return
    if isinstance(right, type) and isinstance(wrong, type) and issubclass(wrong, right):
        yield from _overridden(right, wrong)
    elif is_dataclass(right) and type(right) is type(wrong):
        for each in fields(right):
            yield from replaced(getattr(right, each.name), getattr(wrong, each.name))
    elif isinstance(right, FunctionType):
        yield right.__code__
    elif right != wrong:
        raise _UntoldError


def _overridden(right: type, wrong: type) -> Iterator[CodeType]:
    """The functions of a class for which the other has its own; what only the other has, nobody calls."""
    for base in wrong.__mro__:
        if base in right.__mro__:
            continue
        for name in vars(base).keys() - _TELLS_NOTHING:
            was = inspect.getattr_static(right, name, None)
            if was is None and not name.startswith("__"):
                continue
            yield _code(was)


def _code(member: Any) -> CodeType:  # noqa: ANN401 - whatever a class may hold
    """What runs where this member of a class is used."""
    function = getattr(member, "fget", None) or getattr(member, "__func__", member)
    if not isinstance(function, FunctionType):
        raise _UntoldError
    return function.__code__
