"""Back-off: how long what failed has to wait before it is tried again (BACKOFF-01..09, IMAGE-07).

Each key has a series of delays: `base`, twice that, and so on up to `cap`. A delay counts from the moment of
the failure itself (the end of the container, BACKOFF-02): counted from refused attempts it would never end.
A key whose failure comes more than ten minutes after its last allowed attempt begins the series anew
(BACKOFF-03). Everything is in memory: with the kubelet the series is forgotten (BACKOFF-08).
"""

from dataclasses import dataclass

from kubelet_reference.util.ports import Clock

BASE_SECONDS, CAP_SECONDS = 10.0, 300.0
EXPIRY_SECONDS = 600.0
_NS = 1_000_000_000


@dataclass(slots=True)
class _Entry:
    """The delay that holds now, in seconds, when it was set, in nanoseconds since the epoch, and why."""

    delay: float
    updated: int
    reason: str


class Backoff:
    """The delays of many keys; moments are nanoseconds since the epoch, durations seconds."""

    def __init__(self, clock: Clock, base: float = BASE_SECONDS, cap: float = CAP_SECONDS) -> None:
        self._clock = clock
        self._base = base
        self._cap = cap
        self._entries: dict[str, _Entry] = {}

    def delay(self, key: str) -> float:
        """The delay of a key that has one, in seconds."""
        return self._entries[key].delay

    def is_in_backoff_since(self, key: str, moment: int) -> bool:
        """Whether the delay, counted from `moment`, has not passed yet."""
        entry = self._living(key, moment)
        return entry is not None and self._clock.wall_ns() - moment < entry.delay * _NS

    def left(self, key: str, moment: int) -> float:
        """How much of the delay is left, counted from `moment`, in seconds."""
        return self.delay(key) - (self._clock.wall_ns() - moment) / _NS

    def is_in_backoff_since_update(self, key: str) -> bool:
        """Whether the delay, counted from the time it was set, has not passed yet."""
        now = self._clock.wall_ns()
        entry = self._living(key, now)
        return entry is not None and now - entry.updated < entry.delay * _NS

    def reason(self, key: str) -> str:
        """Why the delay of the key was set."""
        return self._entries[key].reason

    def next(self, key: str, moment: int, reason: str = "") -> None:
        """Set the next delay of the key, whose latest failure was at `moment`."""
        entry = self._living(key, moment)
        delay = self._base if entry is None else min(2 * entry.delay, self._cap)
        now = self._clock.wall_ns()
        # What has been idle for ten minutes is forgotten with it (BACKOFF-09).
        self._entries = {each: one for each, one in self._entries.items() if self._living(each, now)}
        self._entries[key] = _Entry(delay, now, reason)

    def _living(self, key: str, moment: int) -> _Entry | None:
        """The delay of a key, unless `moment` is too long after its last attempt to continue the series."""
        entry = self._entries.get(key)
        return entry if entry and moment - entry.updated <= EXPIRY_SECONDS * _NS else None
