"""The evented PLEG: what it writes and tells, what it leaves alone, and what it does unheard."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

import grpc
import pytest
from decisions_bench import a_record
from msgspec.structs import replace
from observation import START_NS, ScriptedRuntime, clock, failure, listed
from on_loop import run_by

from kubelet_fakes.clock import run
from kubelet_reference.api.metrics import Metrics
from kubelet_reference.api.records import ContainerRecord, ContainerState, PodRecords, SandboxRecord
from kubelet_reference.cri.container_events import ContainerEvent, ContainerEventType, with_event
from kubelet_reference.pleg.cache import PodCache
from kubelet_reference.pleg.evented import EventedPleg
from kubelet_reference.pleg.generic import SLOW, USUAL, Pleg, PodLifecycleEvent, PodLifeCycleEventType

CREATED, STARTED, STOPPED, DELETED = ContainerEventType
STATES = {CREATED: ContainerState.CREATED, STARTED: ContainerState.RUNNING}


def container(name: str, state: ContainerState, *, made: int = 2) -> ContainerRecord:
    """A record of a container whose id is its name."""
    return replace(a_record(name, state), id=name, hash="", created_at=made)


def an_event(
    kind: ContainerEventType, record_id: str = "c1", *, at: float = 1, sandbox: str = "s1", **containers: str
) -> ContainerEvent:
    """An event of the second `at`; `containers` by id, c1 as it follows from the event unless given."""
    records = containers or ({} if kind is DELETED else {"c1": STATES.get(kind, ContainerState.EXITED)})
    return ContainerEvent(
        uid="u",
        name="web",
        namespace="default",
        kind=kind,
        record_id=record_id,
        created_at=START_NS + int(at * 1e9),
        sandbox=SandboxRecord(sandbox, 0, 1, ready=True, host_network=False, ips=("10.0.0.9",)),
        containers=tuple(container(name, ContainerState(state.lower())) for name, state in records.items()),
    )


class Ear:
    """An evented PLEG over a runtime whose lists and news a test writes."""

    def __init__(self) -> None:
        self.runtime = ScriptedRuntime(listed("u", c1="running"))
        self.cache = PodCache()
        self.pleg = Pleg(self.runtime, self.cache, clock(), Metrics())
        self.evented = EventedPleg(self.pleg, self.container_events, self.cache, clock())
        self.queue: asyncio.Queue[ContainerEvent | grpc.RpcError] = asyncio.Queue()
        self.opened = 0

    async def container_events(self) -> AsyncIterator[ContainerEvent]:
        """What the test puts on the queue; an error breaks the stream."""
        self.opened += 1
        while isinstance(one := await self.queue.get(), ContainerEvent):
            yield one
        raise one

    def records(self) -> list[str]:
        """The events that nobody has taken yet."""
        found: list[str] = []
        while not self.pleg.events.empty():
            event = self.pleg.events.get_nowait()
            found.append(f"{event.data} {event.kind.name.capitalize()}")
        return found

    def states(self) -> dict[str, str]:
        """The containers in the cache."""
        return {one.id: one.state for one in self.cache.get("u").containers}


def listening(work: Callable[[Ear], Awaitable[None]]) -> None:
    """Do this work beside an evented PLEG that runs on virtual time."""

    async def records() -> None:
        ear = Ear()
        hearing = asyncio.ensure_future(ear.evented.run())
        await asyncio.sleep(0.5)  # noqa: TID251 - virtual time
        ear.records()
        await work(ear)
        hearing.cancel()

    run(records())


def taken(*every: ContainerEvent) -> Ear:
    """One that has taken these events."""

    async def records() -> Ear:
        ear = Ear()
        for each in every:
            ear.evented.take(each)
        return ear

    return run(records())


@pytest.mark.parametrize(
    ("kind", "records"),
    [
        (CREATED, []),
        (STARTED, ["c1 Started"]),
        (STOPPED, ["c1 Died"]),
        (DELETED, ["c1 Died", "c1 Removed"]),
    ],
)
def test_what_events_mean(kind: ContainerEventType, records: list[str]) -> None:
    """Each kind of event is passed on as PLEG-14 says; a creation only changes the cache."""
    ear = taken(an_event(kind, at=0))

    assert ear.records() == records
    assert ear.states() == ({} if kind is DELETED else {"c1": STATES.get(kind, "exited")})


def test_late_event_changes_nothing() -> None:
    """What is older than what is known is left alone, and nobody hears of it (PLEG-16)."""
    ear = taken(an_event(STARTED, at=-1), an_event(CREATED, at=-2), an_event(STOPPED, at=-3))

    assert ear.records() == ["c1 Started"]
    assert ear.states() == {"c1": "running"}


def test_event_tells_of_one_sandbox_only() -> None:
    """Records of the pod's other sandboxes stay, and what the sandbox has no more goes."""
    old = container("old", ContainerState.EXITED, made=0)
    gone = container("gone", ContainerState.EXITED)
    sandboxes = (SandboxRecord("s0", 0, 0, ready=False, host_network=False, ips=()),)
    known = PodRecords("u", sandboxes=sandboxes, containers=(gone, old))
    records = with_event(known, an_event(STARTED), {"gone"}.__contains__)

    assert [one.id for one in records.containers] == ["c1", "old"]
    assert [one.id for one in records.sandboxes] == ["s1", "s0"]
    assert records.ips == ("10.0.0.9",)


