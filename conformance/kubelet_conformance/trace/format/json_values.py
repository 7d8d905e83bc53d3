"""Questions about JSON of unknown shape: a field that is not of the expected type counts as absent."""

from collections.abc import Iterable
from typing import Any, TypeAlias, TypeGuard

Json: TypeAlias = dict[str, Any]


def is_object(value: Any) -> TypeGuard[Json]:  # noqa: ANN401 - a JSON value has any type
    """Whether the value is a JSON object."""
    return isinstance(value, dict)


def is_list(value: Any) -> TypeGuard[list[Any]]:  # noqa: ANN401 - a JSON value has any type
    """Whether the value is a JSON array."""
    return isinstance(value, list)


def text_of(value: Json, name: str) -> str:
    """A field that is a string; empty where it is none."""
    found = value.get(name)
    return found if isinstance(found, str) else ""


def object_of(value: Json, name: str) -> Json:
    """A field that is an object; empty where it is none."""
    found = value.get(name)
    return found if is_object(found) else {}


def items_of(value: Json, name: str) -> list[Json]:
    """The objects in a field that is a list."""
    found = value.get(name)
    return [each for each in found if is_object(each)] if is_list(found) else []


def texts_of(value: Json, name: str) -> list[str]:
    """The strings in a field that is a list."""
    found = value.get(name)
    return [each for each in found if isinstance(each, str)] if is_list(found) else []


def strings(value: Any) -> Iterable[str]:  # noqa: ANN401 - a JSON value has any type
    """Every string in a value, names of fields left out."""
    if isinstance(value, str):
        yield value
    elif is_list(value):
        for inner in value:
            yield from strings(inner)
    elif is_object(value):
        for inner in value.values():
            yield from strings(inner)
