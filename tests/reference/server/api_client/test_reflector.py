"""When a reflector lists and when it only watches, held against a client whose every answer is given."""

from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest
from fixed_random import FixedRandom
from on_loop import in_virtual_time

from kubelet_reference.server.api_client.reflector import Reflector
from kubelet_reference.server.host.clock import LoopClock
from kubelet_reference.util.ports import ApiError

Json = dict[str, Any]
EXPIRED, AWAY, BUSY = ApiError(410, "Expired", "old"), ApiError(0, "", "away"), ApiError(429, "", "busy")
BOOKMARK = {"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "9"}}}


def event(version: str) -> Json:
    """A pod of that version came."""
    return {"type": "ADDED", "object": {"metadata": {"name": "web", "resourceVersion": version}}}


@dataclass
class Client:
    """Answers lists and watches in order; what was asked is kept."""

    lists: list[Json | ApiError] = field(default_factory=list[Json | ApiError])
    watches: list[list[Json | float | ApiError]] = field(default_factory=list[list[Json | float | ApiError]])
    asked: list[str] = field(default_factory=list[str])

    async def get(self, path: str, query: Mapping[str, str]) -> Json:
        """A list."""
        del path
        self.asked.append(
            " ".join(f"{key}={value}" for key, value in query.items() if key != "fieldSelector")
        )
        answer = self.lists.pop(0)
        if isinstance(answer, ApiError):
            raise answer
        return answer

    async def watch(self, path: str, query: Mapping[str, str], seconds: float) -> AsyncGenerator[Json]:
        """A watch: what it delivers, how long it waits, and how it breaks."""
        del path, seconds
        now = LoopClock(0).monotonic()
        self.asked.append(f"watch {query['resourceVersion']} at {now:g}")
        for each in self.watches.pop(0):
            if isinstance(each, ApiError):
                raise each
            if isinstance(each, float | int):
                await LoopClock(0).sleep(each)
            else:
                yield each


def reflector(client: Client) -> Reflector:
    """One of that client."""
    stub: Any = client
    return Reflector(stub, LoopClock(0), FixedRandom(), "/pods", "spec.nodeName=n")


async def seen(one: Reflector, version: str) -> tuple[list[str], int | None]:
    """The versions of the events until the watches end, and the code of the error that ends them."""
    found = list[str]()
    try:
        async for each in one.changes(version):
            found.append(each["object"]["metadata"]["resourceVersion"])
    except ApiError as error:
        return found, error.code
    return found, None


@in_virtual_time
async def test_lists() -> None:
    """The first list may be cached and comes in pages; a later one is no older than what was seen."""
    pages = [
        {"metadata": {"continue": "x"}, "items": [event("1")]},
        {"metadata": {"resourceVersion": "5"}, "items": [event("2")]},
    ]
    one = reflector(
        client := Client([*pages, EXPIRED, {"metadata": {"resourceVersion": "7"}, "items": None}])
    )
    first, later = await one.list_objects(), await one.list_objects()

    assert first == ([event("1"), event("2")], "5")
    assert later == ([], "7")
    assert client.asked == ["limit=500 resourceVersion=0", "limit=500 continue=x", "resourceVersion=5", ""]


@in_virtual_time
async def test_watch_is_begun_again_from_what_was_seen() -> None:
    """After an end, a server that is away, and one that is busy; bookmarks count, and are not passed on."""
    watches: list[list[Any]] = [[event("6"), BOOKMARK], [2.0], [AWAY], [BUSY], [event("10"), EXPIRED]]
    client = Client(watches=watches)

    assert await seen(reflector(client), "5") == (["6", "10"], 410)
    assert client.asked == [
        "watch 5 at 0",
        "watch 9 at 0",
        "watch 9 at 2",
        "watch 9 at 2.8",
        "watch 9 at 4.4",
    ]


@pytest.mark.parametrize(("ending", "code"), [([], None), ([ApiError(404, "", "")], 404), ([EXPIRED], 410)])
def test_what_ends_the_watches(ending: list[Any], code: int | None) -> None:
    """A watch that was over at once and empty, and every other error, call for a list."""

    @in_virtual_time
    async def check() -> None:
        assert await seen(reflector(Client(watches=[ending])), "5") == ([], code)

    check()
