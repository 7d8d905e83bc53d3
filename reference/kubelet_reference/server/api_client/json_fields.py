"""Fields of objects as JSON: one that is absent or null is empty."""

from typing import Any, TypeAlias

Json: TypeAlias = dict[str, Any]


def part(thing: Json, *path: str) -> Json:
    """The object at the end of a path of fields."""
    for name in path:
        found: Json | None = thing.get(name)
        thing = found if found is not None else {}
    return thing


def parts(thing: Json, name: str) -> list[Json]:
    """The objects of a list."""
    found: list[Json] | None = thing.get(name)
    return found if found is not None else []


def text(thing: Json, *path: str) -> str:
    """The text at the end of a path of fields."""
    *above, name = path
    found: str | None = part(thing, *above).get(name)
    return found if found is not None else ""
