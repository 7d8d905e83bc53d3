"""A property that is computed on first use and then kept."""

from collections.abc import Callable
from typing import Any, Generic, Self, TypeVar, overload

T = TypeVar("T")


class once(Generic[T]):  # noqa: N801 - it is written as a decorator
    """A property that is kept in the object's `__dict__` from its first use on.

    functools.cached_property does the same, but takes a lock up to Python 3.11.
    """

    def __init__(self, find: Callable[[Any], T]) -> None:
        self._find = find
        self.__doc__ = find.__doc__

    def __set_name__(self, _: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, owner: None, _: type | None = None) -> Self: ...

    @overload
    def __get__(self, owner: object, _: type | None = None) -> T: ...

    def __get__(self, owner: object | None, _: type | None = None) -> Self | T:
        if owner is None:
            return self
        found = owner.__dict__[self._name] = self._find(owner)
        return found
