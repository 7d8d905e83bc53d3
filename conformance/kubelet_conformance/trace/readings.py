"""What the runtime says of its records, in lists and in statuses, each piece of news once.

Lists come every second and mostly repeat themselves. A record is news when the runtime says something else
of it than the last time, or when the trace has told a change of it since. What is no news costs a comparison,
and a whole list that repeats itself costs nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from kubelet_conformance.trace.bodies import ContainerRecord, SandboxRecord
from kubelet_conformance.trace.records import Call
from kubelet_conformance.trace.replies import key_of

if TYPE_CHECKING:
    from kubelet_conformance.trace.moment import Moment
    from kubelet_conformance.trace.views import Container, Sandbox


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
        self._read: dict[tuple[str, bytes], int] = {}
        """When the answer to each request was last read through: the seq."""
        self._news_seq = 0

    def knows(self, moment: Moment) -> bool:
        """The reply is like the last one to its request, and nothing has changed since that was read."""
        key = moment.call.request.key or key_of(moment.call)
        if moment.reply.same:
            read = self._read.get(key, -1)
            if read >= self._news_seq and read >= moment.world.changed_seq:
                return True
        if len(self._read) >= _REQUESTS_REMEMBERED:
            self._read.clear()
        self._read[key] = moment.seq
        return False

    def take_containers(self, moment: Moment, records: Sequence[ContainerRecord], *, whole: bool) -> None:
        """Put the news of containers into the moment, with the keys `told:...` that judges wait for."""
        views, call, memory = moment.world.containers, moment.call, self._whole if whole else self._listed
        news: list[ToldContainer] = []
        for record in records:
            known = views.get(record.id)
            state = container_state(known, call) if known else ""
            last = memory.get(record.id)
            if last is None or last[1] != state or last[0] != record:
                memory[record.id] = record, state
                news.append(ToldContainer(record, known, state, whole))
        if news:
            moment.containers_told = news
            self._note_news(moment, "told:container")
        if not whole:
            moment.keys = (*moment.keys, "told:list")

    def take_sandboxes(self, moment: Moment, records: Sequence[SandboxRecord], *, whole: bool) -> None:
        """The same for sandboxes."""
        views, call, memory = moment.world.sandboxes, moment.call, self._whole if whole else self._listed
        news: list[ToldSandbox] = []
        for record in records:
            known = views.get(record.id)
            state = sandbox_state(known, call) if known else ""
            last = memory.get(record.id)
            if last is None or last[1] != state or last[0] != record:
                memory[record.id] = record, state
                news.append(ToldSandbox(record, known, state, whole))
        if news:
            moment.sandboxes_told = news
            self._note_news(moment, "told:sandbox")
        if not whole:
            moment.keys = (*moment.keys, "told:list")

    def _note_news(self, moment: Moment, key: str) -> None:
        moment.keys = (*moment.keys, key)
        self._news_seq = moment.seq
        self._forget(moment)

    def _forget(self, moment: Moment) -> None:
        """Memory follows what lives."""
        world = moment.world
        living = len(world.containers) + len(world.sandboxes)
        for memory in (self._listed, self._whole):
            if len(memory) > 2 * living + _FORGET_AT:
                for gone in [i for i in memory if i not in world.containers and i not in world.sandboxes]:
                    del memory[gone]
