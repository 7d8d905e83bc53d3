"""Moments as the API writes them: RFC 3339 in UTC, whole seconds."""

from __future__ import annotations

from datetime import UTC, datetime

_SECOND = 1_000_000_000


def rfc3339(moment_ns: int) -> str:
    """The moment, given in nanoseconds since the epoch, without its fraction of a second."""
    return datetime.fromtimestamp(moment_ns // _SECOND, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def parse_time(text: str) -> int:
    """The moment in nanoseconds since the epoch; raises `ValueError` for what is none."""
    return int(datetime.fromisoformat(text).timestamp()) * _SECOND
