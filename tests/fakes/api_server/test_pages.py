"""Long lists over HTTP, page by page."""

from api_world import pod
from on_loop import on_loop
from served_api import PODS, served_api


@on_loop
async def test_pages_are_of_one_list() -> None:
    """What changes in between is not seen, the version is the first page's, and a page may be read twice."""
    async with served_api() as api:
        for name in "abcde":
            api.core.create("pods", pod(name))
        _, first = await api.ask("GET", f"{PODS}?limit=2")
        api.core.delete("pods", "d", grace_seconds=0)
        token = first["metadata"]["continue"]
        _, second = await api.ask("GET", f"{PODS}?limit=2&continue={token}")
        _, again = await api.ask("GET", f"{PODS}?limit=2&continue={token}")
        _, last = await api.ask("GET", f"{PODS}?limit=2&continue={second['metadata']['continue']}")
        _, whole = await api.ask("GET", f"{PODS}?limit=2&resourceVersion=0")

    pages = [[each["metadata"]["name"] for each in page["items"]] for page in (first, second, last, whole)]
    assert pages == [["a", "b"], ["c", "d"], ["e"], ["a", "b", "c", "e"]]
    assert [page["metadata"].get("remainingItemCount") for page in (first, second, last)] == [3, 1, None]
    assert len({page["metadata"]["resourceVersion"] for page in (first, second, last)}) == 1
    assert again["items"] == second["items"]


@on_loop
async def test_refusals() -> None:
    """A token that is not known has expired; a limit is a number; many unread lists are forgotten."""
    async with served_api() as api:
        for name in "ab":
            api.core.create("pods", pod(name))
        _, first = await api.ask("GET", f"{PODS}?limit=1")
        for _ in range(64):
            await api.ask("GET", f"{PODS}?limit=1")
        gone = await api.ask("GET", f"{PODS}?limit=1&continue={first['metadata']['continue']}")
        bad = await api.ask("GET", f"{PODS}?limit=x")

    assert (gone[0], gone[1]["reason"]) == (410, "Expired")
    assert (bad[0], bad[1]["message"]) == (400, "limit: a number is expected, not 'x'")
