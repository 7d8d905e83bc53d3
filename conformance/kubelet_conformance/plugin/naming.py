"""How scenarios are called: by their module and function, each unlike the others."""

import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pytest

from kubelet_conformance.scenarios import prefix_of

_NAME_CHARS_MAX = 150


@dataclass(frozen=True, slots=True)
class Named:
    """One scenario.

    Attributes:
        name: such as `sandbox.killed_sandbox_is_replaced`; fit for the name of a file.
        place: its number in the order in which the scenarios were found.
        file: its file, from here; empty for a scenario of an installed package.
    """

    name: str
    place: int
    file: str


def named(scenarios: Iterable[pytest.Function]) -> dict[str, Named]:
    """Each scenario by its node id; of several with one name, the later ones have a number too."""
    found: dict[str, Named] = {}
    taken: set[str] = set()
    for place, item in enumerate(scenarios):
        plain = name = _name(item)
        number = 1
        while name in taken:
            number += 1
            name = f"{plain}-{number}"
        taken.add(name)
        found[item.nodeid] = Named(name, place, os.path.relpath(item.path) if _prefix(item) is None else "")
    return found


def in_order(items: Sequence[pytest.Item]) -> list[pytest.Item]:
    """The tests, with those of this package by the names of their files, in whichever folders these are."""
    ours = iter(sorted(filter(_is_ours, items), key=lambda item: item.path.stem))
    return [next(ours) if _is_ours(item) else item for item in items]


def _is_ours(item: pytest.Item) -> bool:
    return _prefix(item) == ""


def _prefix(item: pytest.Item) -> str | None:
    """What its name begins with; None where it stands in a file of no installed package."""
    return prefix_of(str(getattr(item.module, "__name__", ""))) if isinstance(item, pytest.Function) else None


def _name(item: pytest.Function) -> str:
    stem = f"{_prefix(item) or ''}{item.path.stem.removeprefix('test_')}"
    return re.sub(r"[^\w.,=\[\]-]", "_", f"{stem}.{item.name.removeprefix('test_')}", flags=re.ASCII)[
        :_NAME_CHARS_MAX
    ]