def test_pod_whose_sandbox_went_is_empty() -> None:
    """A sandbox that was removed takes its containers with it; nothing is left of the pod then."""
    ear = taken(an_event(STARTED, at=-2), an_event(DELETED, "s1", at=-1))

    assert ear.cache.get("u") == PodRecords("u")
    assert ear.records() == ["c1 Started", "s1 Died", "s1 Removed"]


@run_by(listening)
async def test_while_it_hears_it_lists_seldom(ear: Ear) -> None:
    """The runtime is listed every five minutes, and counts as unseen after ten (PLEG-14)."""
    await asyncio.sleep(290)  # noqa: TID251 - virtual time
    assert ear.runtime.calls.count("list") == 1
    await asyncio.sleep(20)  # noqa: TID251 - virtual time
    assert ear.runtime.calls.count("list") == 2
    assert ear.pleg.pace == SLOW


@run_by(listening)
async def test_silence_is_news_as_well(ear: Ear) -> None:
    """A worker of a pod of which no event comes goes on within five seconds (PLEG-06)."""
    await asyncio.wait_for(ear.cache.get_newer_than("u", 0.5), 6)


@run_by(listening)
async def test_each_break_is_followed_by_a_look(ear: Ear) -> None:
    """When the stream breaks the runtime is listed, and the stream is opened again (PLEG-15)."""
    ear.queue.put_nowait(failure())
    await asyncio.sleep(0.1)  # noqa: TID251 - virtual time
    assert (ear.opened, ear.runtime.calls.count("list")) == (2, 2)
    ear.queue.put_nowait(an_event(STOPPED, at=0.6))
    await asyncio.sleep(0.1)  # noqa: TID251 - virtual time
    assert ear.records() == ["c1 Died"]


@run_by(listening)
async def test_stream_is_given_up_after_five_breaks(ear: Ear) -> None:
    """From then on the runtime is listed each second (PLEG-15, K8S-129827)."""
    for _ in range(5):
        ear.queue.put_nowait(failure())
    await asyncio.sleep(10)  # noqa: TID251 - virtual time
    assert (ear.opened, ear.pleg.pace) == (5, USUAL)
    assert ear.runtime.calls.count("list") > 10
    ear.runtime.pods = (listed("u", c1="exited"),)
    await asyncio.sleep(1.1)  # noqa: TID251 - virtual time
    assert "c1 Died" in ear.records()


@run_by(listening)
async def test_relist_overwrites_older_news(ear: Ear) -> None:
    """What a relist finds later than an event overwrites it."""
    ear.evented.take(an_event(STARTED, at=0.5))
    ear.runtime.pods = (listed("u", c1="exited"),)
    await ear.pleg.relist()
    assert ear.states() == {"c1": "exited"}
    assert PodLifeCycleEventType.DIED in {event.kind for event in _taken(ear)}


def _taken(ear: Ear) -> list[PodLifecycleEvent]:
    found: list[PodLifecycleEvent] = []
    while not ear.pleg.events.empty():
        found.append(ear.pleg.events.get_nowait())
    return found
