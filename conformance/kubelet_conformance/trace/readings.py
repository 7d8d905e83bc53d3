"""What the runtime says of its records, in lists and in statuses, each piece of news once.

Lists come every second and mostly repeat themselves. A record is news when the runtime says something else
of it than the last time, or when the trace has told a change of it since. What is no news costs a comparison,
and a whole list that repeats itself costs nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from kubelet_conformance.trace.bodies import (
    ContainerRecord,
    ContainerStatusReply,
    ListContainersReply,
    ListPodSandboxReply,
    PodSandboxStatusReply,
    SandboxRecord,
)
from kubelet_conformance.trace.replies import key_of

if TYPE_CHECKING:
    from kubelet_conformance.trace.moment import Moment
    from kubelet_conformance.trace.records import Call
    from kubelet_conformance.trace.views import Container, Sandbox

__all__ = (
    "Readings",
    "ToldContainer",
    "ToldSandbox",
    "container_state",
    "sandbox_state",
)

_REQUESTS_REMEMBERED = 10_000
_FORGET_AT = 1_000


class ToldContainer(NamedTuple):
    """A record of a container as the runtime gave it, and what the trace had told of it before."""

    record: ContainerRecord
    known: Container | None
    state: str
    """What it must be by what was over when the reading began; see `container_state`."""
    whole: bool
    """From ContainerStatus, which says more than a list."""


class ToldSandbox(NamedTuple):
    """A record of a sandbox as the runtime gave it, and what the trace had told of it before."""

    record: SandboxRecord
    known: Sandbox | None
    state: str
    """What it must be by what was over when the reading began; see `sandbox_state`."""
    whole: bool
    """From PodSandboxStatus, which says more than a list."""


def container_state(container: Container, reading: Call) -> str:
    """`created`, `running` or `exited`, by what was over when the reading began; empty where it is open."""
    if container.exit is not None:
        return "exited" if container.exit.seq < reading.seq else ""
    if container.start is None:
        return "created" if container.born else ""
    return "running" if 0 < container.started_seq < reading.seq else ""


def sandbox_state(sandbox: Sandbox, reading: Call) -> str:
    """`ready` or `notready`, by what was over when the reading began; empty where it is open."""
    stops = sandbox.stops
    if any(stop.succeeded and stop.end_seq < reading.seq for stop in stops):
        return "notready"
    return "" if stops or sandbox.state != "ready" else "ready"


class Readings:
    """What was read last: of each record, and in reply to each request."""

    def __init__(self) -> None:
        self._listed: dict[str, tuple[ContainerRecord | SandboxRecord, str]] = {}
        self._whole: dict[str, tuple[ContainerRecord | SandboxRecord, str]] = {}
        self._asked: dict[tuple[str, bytes], int] = {}
        """When the answer to each request was last looked through: the seq."""
        self._news_seq = 0

    def take(self, moment: Moment) -> None:
        """Put the news of a reading into its moment, with the keys `told:...` that judges wait for."""
        key = moment.call.request.key or key_of(moment.call)
        if moment.reply.same:
            looked = self._asked.get(key, -1)
            if looked >= self._news_seq and looked >= moment.world.changed_seq:
                return
        if len(self._asked) >= _REQUESTS_REMEMBERED:
            self._asked.clear()
        self._asked[key] = moment.seq
        keys = self._read(moment)
        if keys:
            moment.keys = (*moment.keys, *keys)
        if moment.containers_told or moment.sandboxes_told:
            self._news_seq = moment.seq
            self._forget(moment)

    def _read(self, moment: Moment) -> tuple[str, ...]:
        rpc = moment.call.rpc
        if rpc == "ListContainers":
            self._containers(moment, moment.response(ListContainersReply).containers, whole=False)
        elif rpc == "ListPodSandbox":
            self._sandboxes(moment, moment.response(ListPodSandboxReply).items, whole=False)
        elif rpc == "ContainerStatus":
            status = moment.response(ContainerStatusReply).status
            self._containers(moment, [status] if status else [], whole=True)
        else:
            sandbox = moment.response(PodSandboxStatusReply).status
            self._sandboxes(moment, [sandbox] if sandbox else [], whole=True)
        news: tuple[str, ...] = ("told:container",) if moment.containers_told else ()
        news += ("told:sandbox",) if moment.sandboxes_told else ()
        return (*news, "told:list") if rpc.startswith("List") else news

    def _containers(self, moment: Moment, records: list[ContainerRecord], *, whole: bool) -> None:
        views, call = moment.world.containers, moment.call
        memory = self._whole if whole else self._listed
        news: list[ToldContainer] = []
        for record in records:
            known = views.get(record.id)
            state = container_state(known, call) if known else ""
            last = memory.get(record.id)
            if last is None or last[1] != state or last[0] != record:
                memory[record.id] = record, state
                news.append(ToldContainer(record, known, state, whole))
        moment.containers_told = news

    def _sandboxes(self, moment: Moment, records: list[SandboxRecord], *, whole: bool) -> None:
        views, call = moment.world.sandboxes, moment.call
        memory = self._whole if whole else self._listed
        news: list[ToldSandbox] = []
        for record in records:
            known = views.get(record.id)
            state = sandbox_state(known, call) if known else ""
            last = memory.get(record.id)
            if last is None or last[1] != state or last[0] != record:
                memory[record.id] = record, state
                news.append(ToldSandbox(record, known, state, whole))
        moment.sandboxes_told = news

    def _forget(self, moment: Moment) -> None:
        """Memory follows what lives."""
        world = moment.world
        living = len(world.containers) + len(world.sandboxes)
        for memory in (self._listed, self._whole):
            if len(memory) > 2 * living + _FORGET_AT:
                for gone in [i for i in memory if i not in world.containers and i not in world.sandboxes]:
                    del memory[gone]
