"""The PLEG: what it tells, and in which order it deals with cache and events."""

import asyncio
from collections.abc import Awaitable, Callable

import grpc
import pytest
from observation import ScriptedRuntime, clock, failure, listed, records
from on_loop import run_by

from kubelet_fakes.clock import run
from kubelet_reference.api.metrics import Metrics
from kubelet_reference.api.records import ContainerState, ListedPod, PodRecords
from kubelet_reference.pleg.cache import PodCache
from kubelet_reference.pleg.generic import Pleg, PodLifecycleEvent, PodLifeCycleEventType, events_between

STARTED, DIED, REMOVED, CHANGED, MET = PodLifeCycleEventType
EVER = float("-inf")


class Watch:
    """A PLEG over scripted lists."""

    def __init__(self, *pods: ListedPod, capacity: int = 1000) -> None:
        self.runtime = ScriptedRuntime(*pods)
        self.cache = PodCache()
        self.metrics = Metrics()
        self.clock = clock()
        self.pleg = Pleg(self.runtime, self.cache, self.clock, self.metrics, capacity)

    async def relist(self, *pods: ListedPod) -> list[str]:
        """Let the runtime have these pods, relist, and return the events as "c1 Died"."""
        self.runtime.pods = pods
        await self.pleg.relist()
        return self.events()

    def events(self) -> list[str]:
        """The events that nobody has taken yet."""
        found: list[str] = []
        while not self.pleg.events.empty():
            event = self.pleg.events.get_nowait()
            found.append(f"{event.data} {event.kind.name.capitalize()}")
        return found


def on_watch(work: Callable[[Watch], Awaitable[None]], *pods: ListedPod, capacity: int = 1000) -> None:
    """Do this work with a PLEG in virtual time."""

    async def main() -> None:
        await work(Watch(*pods, capacity=capacity))

    run(main())


CREATED, RUNNING, EXITED, UNKNOWN, GONE = "created", "running", "exited", "unknown", ""


@pytest.mark.parametrize(
    ("old", "new", "kinds"),
    [
        (GONE, CREATED, [CHANGED]),
        (GONE, RUNNING, [STARTED]),
        (GONE, EXITED, [DIED]),
        (GONE, UNKNOWN, [CHANGED]),
        (CREATED, RUNNING, [STARTED]),
        (CREATED, EXITED, [DIED]),
        (CREATED, UNKNOWN, [CHANGED]),
        (CREATED, GONE, [DIED, REMOVED]),
        (RUNNING, CREATED, [CHANGED]),
        (RUNNING, EXITED, [DIED]),
        (RUNNING, UNKNOWN, [CHANGED]),
        (RUNNING, RUNNING, []),
        (RUNNING, GONE, [DIED, REMOVED]),
        (EXITED, CREATED, [CHANGED]),
        (EXITED, RUNNING, [STARTED]),
        (EXITED, UNKNOWN, [CHANGED]),
        (EXITED, GONE, [REMOVED]),
        (UNKNOWN, CREATED, [CHANGED]),
        (UNKNOWN, RUNNING, [STARTED]),
        (UNKNOWN, EXITED, [DIED]),
        (UNKNOWN, GONE, [DIED, REMOVED]),
    ],
)
def test_transitions(old: str, new: str, kinds: list[PodLifeCycleEventType]) -> None:
    """Each step of a container between two relists means what PLEG-03 says."""
    before = listed("u", c1=old) if old else listed("u")
    after = listed("u", c1=new) if new else listed("u")

    assert events_between(before, after) == tuple(PodLifecycleEvent("u", kind, "c1") for kind in kinds)


def test_a_pod_that_vanished_has_lost_everything() -> None:
    """A pod in the old list only has died and is removed, its sandbox included (PLEG-03, PLEG-04)."""
    assert [(event.data, event.kind) for event in events_between(listed("u", c1="EXITED"), None)] == [
        ("c1", REMOVED),
        ("s-u", DIED),
        ("s-u", REMOVED),
    ]


@run_by(on_watch)
async def test_only_what_others_can_rely_on_is_reported(watch: Watch) -> None:
    """A created container leads to an inspection and to no event (PLEG-03)."""
    assert await watch.relist(listed("u", c1="CREATED")) == ["s-u Started"]
    assert await watch.relist(listed("u", c1="UNKNOWN")) == []
    assert await watch.relist(listed("u", c1="RUNNING")) == ["c1 Started"]
    assert watch.runtime.calls == ["list", "u", "list", "u", "list", "u"]


