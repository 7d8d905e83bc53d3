"""Times as the API server takes them."""

from datetime import UTC, datetime


def rfc3339(wall_ns: int) -> str:
    """The whole second, such as 2026-01-31T12:00:00Z."""
    return f"{_moment(wall_ns):%Y-%m-%dT%H:%M:%SZ}"


def rfc3339_micro(wall_ns: int) -> str:
    """With microseconds, as leases have it."""
    return f"{_moment(wall_ns):%Y-%m-%dT%H:%M:%S.%fZ}"


def _moment(wall_ns: int) -> datetime:
    return datetime.fromtimestamp(wall_ns / 1e9, UTC)
