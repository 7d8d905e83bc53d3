"""API objects as immutable JSON: handing one out costs nothing and needs no copy.

A change builds new dictionaries along its path and shares all the rest, so what did not change is the same
object (`is`) before and after. `copy.deepcopy(thing)` gives an ordinary one that may be changed.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NoReturn, TypeGuard

_SECOND = 1_000_000_000


def _refuse(*_: object, **__: object) -> NoReturn:
    raise TypeError("objects of the API server cannot be changed in place: change a copy.deepcopy of it")


class FrozenDict(dict[str, Any]):
    """A dictionary that stays as it is; everything in it is frozen too."""

    __slots__ = ()
    if not TYPE_CHECKING:
        __setitem__ = __delitem__ = __ior__ = _refuse
        clear = pop = popitem = setdefault = update = _refuse

        def __reduce__(self) -> tuple[type, tuple[object]]:
            return dict, (dict(self),)


class FrozenList(list[Any]):
    """A list that stays as it is; everything in it is frozen too."""

    __slots__ = ()
    if not TYPE_CHECKING:
        __setitem__ = __delitem__ = __iadd__ = __imul__ = _refuse
        append = clear = extend = insert = pop = remove = reverse = sort = _refuse

        def __reduce__(self) -> tuple[type, tuple[object]]:
            return list, (list(self),)


EMPTY = FrozenDict()
"""What stands in for an object that is not there."""

PLAIN = frozenset({str, int, float, bool})
"""The types of JSON that hold no other, null apart."""
_FROZEN = PLAIN | {type(None), FrozenDict, FrozenList}


def is_object(value: object) -> TypeGuard[dict[str, Any]]:
    """Whether it is a JSON object."""
    return isinstance(value, dict)


def is_array(value: object) -> TypeGuard[list[Any]]:
    """Whether it is a JSON array."""
    return isinstance(value, list)


def frozen(value: Any) -> Any:  # noqa: ANN401 - JSON of any shape
    """The same JSON, frozen; what is frozen already is not copied."""
    if type(value) in _FROZEN:
        return value
    if is_object(value):
        return FrozenDict(
            {key: each if type(each) in _FROZEN else frozen(each) for key, each in value.items()}
        )
    if is_array(value):
        return FrozenList([frozen(each) for each in value])
    return value


def at(thing: Mapping[str, Any], *path: str) -> Any:  # noqa: ANN401 - JSON of any shape
    """What is at the end of the path, None where the path breaks off."""
    value: Any = thing
    for key in path:
        if not is_object(value):
            return None
        value = value.get(key)
    return value


def replaced(thing: FrozenDict, path: tuple[str, ...], value: Any) -> FrozenDict:  # noqa: ANN401 - JSON
    """The thing with another value at the end of the path; None removes what is there.

    The thing itself comes back where that changes nothing.
    """
    key, *rest = path
    old = thing.get(key)
    if old is None and value is None:
        return thing
    new = (
        replaced(old if isinstance(old, FrozenDict) else EMPTY, tuple(rest), value) if rest else frozen(value)
    )
    if new is old or (new == old and key in thing):
        return thing
    if new is None:
        return FrozenDict({k: v for k, v in thing.items() if k != key})
    return FrozenDict(thing | {key: new})


def rfc3339(moment_ns: int) -> str:
    """The moment, given in nanoseconds since the epoch, without its fraction of a second."""
    return datetime.fromtimestamp(moment_ns // _SECOND, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def parse_time(text: str) -> int:
    """The moment in nanoseconds since the epoch; raises `ValueError` for what is none."""
    return int(datetime.fromisoformat(text).timestamp()) * _SECOND