@run_by(on_watch)
async def test_the_death_of_a_sandbox_is_reported(watch: Watch) -> None:
    """A sandbox counts as a container (PLEG-04)."""
    await watch.relist(listed("u", c1="RUNNING"))

    assert await watch.relist(listed("u", sandbox="EXITED", c1="RUNNING")) == ["s-u Died"]


@run_by(on_watch, listed("u", c1="RUNNING"), listed("v", c2="EXITED"))
async def test_the_first_relist_inspects_every_pod(watch: Watch) -> None:
    """After a start nothing is known, so that all pods with records are read (PLEG-18)."""
    await watch.pleg.relist()

    assert watch.runtime.calls == ["list", "u", "v"]
    assert watch.cache.get("v") == records(listed("v", c2="EXITED"))


@run_by(on_watch)
async def test_only_changed_pods_are_inspected(watch: Watch) -> None:
    """Of many pods the one that changed is read, and no other (PLEG-02)."""
    others = [listed(f"u{number}", c="RUNNING") for number in range(100)]
    await watch.relist(*others, listed("u", c1="RUNNING"))
    watch.runtime.calls.clear()
    await watch.relist(*others, listed("u", c1="EXITED"))

    assert watch.runtime.calls == ["list", "u"]


@run_by(on_watch)
async def test_a_failed_list_changes_nothing(watch: Watch) -> None:
    """From a list that fails no death is concluded, and time stands still (PLEG-01, K8S-29012)."""
    await watch.relist(listed("u", c1="RUNNING"))
    watch.runtime.list_error = failure()
    await watch.clock.sleep(1)

    assert await watch.relist() == []
    assert watch.cache.get("u").is_running
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(1):
            await watch.cache.get_newer_than("u", 0.5)


@run_by(on_watch, listed("u", c1="RUNNING"))
async def test_the_cache_is_written_before_the_event_is_reported(watch: Watch) -> None:
    """The reader of an event finds its cause in the cache (PLEG-05)."""
    await watch.pleg.relist()
    watch.runtime.pods = (listed("u", c1="EXITED"),)
    relisting = asyncio.ensure_future(watch.pleg.relist())
    await watch.pleg.events.get()
    died = await watch.pleg.events.get()

    assert died.kind is STARTED
    assert (await watch.pleg.events.get()).kind is DIED
    assert watch.cache.get("u").containers[0].has_exited
    await relisting


@run_by(on_watch)
async def test_a_failed_inspection_holds_the_event_back(watch: Watch) -> None:
    """The event comes with the relist that can read the pod, though the lists are the same (PLEG-05)."""
    await watch.relist(listed("u", c1="RUNNING"))
    watch.runtime.errors["u"] = failure()
    died = (listed("u", c1="EXITED"),)

    assert await watch.relist(*died) == []
    with pytest.raises(grpc.RpcError):
        await watch.cache.get_newer_than("u", EVER)
    assert await watch.relist(*watch.runtime.pods) == []

    watch.runtime.errors.clear()
    watch.runtime.pods = died
    await watch.pleg.relist()

    assert watch.events() == ["c1 Died"]
    assert await watch.cache.get_newer_than("u", EVER) == watch.cache.get("u")


@run_by(on_watch)
async def test_a_pod_that_is_again_what_it_was_is_inspected_all_the_same(watch: Watch) -> None:
    """A failed inspection is repeated even if nothing is left to tell: the error must go (K8S-53207)."""
    running = listed("u", c1="RUNNING")
    await watch.relist(running)
    watch.runtime.errors["u"] = failure()
    await watch.relist(listed("u", c1="UNKNOWN"))
    watch.runtime.errors.clear()

    assert await watch.relist(running) == []
    assert await watch.cache.get_newer_than("u", EVER) == watch.cache.get("u")
    watch.runtime.calls.clear()
    await watch.relist(running)
    assert watch.runtime.calls == ["list"]


@run_by(on_watch)
async def test_a_failing_pod_holds_up_no_other(watch: Watch) -> None:
    """One pod that cannot be read keeps neither events nor time from the others (K8S-94829)."""
    watch.runtime.errors["u"] = failure(grpc.StatusCode.DEADLINE_EXCEEDED)

    assert await watch.relist(listed("u", c1="RUNNING"), listed("v", c2="RUNNING")) == [
        "c2 Started",
        "s-v Started",
    ]
    assert (await watch.cache.get_newer_than("w", -1)) == PodRecords("w")


