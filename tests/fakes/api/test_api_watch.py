"""Watches of the fake API server: everything after a version, in order, once, or 410."""

import asyncio

import pytest
from api_world import ApiWorld, pod, refused
from on_loop import in_virtual_time

from kubelet_fakes.api import Answer, ApiStatusError, Change, Connection, Request, Watch, WatchEvent
from kubelet_fakes.clock import run

HERE = {"spec.nodeName": "node-1"}


def reported(events: list[WatchEvent]) -> list[tuple[str, str]]:
    """Type and name of each event."""
    return [(each.type, each.object["metadata"]["name"]) for each in events]


async def rest(watch: Watch) -> list[WatchEvent]:
    """Everything until the watch ends."""
    return [event async for event in watch]


def test_watch_goes_on_where_the_list_ends() -> None:
    """Nothing is lost or reported twice between a list and a watch from its version."""
    core = ApiWorld()
    core.create("pods", pod("a"))
    version = core.list_objects("pods")[1]
    core.create("pods", pod("b"))
    watch = core.watch("pods", version)
    core.create("configmaps", {"metadata": {"name": "c"}})
    core.delete("pods", "a", grace_seconds=0)

    assert reported(watch.taken()) == [("ADDED", "b"), ("MODIFIED", "a"), ("DELETED", "a")]


@pytest.mark.parametrize("version", ["", "0"])
def test_watch_from_now_begins_with_what_is_there(version: str) -> None:
    """Without a version the watch first reports all there is."""
    core = ApiWorld()
    for name in ("b", "a"):
        core.create("pods", pod(name))
    watch = core.watch("pods", version)
    core.create("pods", pod("c"))

    assert reported(watch.taken()) == [("ADDED", "a"), ("ADDED", "b"), ("ADDED", "c")]


def test_object_that_comes_to_fit_is_added() -> None:
    """A pod bound to the node is new to the node's watch; one that stops fitting is deleted for it."""
    core = ApiWorld()
    here, labelled = core.watch("pods", fields=HERE), core.watch("pods", labels={"a": "b"})
    core.create("pods", pod(node=""))
    core.create("pods", pod("there", node="node-2"))
    core.bind("web", "node-1")
    for value in ("b", "c"):
        core.patch("pods", "web", {"metadata": {"labels": {"a": value}}})

    assert reported(here.taken()) == [("ADDED", "web"), ("MODIFIED", "web"), ("MODIFIED", "web")]
    assert reported(labelled.taken()) == [("ADDED", "web"), ("DELETED", "web")]


def test_forgotten_past_is_410() -> None:
    """A version before the window, or before a compaction, is expired; a future one has to be waited for."""
    core = ApiWorld(window=2)
    for name in "abcd":
        core.create("pods", pod(name))

    assert reported(core.watch("pods", "2").taken()) == [("ADDED", "c"), ("ADDED", "d")]
    error = refused(core.watch, "pods", "1")
    assert (error.code, error.reason, str(error)) == (410, "Expired", "too old resource version: 1 (2)")
    core.forget_history()
    assert refused(core.watch, "pods", "3").code == 410
    assert core.watch("pods", "4").taken() == []
    assert refused(core.watch, "pods", "5").code == 504
    assert refused(core.watch, "pods", "x").code == 400


def test_reader_waits_and_gets_everything() -> None:
    """A reader sleeps until there is something, and gets what was reported before the end."""

    async def main() -> tuple[list[tuple[str, str]], bool]:
        core = ApiWorld()
        watch = core.watch("pods")
        reader = asyncio.create_task(rest(watch))
        for name in ("a", "b"):
            core.create("pods", pod(name))
            await asyncio.wait([reader], timeout=1)
        core.create("pods", pod("c"))
        was_waiting = not reader.done()
        watch.stop()
        core.create("pods", pod("d"))
        return reported(await reader), was_waiting

    assert run(main()) == ([("ADDED", "a"), ("ADDED", "b"), ("ADDED", "c")], True)


def test_broken_watch_raises() -> None:
    """A watch that breaks ends with the reason."""

    async def main() -> None:
        watch = ApiWorld().watch("pods")
        watch.stop(ApiStatusError(410, "Expired", "gone"))
        await rest(watch)

    with pytest.raises(ApiStatusError, match="gone"):
        run(main())


def test_watch_that_was_closed_hears_nothing() -> None:
    """Leaving a watch frees it."""

    async def main() -> list[WatchEvent]:
        core = ApiWorld()
        watch = core.watch("pods")
        await watch.aclose()
        core.create("pods", pod())
        return await rest(watch)

    assert run(main()) == []


def test_listeners_hear_every_change() -> None:
    """A trace hears what changed, by which request and who asked; what changes nothing is silent."""
    core = ApiWorld()
    changes: list[Change] = []
    core.on_change.append(changes.append)
    kubelet = Connection(core)
    core.create("pods", pod())
    for _ in range(2):
        kubelet.patch("pods", "web", {"status": {"phase": "Running"}}, subresource="status")
    kubelet.delete("pods", "web", grace_seconds=0)

    assert [(each.type, each.verb, each.subresource, each.by) for each in changes] == [
        ("ADDED", "create", "", ""),
        ("MODIFIED", "patch", "status", "kubelet"),
        ("MODIFIED", "delete", "", "kubelet"),
        ("DELETED", "delete", "", "kubelet"),
    ]
    assert [each.revision for each in changes] == [1, 2, 3, 4]
    assert changes[1].before is changes[0].object


