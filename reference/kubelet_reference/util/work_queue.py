"""When each pod is to be synced again (upstream: `pkg/kubelet/util/queue`)."""

from heapq import heappop, heappush

from kubelet_reference.util.ports import Clock


class WorkQueue:
    """One moment for each UID; a later `enqueue` of the same UID replaces the moment, sooner or later.

    The sync loop drains it at each of its ticks, so that what is due waits up to one second more (LOOP-11).
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._moments: dict[str, tuple[float, int]] = {}
        self._heap: list[tuple[float, int, str]] = []
        self._entries = 0

    def enqueue(self, uid: str, delay: float) -> None:
        """Let the pod be due `delay` seconds from now."""
        self._entries += 1
        moment = (self._clock.monotonic() + delay, self._entries)
        self._moments[uid] = moment
        heappush(self._heap, (*moment, uid))

    def forget(self, uid: str) -> None:
        """Let the pod not be due any more."""
        self._moments.pop(uid, None)

    def due(self) -> list[str]:
        """Take out the UIDs whose time has come, the longest waiting first."""
        now = self._clock.monotonic()
        found: list[str] = []
        while self._heap and self._heap[0][0] <= now:
            when, entry, uid = heappop(self._heap)
            if self._moments.get(uid) == (when, entry):
                del self._moments[uid]
                found.append(uid)
        return found
