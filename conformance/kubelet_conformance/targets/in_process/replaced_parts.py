"""What a bug of the zoo has replaced in the right kubelet or runtime, and kubelets made of such parts."""

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import partial
from types import CodeType, FunctionType
from typing import Any, Self

from kubelet_conformance.targets.choice import Choice
from kubelet_conformance.targets.in_process.stage import InProcessStage, parts_of, runtime_parts_of
from kubelet_conformance.targets.stage import Stage
from kubelet_fakes.runtime.service import RuntimeParts
from kubelet_reference.kubelet.parts import Parts

Decision = Callable[..., Any]


_IGNORED_NAMES = frozenset(
    {"__module__", "__qualname__", "__doc__", "__annotations__", "__slots__", "__dict__", "__weakref__"}
    | {"__orig_bases__", "__parameters__", "__firstlineno__", "__static_attributes__"}
)
"""Names in every class that say nothing of what its instances do."""


@dataclass(frozen=True, slots=True)
class Replaced:
    """What the chosen kubelet and runtime have in the place of what is right.

    They do what the right ones do as long as none of the functions is entered, and each of the decisions
    comes to what the right one comes to.

    Attributes:
        functions: those of the right ones that are others there.
        decisions: functions that decide and do nothing else, by their path, such as
            "kubelet.runtime.compute_actions".
        parts: what stands in whose place, by its path, the decisions among them.
    """

    functions: frozenset[CodeType]
    decisions: Mapping[str, Decision]
    parts: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class _Pair:
    """What a kubelet and a runtime are made of."""

    kubelet: Parts
    runtime: RuntimeParts

    @classmethod
    def of(cls, choice: Choice) -> Self:
        return cls(parts_of(choice.kubelet), runtime_parts_of(choice.runtime))


def what_is_replaced(choice: Choice) -> Replaced | None:
    """The parts that the chosen kubelet and runtime replace. None: that cannot be found out."""
    decisions: dict[str, Decision] = {}
    functions: set[CodeType] = set()
    parts: dict[str, object] = {}
    try:
        for path, right, wrong in replaced(_Pair(Parts(), RuntimeParts()), _Pair.of(choice)):
            parts[path] = wrong
            if not isinstance(right, FunctionType):
                functions |= _overridden(right, wrong)
            elif path.startswith("kubelet."):
                decisions[path] = wrong
            else:
                functions.add(right.__code__)
    except _NotComparableError:
        return None
    return Replaced(frozenset(functions), decisions, parts)


class _NotComparableError(Exception):
    """Something else than a function was replaced."""


def replaced(right: object, wrong: object, path: str = "") -> Iterator[tuple[str, Any, Any]]:
    """The functions and classes of one part that are others in the other, through parts of parts.

    Each with the path of its field, such as "kubelet.runtime.starter".
    """
    if right is wrong:
        return
    is_class = isinstance(right, type) and isinstance(wrong, type) and issubclass(wrong, right)
    if is_class or isinstance(right, FunctionType):
        yield path, right, wrong
    elif is_dataclass(right) and type(right) is type(wrong):
        for each in fields(right):
            below = f"{path}.{each.name}" if path else each.name
            yield from replaced(getattr(right, each.name), getattr(wrong, each.name), below)
    elif right != wrong:
        raise _NotComparableError


def _overridden(right: type, wrong: type) -> set[CodeType]:
    """The functions of a class that the other overrides; its additional functions have no callers."""
    found: set[CodeType] = set()
    for base in wrong.__mro__:
        if base in right.__mro__:
            continue
        for name in vars(base).keys() - _IGNORED_NAMES:
            was = inspect.getattr_static(right, name, None)
            if was is not None or name.startswith("__"):
                found.add(_code(was))
    return found


def _code(member: Any) -> CodeType:  # noqa: ANN401 - whatever a class may hold
    """What runs where this member of a class is used."""
    function = getattr(member, "fget", None) or getattr(member, "__func__", member)
    if not isinstance(function, FunctionType):
        raise _NotComparableError
    return function.__code__


def open_stage_beside(
    choice: Choice, others: Mapping[str, Mapping[str, Decision]], differed: set[str]
) -> Stage:
    """The stage of the chosen kubelet, on which each decision is also taken by `others`, to no effect.

    Args:
        choice: the kubelet and the runtime.
        others: by the path of a decision (see `Replaced`) the names of others, each with what it decides by.
        differed: takes the names of those that have decided otherwise, or failed.
    """
    pair: Any = _Pair.of(choice)
    for path, beside in others.items():
        pair = _changed(pair, path.split("."), partial(_watched, beside, differed))
    return InProcessStage(choice, pair.kubelet, pair.runtime)


def open_stage_of_all(choice: Choice, several: Iterable[Replaced]) -> Stage:
    """The stage of the chosen kubelet and runtime with what all of these replaced, no two at one path."""
    pair: Any = _Pair.of(choice)
    for each in several:
        for path, wrong in each.parts.items():
            pair = _changed(pair, path.split("."), partial(_instead, wrong))
    return InProcessStage(choice, pair.kubelet, pair.runtime)


def _changed(part: Any, path: list[str], change: Callable[[Any], Any]) -> Any:  # noqa: ANN401 - any part
    """The part with something else at the path."""
    if not path:
        return change(part)
    name, *below = path
    return replace(part, **{name: _changed(getattr(part, name), below, change)})


def _instead(wrong: object, _: object) -> object:
    return wrong


def _watched(others: Mapping[str, Decision], differed: set[str], decide: Decision) -> Decision:
    def watched(*arguments: object, **named: object) -> object:
        decided = decide(*arguments, **named)
        for name in others.keys() - differed:
            if _differs(others[name], decided, arguments, named):
                differed.add(name)
        return decided

    return watched


def _differs(
    other: Decision, decided: object, arguments: tuple[object, ...], named: dict[str, object]
) -> bool:
    try:
        return bool(other(*arguments, **named) != decided)
    except Exception:  # noqa: BLE001 - how it is wrong is seen when it is played
        return True
