"""The delays after failures: their series, where they count from, and when they begin anew."""

import pytest

from kubelet_reference.util.backoff import Backoff

NS = 1_000_000_000


class HandClock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.now = 1_000 * NS

    def monotonic(self) -> float:
        """Seconds."""
        return self.now / NS

    def wall_ns(self) -> int:
        """Nanoseconds."""
        return self.now

    async def sleep(self, seconds: float) -> None:
        """Let the time pass."""
        self.now += round(seconds * NS)


def test_series() -> None:
    """The first failure is let through; then 10 s, doubling up to 300 s (BACKOFF-01)."""
    clock = HandClock()
    backoff, delays = Backoff(clock), list[float]()

    for _ in range(8):
        assert not backoff.is_in_backoff_since(
            "c", clock.now - round(delays[-1] * NS) if delays else clock.now
        )
        backoff.next("c", clock.now)
        delays.append(backoff.delay("c"))

    assert delays == [10, 20, 40, 80, 160, 300, 300, 300]


def test_counts_from_the_failure() -> None:
    """A delay counts from the end of the container, not from the refused attempt (BACKOFF-02)."""
    clock = HandClock()
    backoff = Backoff(clock)
    backoff.next("c", clock.now)
    ended = clock.now + 1 * NS
    clock.now = ended + 10 * NS - 1

    assert backoff.is_in_backoff_since("c", ended)
    clock.now += 1
    assert not backoff.is_in_backoff_since("c", ended)


def test_begins_anew_after_ten_minutes() -> None:
    """A failure more than 600 s after the last attempt begins the series again (BACKOFF-03)."""
    clock = HandClock()
    backoff = Backoff(clock)
    for _ in range(3):
        backoff.next("c", clock.now)
    at_the_limit, after_it = clock.now + 600 * NS, clock.now + 600 * NS + 1

    clock.now = at_the_limit
    assert backoff.is_in_backoff_since("c", at_the_limit)
    clock.now = after_it
    assert not backoff.is_in_backoff_since("c", after_it)
    backoff.next("c", after_it)
    assert backoff.delay("c") == 10


def test_keys_are_apart() -> None:
    """One key's delays are no other's business (BACKOFF-05, BACKOFF-07)."""
    clock = HandClock()
    backoff = Backoff(clock)
    backoff.next("a", clock.now)

    assert backoff.is_in_backoff_since_update("a")
    assert not backoff.is_in_backoff_since_update("b")


def test_forgets_what_is_idle() -> None:
    """After ten idle minutes a key is forgotten (BACKOFF-09)."""
    clock = HandClock()
    backoff = Backoff(clock)
    backoff.next("a", clock.now)
    clock.now += 601 * NS

    backoff.next("b", clock.now)

    with pytest.raises(KeyError):
        backoff.delay("a")


def test_low_cap() -> None:
    """A cap below 10 s is the first delay too (BACKOFF-11)."""
    clock = HandClock()
    backoff = Backoff(clock, cap=2)
    backoff.next("a", clock.now)
    backoff.next("a", clock.now)

    assert backoff.delay("a") == 2