@in_virtual_time
async def test_outage_stops_the_client_and_not_the_world() -> None:
    """While the line is down every request fails and watches break; others go on, and it all comes back."""
    core = ApiWorld()
    kubelet = Connection(core)
    core.create("pods", pod())
    watch = kubelet.watch("pods", "1")
    with kubelet.outage():
        core.create("pods", pod("b"))
        errors = [refused(kubelet.get, "pods", "web"), refused(kubelet.watch, "pods")]

        assert [(each.code, each.reason) for each in errors] == [(0, "Unreachable")] * 2
        with pytest.raises(ApiStatusError, match="connection refused"):
            await rest(watch)
    away = kubelet.outage(503)

    assert refused(kubelet.list_objects, "pods").code == 503
    away.heal()
    assert reported(kubelet.watch("pods", "1").taken()) == [("ADDED", "b")]


def test_watches_can_end_cleanly() -> None:
    """A server closes watches now and then; a new one goes on from the last version."""

    async def main() -> tuple[list[WatchEvent], list[tuple[str, str]]]:
        core = ApiWorld()
        kubelet = Connection(core)
        watch = kubelet.watch("pods")
        kubelet.break_watches()
        core.create("pods", pod())
        return await rest(watch), reported(kubelet.watch("pods", "0").taken())

    assert run(main()) == ([], [("ADDED", "web")])


def test_fault_strikes_what_it_names() -> None:
    """A fault hits the requests that fit, so often, before or after they take effect."""
    core = ApiWorld()
    kubelet = Connection(core)
    core.create("pods", pod())
    patch = {"status": {"phase": "Running"}}
    with kubelet.faults.add("patch pods/status#1-2 before 409: again") as fault:
        for _ in range(2):
            error = refused(kubelet.patch, "pods", "web", patch, subresource="status")
            assert (error.code, error.reason, error.message) == (409, "Conflict", "again")
        kubelet.patch("pods", "web", {"metadata": {"labels": {"a": "b"}}})
        before = kubelet.get("pods", "web")["status"]["phase"]
        kubelet.patch("pods", "web", patch, subresource="status")

    assert (fault.applied, before, kubelet.get("pods", "web")["status"]["phase"]) == (2, "Pending", "Running")
    with kubelet.faults.add("delete pods after 504 name=web"):
        assert refused(kubelet.delete, "pods", "web", grace_seconds=0).code == 504
    assert refused(kubelet.get, "pods", "web").code == 404


def test_watch_can_be_refused_and_dropped() -> None:
    """A fault of the verb watch keeps it from beginning, or ends those that are open and each that begins."""
    kubelet = Connection(ApiWorld())
    with kubelet.faults.add("watch pods before 410"):
        error = refused(kubelet.watch, "pods")
    kept, dropped = kubelet.watch("nodes"), kubelet.watch("pods")
    with kubelet.faults.add("watch pods after 410"):
        again = kubelet.watch("pods")

    assert error.code == 410
    assert (kept.ended, dropped.ended, again.ended) == (False, True, True)


@in_virtual_time
async def test_late_lost_and_stale_answers() -> None:
    """A request may be late or hang, its answer may be lost, and a list may be what it was the last time."""
    core = ApiWorld()
    kubelet = Connection(core)
    loop = asyncio.get_running_loop()
    asked = Request("list", "pods")
    before = await kubelet.ask(asked)
    core.create("pods", pod())
    with kubelet.faults.add("list pods#1 stale delay=5"):
        stale, late = await kubelet.ask(asked), loop.time()
        fresh = await kubelet.ask(asked)
    lost = kubelet.faults.add("delete pods lost-reply")
    loop.call_later(10, lost.heal)
    with pytest.raises(ApiStatusError, match="connection refused"):
        await kubelet.ask(Request("delete", "pods", "default", "web", grace_seconds=0))
    hanging = kubelet.faults.add("list * hang")
    loop.call_later(10, hanging.heal)
    gone = await kubelet.ask(asked)

    assert (stale, late, len(fresh["items"])) == (before, 5.0, 1)
    assert (loop.time(), len(gone["items"])) == (25.0, 0)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("eat pods", "no request is 'eat pods'"),
        ("list pods before NOT_FOUND", "HTTP has no status"),
        ("patch pods stale", "only lists may be stale"),
        ("list pods before container=c1", "not about container"),
    ],
)
def test_what_faults_of_requests_refuse(text: str, said: str) -> None:
    """A fault that no request can have is a mistake."""
    with pytest.raises(ValueError, match=said):
        Connection(ApiWorld()).faults.add(text)


def test_answers_are_observed() -> None:
    """A trace records each request of the client with its precondition, its grace and its code."""
    core = ApiWorld()
    kubelet = Connection(core, "node-1")
    answers: list[Answer] = []
    kubelet.on_answer.append(answers.append)
    uid = kubelet.create("pods", pod())["metadata"]["uid"]
    refused(kubelet.delete, "pods", "web", uid="other")
    kubelet.delete("pods", "web", uid=uid, grace_seconds=0)
    with kubelet.outage():
        refused(kubelet.get, "pods", "web")

    assert [
        (each.request.verb, each.request.uid, each.request.grace_seconds, each.code) for each in answers
    ] == [
        ("create", None, None, 201),
        ("delete", "other", None, 409),
        ("delete", uid, 0, 200),
        ("get", None, None, 0),
    ]
    assert {each.request.by for each in answers} == {"node-1"}
