"""Why containers could not be started: remembered until the next start of that container succeeds."""

from collections import OrderedDict
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class StartFailure:
    """A failed start: a well-known `reason` such as ErrImagePull, and what went wrong."""

    reason: str
    message: str


class ReasonCache:
    """The last start failure of each container, in memory only (SYNC-15, SYNC-16).

    It remembers a bounded number of them, the least recently used go first.
    """

    def __init__(self, capacity: int = 1000) -> None:
        self._capacity = capacity
        self._failures: OrderedDict[tuple[str, str], StartFailure] = OrderedDict()

    def add(self, uid: str, container: str, reason: str, message: str) -> None:
        """Remember that a start of the container failed."""
        self._failures[uid, container] = StartFailure(reason, message)
        self._failures.move_to_end((uid, container))
        if len(self._failures) > self._capacity:
            self._failures.popitem(last=False)

    def remove(self, uid: str, container: str) -> None:
        """Forget the container: it was started."""
        self._failures.pop((uid, container), None)

    def get(self, uid: str, container: str) -> StartFailure | None:
        """Why the container's last start failed, None if it did not."""
        failure = self._failures.get((uid, container))
        if failure is not None:
            self._failures.move_to_end((uid, container))
        return failure