@run_by(on_watch)
async def test_a_pod_that_is_gone_leaves_the_cache(watch: Watch) -> None:
    """Records that came and went between two relists are reported and forgotten (PLEG-07, K8S-22155)."""
    await watch.relist(listed("u", c1="RUNNING"))

    assert await watch.relist() == ["c1 Died", "c1 Removed", "s-u Died", "s-u Removed"]
    assert watch.cache.get("u") == PodRecords("u")
    assert watch.runtime.calls == ["list", "u", "list"]


@run_by(on_watch, capacity=5)
async def test_a_full_queue_drops_events(watch: Watch) -> None:
    """When nobody takes events the relist goes on, and what is dropped is counted (PLEG-09, K8S-72482)."""
    pods = [listed(f"u{number}", c="RUNNING") for number in range(10)]
    watch.runtime.pods = tuple(pods)
    await watch.pleg.relist()

    assert watch.pleg.events.qsize() == 5
    assert b"kubelet_pleg_discard_events 15.0" in watch.metrics.exposition()
    assert all(watch.cache.get(pod.uid).is_running for pod in pods)


@run_by(on_watch)
async def test_an_ended_pod_keeps_its_addresses(watch: Watch) -> None:
    """Without a ready sandbox the last known IPs stay; a ready sandbox without any has none."""
    watch.runtime.ips["u"] = ("10.0.0.1",)
    await watch.relist(listed("u", c1="RUNNING"))
    watch.runtime.ips.clear()
    await watch.relist(listed("u", sandbox="EXITED", c1="EXITED"))

    assert watch.cache.get("u").ips == ("10.0.0.1",)

    await watch.relist(listed("u", sandbox="RUNNING", c1="EXITED"))

    assert watch.cache.get("u").ips == ()


def test_relists_are_a_second_apart() -> None:
    """The period counts from the end of a relist, and a hanging list delays the next (PLEG-13)."""

    class Slow(ScriptedRuntime):
        """Takes half a second to answer."""

        async def list_pods(self) -> tuple[ListedPod, ...]:
            moments.append(clock().monotonic())
            await clock().sleep(0.5)
            return ()

    moments: list[float] = []

    async def work(watch: Watch) -> None:
        pleg = Pleg(Slow(), watch.cache, watch.clock, Metrics())
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(5):
                await pleg.run()

        assert moments == [0, 1.5, 3, 4.5]

    on_watch(work)


@run_by(on_watch)
async def test_health(watch: Watch) -> None:
    """Unhealthy before the first success, and again when none came for three minutes (PLEG-08)."""
    assert watch.pleg.healthy() == "pleg has yet to be successful"

    await watch.pleg.relist()
    await watch.clock.sleep(180)
    assert watch.pleg.healthy() is None

    watch.runtime.list_error = failure()
    await watch.clock.sleep(1)
    await watch.pleg.relist()
    assert watch.pleg.healthy() == "pleg was last seen active 3m1s ago; threshold is 3m0s"


def test_states_of_lists_are_those_of_the_cri() -> None:
    """Every state that a list can show has its row among the transitions."""
    assert {state.value for state in ContainerState} == {CREATED, RUNNING, EXITED, UNKNOWN}


@run_by(on_watch)
async def test_a_watched_pod_is_inspected_until_what_is_awaited_holds(watch: Watch) -> None:
    """A pod that is watched is read at each relist; its worker gets one notice when it is met (PLEG-17)."""
    await watch.relist(listed("u", c1="RUNNING"))
    holds: list[bool] = []
    watch.pleg.watch("u", "c1:cpu", lambda _: bool(holds))
    watch.runtime.calls.clear()
    for _ in range(2):
        assert await watch.relist(*watch.runtime.pods) == []
    holds.append(True)
    await watch.pleg.relist()
    assert [event.kind for event in taken(watch)] == [MET]
    await watch.pleg.relist()
    assert watch.runtime.calls == ["list", "u", "list", "u", "list", "u", "list"]


@run_by(on_watch)
async def test_watched_pod_that_is_gone_keeps_nobody_waiting(watch: Watch) -> None:
    """What is awaited of a pod without records is asked of these, and nothing is inspected."""
    watch.pleg.watch("u", "c1:cpu", lambda records: not records.containers)
    await watch.relist()
    await watch.relist()
    assert watch.runtime.calls == ["list", "list"]


def taken(watch: Watch) -> list[PodLifecycleEvent]:
    """The events that nobody has taken yet."""
    found: list[PodLifecycleEvent] = []
    while not watch.pleg.events.empty():
        found.append(watch.pleg.events.get_nowait())
    return found
