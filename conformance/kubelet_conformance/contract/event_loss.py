"""Which events of a kubelet never reach its API server, though each is recorded that does.

The kubelet's client (client-go tools/record) drops what is too much of one object, and waits before it posts
again what it could not.
"""

from collections import Counter

from kubelet_conformance.trace.format.records import Event
from kubelet_conformance.trace.world.kubelet_view import kubelet_view
from kubelet_conformance.trace.world.moment import Moment

_BURST = 25
"""So many events of one object are posted, then one in 300 s (EventSourceObjectSpamFilter)."""
_PAUSE_SECONDS = 12.0
"""It tries again 10 s after a post that failed; the later events wait behind it (recordToSink)."""


class EventLoss:
    """Counts the events of each pod, and says when some may be missing or late."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()

    def count(self, event: Event) -> None:
        """Take one that was recorded."""
        self._counts[event.uid] += event.count

    def may_begin(self, m: Moment) -> bool:
        """Events of the moment's pod may be missing from now on, or of any where it is about the node."""
        if kubelet_view(m).api_was_away(m.t - _PAUSE_SECONDS):
            return True
        # A container that comes and goes has about six more before the obligation ends.
        return m.pod is not None and self._counts[m.pod.uid or ""] >= _BURST - 6
