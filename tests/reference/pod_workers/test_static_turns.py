"""Static pods of one full name take turns."""

from on_loop import run_by
from workers_bench import Bench, a_pod, on_bench

from kubelet_reference.pod_workers.pod_state_queries import StaticNames
from kubelet_reference.pod_workers.worker import UpdateKind


@run_by(on_bench)
async def test_dropped_waiter_is_forgotten(bench: Bench) -> None:
    """A waiter that its source dropped without a word is discarded, and holds up nobody (WORK-27)."""
    bench.tell(a_pod("v1", static=True), UpdateKind.CREATE)
    await bench.let(1)
    bench.tell(a_pod("v2", static=True), UpdateKind.CREATE)
    bench.tell(a_pod("v3", static=True), UpdateKind.CREATE)
    await bench.let(1)
    del bench.pods["v2"]
    known = bench.workers.sync_known_pods([a_pod("v1"), a_pod("v3")])
    bench.tell(a_pod("v1", static=True), UpdateKind.KILL)
    await bench.let(30)

    assert list(known) == ["v1", "v3"]
    assert bench.syncer.rounds[-1].uid == "v3"


@run_by(on_bench)
async def test_api_pod_is_not_held_up(bench: Bench) -> None:
    """A pod of the API server with the name of a static pod starts beside it (STATIC-20)."""
    bench.tell(a_pod("static", static=True), UpdateKind.CREATE)
    bench.tell(a_pod("api"), UpdateKind.CREATE)
    await bench.let(1)

    assert [one.uid for one in bench.syncer.rounds] == ["static", "api"]


@run_by(on_bench)
async def test_mirror_stays_while_the_static_pod_stops(bench: Bench) -> None:
    """The holder of a full name is seen to be ending from the request to the last stop (STATIC-15)."""
    bench.syncer.seconds["terminating"] = 5
    bench.tell(a_pod(static=True), UpdateKind.CREATE)
    await bench.let(1)
    before = bench.workers.is_static_pod_ending("web_default")
    bench.tell(a_pod(static=True), UpdateKind.KILL)
    await bench.let(1)
    during = bench.workers.is_static_pod_ending("web_default")
    await bench.let(10)

    assert (before, during) == (False, True)
    assert not bench.workers.is_static_pod_ending("web_default")


def test_line_is_in_order_of_arrival() -> None:
    """Who came first is next, unless it no longer waits."""
    line = StaticNames()
    line.take("web_default", "holder")
    for uid in ("first", "second"):
        line.wait("web_default", uid)
        line.wait("web_default", uid)

    assert not line.may_take("web_default", "first", lambda _: True)
    line.release("web_default", "holder")
    assert line.may_take("web_default", "first", lambda _: True)
    assert not line.may_take("web_default", "second", lambda _: True)
    assert line.may_take("web_default", "second", lambda uid: uid == "second")
