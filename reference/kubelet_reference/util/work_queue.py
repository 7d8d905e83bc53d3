"""When each pod is to be synced again (upstream: `pkg/kubelet/util/queue`)."""

from kubelet_reference.util.ports import Clock


class WorkQueue:
    """One moment for each UID; a later `enqueue` of the same UID replaces the moment, sooner or later.

    The sync loop drains it at each of its ticks, so that what is due waits up to one second more (LOOP-11).
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._moments: dict[str, float] = {}

    def enqueue(self, uid: str, delay: float) -> None:
        """Let the pod be due `delay` seconds from now."""
        self._moments[uid] = self._clock.monotonic() + delay

    def due(self) -> list[str]:
        """Take out the UIDs whose time has come, the longest waiting first."""
        now = self._clock.monotonic()
        found = [uid for uid, moment in self._moments.items() if moment <= now]
        found.sort(key=self._moments.__getitem__)
        for uid in found:
            del self._moments[uid]
        return found
