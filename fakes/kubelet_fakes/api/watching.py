"""Changes, the watches that deliver them, and how long they are remembered."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

import msgspec

from kubelet_fakes.api.errors import ApiStatusError, expired
from kubelet_fakes.api.objects import EMPTY, FrozenDict, at

ADDED, MODIFIED, DELETED = "ADDED", "MODIFIED", "DELETED"


class Change(msgspec.Struct, frozen=True):
    """One change of one object: `before` is None for a new one; a removed one is shown as it was last."""

    revision: int
    type: str
    resource: str
    verb: str
    """The request that made it: create, update, patch or delete."""
    subresource: str
    object: FrozenDict
    before: FrozenDict | None
    by: str
    """The connection that the request came over; empty for the world outside."""


class WatchEvent(msgspec.Struct, frozen=True):
    """What a watch delivers: `type` is ADDED, MODIFIED or DELETED."""

    type: str
    object: FrozenDict


@dataclass(frozen=True, slots=True)
class Selector:
    """Which objects a list or a watch is about; an empty `namespace` means all."""

    resource: str
    namespace: str = ""
    fields: tuple[tuple[tuple[str, ...], str], ...] = ()
    """Paths and the values they must have; one that is not there counts as empty."""
    labels: tuple[tuple[str, str], ...] = ()
    matches: Callable[[FrozenDict], bool] | None = None

    @classmethod
    def of(
        cls,
        resource: str,
        namespace: str,
        fields: Mapping[str, str],
        labels: Mapping[str, str],
        matches: Callable[[FrozenDict], bool] | None = None,
    ) -> Selector:
        """A selector from what a request carries: its paths are dotted, as in `spec.nodeName`."""
        paths = tuple((tuple(path.split(".")), value) for path, value in fields.items())
        return cls(resource, namespace, paths, tuple(labels.items()), matches)

    def takes(self, thing: FrozenDict) -> bool:
        """Whether the object is one of them."""
        metadata = thing["metadata"]
        if self.namespace and metadata.get("namespace") != self.namespace:
            return False
        for path, value in self.fields:
            if (at(thing, *path) or "") != value:
                return False
        if self.matches is not None and not self.matches(thing):
            return False
        labels = metadata.get("labels") or EMPTY
        return not self.labels or all(labels.get(key) == value for key, value in self.labels)

    def event(self, change: Change) -> WatchEvent | None:
        """What a watch delivers of the change: an object that no longer fits is deleted for that watch."""
        if change.resource != self.resource:
            return None
        was = change.before is not None and self.takes(change.before)
        fits = change.type != DELETED and self.takes(change.object)
        if fits:
            return WatchEvent(MODIFIED if was else ADDED, change.object)
        return WatchEvent(DELETED, change.object) if was else None


class Watch:
    """The changes from one moment on, for one reader: iterate over it, and `stop` it in the end.

    It ends without a word when the server closes it, and raises `ApiStatusError` when it breaks; what was
    received before that is still delivered.
    """

    def __init__(self, selector: Selector, events: Iterable[WatchEvent] = (), revision: int = 0) -> None:
        self._selector = selector
        self._revision = revision
        """That of the newest change, whether it was one for this watch or not."""
        self._events = deque(events)
        self._wake = asyncio.Event()
        self._error: ApiStatusError | None = None
        self._held: deque[WatchEvent] = deque()
        self._late = 0.0
        self.ended = False

    def hear(self, change: Change) -> None:
        """Take a change, where it is one for this watch."""
        self._revision = change.revision
        event = self._selector.event(change)
        if event is None or self.ended:
            return
        self._held.append(event)
        if self._late:
            asyncio.get_running_loop().call_later(self._late, self._let_go, 1)
        else:
            self._let_go(1)

    def be_late(self, seconds: float) -> None:
        """Deliver each change so much later from now on; with 0, what is held back is delivered at once."""
        self._late = seconds
        if not seconds:
            self._let_go(len(self._held))

    def _let_go(self, count: int) -> None:
        """Deliver the oldest change held back; one still held when the watch ends is never delivered."""
        for _ in range(0 if self.ended else min(count, len(self._held))):
            self._events.append(self._held.popleft())
            self._wake.set()

    def stop(self, error: ApiStatusError | None = None) -> None:
        """End it: cleanly, or with an error."""
        if not self.ended:
            self.ended, self._error = True, error
            self._wake.set()

    def taken(self) -> list[WatchEvent]:
        """What was delivered and is not taken yet, without waiting."""
        events = list(self._events)
        self._events.clear()
        return events

    def __aiter__(self) -> AsyncIterator[WatchEvent]:
        return self

    async def __anext__(self) -> WatchEvent:
        while not self._events:
            if self._error is not None:
                raise self._error
            if self.ended:
                raise StopAsyncIteration
            self._wake.clear()
            await self._wake.wait()
        return self._events.popleft()

    def taken_up_to(self) -> int | None:
        """The revision up to which the reader has taken everything; None while something waits for it."""
        return None if self._events or self._held else self._revision

    async def aclose(self) -> None:
        """Stop it, as an asynchronous generator is closed."""
        self.stop()


class History:
    """The latest changes, as many as the window holds: a watch can begin no further back."""

    def __init__(self, window: int) -> None:
        self._changes: deque[Change] = deque(maxlen=window)
        self._forgotten = 0
        """The revision of the newest change that is no longer remembered."""

    def add(self, change: Change) -> None:
        """Remember the change, and forget the oldest where the window is full."""
        if len(self._changes) == self._changes.maxlen and self._changes:
            self._forgotten = self._changes[0].revision
        self._changes.append(change)

    def forget(self) -> None:
        """Compact: forget everything so far, so that every older resourceVersion is expired."""
        if self._changes:
            self._forgotten = self._changes[-1].revision
            self._changes.clear()

    def since(self, revision: int) -> Iterator[Change]:
        """Every change after that revision; raises `ApiStatusError` 410 where some are forgotten."""
        if revision < self._forgotten:
            raise expired(revision, self._forgotten)
        return (change for change in self._changes if change.revision > revision)
