"""Why containers could not be started: remembered until the next start of that container succeeds."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class StartFailure:
    """A failed start: a well-known `reason` such as ErrImagePull, and what went wrong."""

    reason: str
    message: str


class ReasonCache:
    """The last start failure of each container, in memory only (SYNC-15, SYNC-16)."""

    def __init__(self) -> None:
        self._failures: dict[tuple[str, str], StartFailure] = {}

    def add(self, uid: str, container: str, reason: str, message: str) -> None:
        """Remember that a start of the container failed."""
        self._failures[uid, container] = StartFailure(reason, message)

    def remove(self, uid: str, container: str) -> None:
        """Forget the container: it was started."""
        self._failures.pop((uid, container), None)

    def get(self, uid: str, container: str) -> StartFailure | None:
        """Why the container's last start failed, None if it did not."""
        return self._failures.get((uid, container))
