"""Which static pod holds a full name: the manifest's next version waits for the one before it."""

from __future__ import annotations

from collections.abc import Callable


class StaticNames:
    """Full names (name and namespace) and the UIDs of the static pods that hold or await them (STATIC-18)."""

    def __init__(self) -> None:
        self._holders: dict[str, str] = {}
        self._waiting: dict[str, list[str]] = {}

    def wait(self, full_name: str, uid: str) -> None:
        """Queue up for the name; who queues already keeps the place."""
        line = self._waiting.setdefault(full_name, [])
        if uid not in line:
            line.append(uid)

    def may_take(self, full_name: str, uid: str, still_waits: Callable[[str], bool]) -> bool:
        """Whether the name is free, and `uid` the first in line of those that still wait (STATIC-19)."""
        holder = self._holders.get(full_name)
        if holder is not None:
            return holder == uid
        line = [one for one in self._waiting.get(full_name, []) if still_waits(one)]
        return not line or line[0] == uid

    def take(self, full_name: str, uid: str) -> None:
        """Hold the name."""
        self._holders[full_name] = uid
        self.leave(full_name, uid)

    def holder(self, full_name: str) -> str | None:
        """Who holds the name."""
        return self._holders.get(full_name)

    def leave(self, full_name: str, uid: str) -> None:
        """Leave the line."""
        line = [one for one in self._waiting.pop(full_name, []) if one != uid]
        if line:
            self._waiting[full_name] = line

    def release(self, full_name: str, uid: str) -> None:
        """Give the name up, if `uid` holds it, and leave the line."""
        if self._holders.get(full_name) == uid:
            del self._holders[full_name]
        self.leave(full_name, uid)
