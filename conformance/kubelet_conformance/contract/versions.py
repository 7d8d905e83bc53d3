"""Kubernetes versions: which expectation a contract has for which of them."""

from __future__ import annotations

import re
from typing import Generic, TypeAlias, TypeVar

E = TypeVar("E")
Version: TypeAlias = tuple[int, int]

OLDEST_READ: Version = (1, 12)
NEWEST_READ: Version = (1, 37)
"""Between these two the catalogue was read from source, documentation or enhancement proposals."""
USUAL_VERSION = "1.32"
"""The newest version whose source was read: what kubelets are taken for unless said otherwise."""


def parse_version(text: str) -> Version:
    """`1.32`, `v1.32.10` or `1.32+` as (1, 32). Raises ValueError for anything else."""
    found = re.fullmatch(r"v?(\d{1,3})\.(\d{1,4})(?:[.+-].*)?", text.strip())
    if found is None:
        raise ValueError(f"{text!r} is no Kubernetes version; write it like 1.32")
    return int(found[1]), int(found[2])


def version_text(version: Version) -> str:
    """(1, 32) as `1.32`."""
    return f"{version[0]}.{version[1]}"


def _range(text: str) -> tuple[Version, Version]:
    """`1.22..1.26`, `>=1.29`, `<=1.26`, `1.32` or `all` as two ends, both included."""
    if text == "all":
        return OLDEST_READ, NEWEST_READ
    if text.startswith(">="):
        return parse_version(text[2:]), NEWEST_READ
    if text.startswith("<="):
        return OLDEST_READ, parse_version(text[2:])
    low, _, high = text.partition("..")
    return parse_version(low), parse_version(high or low)


class ByVersion(Generic[E]):
    """An expectation per range of versions; a version in no range has none.

    `ByVersion({"1.22..1.26": "whole", ">=1.28": "rest"})`. Ranges are those the catalogue has evidence for,
    so a gap between two ranges is a version nobody has read.
    """

    def __init__(self, expectations: dict[str, E]) -> None:
        self._ranges = [(*_range(text), value) for text, value in expectations.items()]
        self.text = ", ".join(expectations)
        self._found: dict[Version | None, E | None] = {}

    def get(self, version: Version | None) -> E | None:
        """The expectation for a version; with no version known only one that holds for all."""
        if version not in self._found:
            self._found[version] = self._look_up(version)
        return self._found[version]

    def _look_up(self, version: Version | None) -> E | None:
        for low, high, value in self._ranges:
            if version is None:
                if (low, high) == (OLDEST_READ, NEWEST_READ):
                    return value
            elif low <= version <= high:
                return value
        return None

    def at(self, version: Version | None) -> E:
        """The expectation for a version the contract applies to."""
        value = self.get(version)
        if value is None:
            raise LookupError(f"no expectation for {version}")
        return value

    def why_not(self, version: Version | None) -> str | None:
        """Why there is no expectation for a version; None where there is one."""
        if self.get(version) is not None:
            return None
        if version is None:
            return "the trace does not tell its Kubernetes version (give --kubernetes)"
        lowest = min(low for low, _, _ in self._ranges)
        if OLDEST_READ <= version < lowest:
            return f"since {version_text(lowest)}"
        if max(high for _, high, _ in self._ranges) < version <= NEWEST_READ:
            return f"only for {self.text}"
        return f"unverified for {version_text(version)}"


ALL: ByVersion[bool] = ByVersion({"all": True})


def since(version: str) -> ByVersion[bool]:
    """It holds from this version on."""
    return ByVersion({f">={version}": True})
