"""The catalogue of contracts: every rule on a pod's life, as data read from `catalogue.jsonl`.

The file holds one rule per line, sorted by area in the catalogue's own order of areas, and by number
within an area. An id (`SANDBOX-03`) is given by hand, never reused, and the address of its rule everywhere.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from enum import StrEnum
from fnmatch import fnmatchcase
from functools import cache
from importlib import resources
from types import MappingProxyType
from typing import Literal

import msgspec

#: How many contracts an error suggests in place of an unknown one.
_SUGGESTIONS = 3


class Level(StrEnum):
    """How strongly a rule binds its addressee, in the words of RFC 2119."""

    MUST = "MUST"
    SHOULD = "SHOULD"
    MAY = "MAY"


class Row(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One rule of the catalogue.

    Attributes:
        id: its address, an area and a number: `SANDBOX-03`.
        area: the part of the pod's life it belongs to: `SANDBOX`.
        level: how strongly it binds.
        star: whether it distinguishes kubelets that few other rules distinguish.
        addressee: whom it binds; a rule for the suite says what no test may require.
        rule: what holds, in plain sentences.
        stimulus: how to bring the situation about.
        observation: what is then observed from outside.
        versions: the Kubernetes versions it was read for, in words.
        source: where it was read; kubelet files are named below `pkg/kubelet`.
        mutant: a plausible wrong implementation that breaks it.
        excluded: why it is left out; "" for one that is judged, or is to be.
        package: the package that brings it with its version, "" for one of this catalogue.
    """

    id: str
    area: str
    level: Level
    star: bool
    addressee: Literal["kubelet", "runtime", "suite"]
    rule: str
    stimulus: str
    observation: str
    versions: str
    source: str
    mutant: str
    excluded: str = ""
    package: str = ""


class UnknownContract(LookupError):  # noqa: N818 - named as LookupError is
    """An id or a pattern names no contract.

    Attributes:
        name: the id or pattern as it was given.
        nearest: ids that resemble it, the best first; those of the same area come before others.
    """

    def __init__(self, name: str, nearest: tuple[str, ...]) -> None:
        super().__init__(name, nearest)
        self.name = name
        self.nearest = nearest

    def __str__(self) -> str:
        text = f"there is no contract {self.name}"
        if self.name.upper() in areas():
            return f"{text}; did you mean '{self.name.upper()}-*'?"
        return f"{text}; nearest: {', '.join(self.nearest)}" if self.nearest else text


@cache
def _rows() -> dict[str, Row]:
    lines = resources.files("kubelet_conformance.contract").joinpath("catalogue.jsonl").read_bytes()
    return {each.id: each for each in msgspec.json.Decoder(Row).decode_lines(lines)}


@cache
def rows() -> Mapping[str, Row]:
    """All rules by id, in the order of the catalogue, then those of other packages as they are loaded."""
    return MappingProxyType(_rows())


def add(one: Row) -> None:
    """Add a rule of another package.

    Raises:
        ValueError: its id, or its area, is one that the catalogue has.
    """
    if not re.fullmatch(r"[A-Z][A-Z0-9]*-\d+", one.id):
        raise ValueError(f"{one.id}: expected an id such as ACME-01: an area of your own and a number")
    known = _rows().get(one.id) or next((each for each in _rows().values() if each.area == one.area), None)
    if known is not None and (known.id == one.id or not known.package):
        owner = known.package or "the catalogue"
        raise ValueError(f"{one.id}: {known.id} is of {owner}; choose an area of your own, such as ACME")
    _rows()[one.id] = one
    areas.cache_clear()


@cache
def areas() -> tuple[str, ...]:
    """The names of the areas, in the order of the catalogue."""
    return tuple(dict.fromkeys(each.area for each in rows().values()))


def row(contract: str, /) -> Row:
    """The rule with this id, written in upper or lower case.

    Raises:
        UnknownContract: no rule has this id.
    """
    found = rows().get(contract.upper())
    if found is None:
        raise UnknownContract(contract, _nearest(contract))
    return found


def select(patterns: Iterable[str]) -> list[str]:
    """The ids that match any of these ids or globs (`SANDBOX-*`), in upper or lower case.

    They come in the order of the patterns, and of the catalogue within one pattern; each comes once.

    Raises:
        UnknownContract: one of the patterns matches nothing.
    """
    return list(dict.fromkeys(found for pattern in patterns for found in _matching(pattern)))


def _matching(pattern: str) -> list[str]:
    """The ids that match one id or glob; at least one, or `UnknownContract`."""
    found = [each for each in rows() if fnmatchcase(each, pattern.upper())]
    if not found:
        raise UnknownContract(pattern, _nearest(pattern))
    return found


def _nearest(name: str) -> tuple[str, ...]:
    """The ids most like this name: those of the area it seems to mean, then any others."""
    wanted = re.sub(r"-(\d)$", r"-0\1", name.upper())
    meant = get_close_matches(wanted.partition("-")[0], areas(), n=1)
    kin = [each.id for each in rows().values() if each.area in meant]
    alike = get_close_matches(wanted, kin, _SUGGESTIONS, cutoff=0) + get_close_matches(
        wanted, rows(), _SUGGESTIONS
    )
    return tuple(dict.fromkeys(alike))[:_SUGGESTIONS]
