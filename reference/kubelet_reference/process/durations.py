"""Durations as Go writes them: 1m30s, 1.5h, 200ms."""

from __future__ import annotations

import re
from fractions import Fraction

_NANOSECONDS = {
    "ns": 1,
    "us": 10**3,
    "µs": 10**3,
    "μs": 10**3,
    "ms": 10**6,
    "s": 10**9,
    "m": 60 * 10**9,
    "h": 3600 * 10**9,
}
_PART = r"(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:ns|us|µs|μs|ms|s|m|h)"
_DURATION = re.compile(rf"([-+]?)((?:{_PART})+)")
_PARTS = re.compile(r"([0-9.]+)([^0-9.]+)")
_LONGEST_TEXT = 100
_LARGEST = 2**63 - 1


def parse_duration(text: str) -> float:
    """The duration in seconds; `ValueError` if it is none, or longer than Go can say (292 years)."""
    if text in {"0", "+0", "-0"}:
        return 0.0
    found = _DURATION.fullmatch(text) if len(text) <= _LONGEST_TEXT else None
    if found is None:
        raise ValueError(f"expected a duration such as 1m30s, got {text[:_LONGEST_TEXT]!r}")
    amount = sum(Fraction(number) * _NANOSECONDS[unit] for number, unit in _PARTS.findall(found[2]))
    if amount > _LARGEST:
        raise ValueError(f"expected at most 292 years, got {text!r}")
    return float(-amount if found[1] == "-" else amount) / 1e9
