"""Lists and watches one selection of objects, as client-go's reflectors and informers do.

A watch that ends or breaks goes on where it was, without a list. What ends it otherwise, such as a version
that the server has forgotten (410), is raised, and the caller lists anew after a while.
"""

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import NoReturn

from kubelet_reference.server.api_client.client import GONE, TIMEOUT, ApiClient
from kubelet_reference.server.api_client.json_fields import Json, part, parts, text
from kubelet_reference.util.backoff_manager import BackoffManager
from kubelet_reference.util.ports import ApiError, Clock, Random

_LOG = logging.getLogger("kubelet_reference.reflector")
_WATCH_SECONDS = 300.0
_SLACK_SECONDS = 10.0
"""So much later than agreed a watch is ended from this side."""
_SHORT_SECONDS = 1.0
"""A watch that ended sooner, and brought nothing, is a failure."""
_PAGE = "500"


@dataclass(eq=False)
class Reflector:
    """One selection: the objects of a collection of which `fields` holds, such as spec.nodeName=node."""

    client: ApiClient
    clock: Clock
    random: Random
    path: str
    fields: str
    _version: str = field(default="", init=False)
    """The newest resourceVersion that was seen."""

    async def list_objects(self) -> tuple[list[Json], str]:
        """The objects, and the version to watch from; raises `ApiError`.

        The first list may come from the server's cache, later ones are no older than what was seen.
        """
        try:
            found, version = await self._listed(self._version)
        except ApiError as error:
            if error.code not in {GONE, TIMEOUT}:
                raise
            # The server knows no such version, or not yet: then whatever it has now.
            found, version = await self._listed(None)
        self._version = version
        return found, version

    async def _listed(self, version: str | None) -> tuple[list[Json], str]:
        query = {"fieldSelector": self.fields}
        if version is not None:
            query |= {"resourceVersion": version} if version else {"limit": _PAGE, "resourceVersion": "0"}
        items: list[Json] = []
        while True:
            page = await self.client.get(self.path, query)
            items += parts(page, "items")
            more = text(page, "metadata", "continue")
            if not more:
                return items, text(page, "metadata", "resourceVersion")
            query = {"fieldSelector": self.fields, "limit": _PAGE, "continue": more}

    async def changes(self, version: str) -> AsyncGenerator[Json]:
        """The events after a version, one watch after the other; raises `ApiError` where a list is due.

        It ends when a watch was over at once and brought nothing.
        """
        backoff = BackoffManager(self.clock, self.random)
        while True:
            began, is_empty = self.clock.monotonic(), True
            try:
                async with aclosing(self._watch(version)) as events:
                    async for event in events:
                        is_empty = False
                        seen = text(event, "object", "metadata", "resourceVersion")
                        version = self._version = seen or version
                        if event.get("type") != "BOOKMARK":
                            yield event
            except ApiError as error:
                if not error.is_passing:
                    raise
                _LOG.warning("watch of %s: %s", self.path, error)
                await backoff.wait()
                continue
            if is_empty and self.clock.monotonic() - began < _SHORT_SECONDS:
                return

    def _watch(self, version: str) -> AsyncGenerator[Json]:
        seconds = int(self.random.jitter(_WATCH_SECONDS, 1.0))
        query = {
            "allowWatchBookmarks": "true",
            "fieldSelector": self.fields,
            "resourceVersion": version,
            "timeoutSeconds": str(seconds),
            "watch": "true",
        }
        return self.client.watch(self.path, query, seconds + _SLACK_SECONDS)


class Informer:
    """A copy of the objects of one selection, kept up to date while `run` does."""

    def __init__(self, reflector: Reflector) -> None:
        self._reflector = reflector
        self._backoff = BackoffManager(reflector.clock, reflector.random)
        self._objects: dict[str, Json] = {}
        self._synced = asyncio.Event()

    def get(self, name: str) -> Json | None:
        """The object of this name as it was seen last."""
        return self._objects.get(name)

    @property
    def is_synced(self) -> bool:
        """Whether the first list was answered."""
        return self._synced.is_set()

    async def synced(self, *, within: float) -> bool:
        """Wait for the first list, so long at most; whether it was answered."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(within):
                await self._synced.wait()
        return self.is_synced

    async def run(self) -> NoReturn:
        """Follow the API server until cancelled; while it is away the copy stays as it is."""
        while True:
            try:
                await self._follow()
            except ApiError as error:
                _LOG.warning("%s: %s", self._reflector.path, error)
            await self._backoff.wait()

    async def _follow(self) -> None:
        found, version = await self._reflector.list_objects()
        self._objects = {_name(each): each for each in found}
        self._synced.set()
        async with aclosing(self._reflector.changes(version)) as events:
            async for event in events:
                thing = part(event, "object")
                if event.get("type") == "DELETED":
                    self._objects.pop(_name(thing), None)
                else:
                    self._objects[_name(thing)] = thing


def _name(thing: Json) -> str:
    return text(thing, "metadata", "name")
