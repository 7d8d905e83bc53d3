"""Readings: what the runtime reports of its records in lists and statuses, each piece of news once.

Lists come every second and mostly repeat themselves. A record is news when the runtime says something else of
it than the last time, or when the trace has shown a change of it since. A repeated record costs one
comparison, and a whole repeated list costs nothing.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from kubelet_conformance.trace.format.bodies import ContainerRecord, SandboxRecord
from kubelet_conformance.trace.format.records import Call, Reply
from kubelet_conformance.trace.format.replies import key_of
from kubelet_conformance.trace.world.views import Container, Sandbox

_Said: TypeAlias = tuple[ContainerRecord | SandboxRecord, str]

_REQUESTS_REMEMBERED = 10_000
_FORGET_AT = 1_000


class ReportedContainer(NamedTuple):
    """A record of a container as the runtime gave it, and what the trace had shown of it before."""

    record: ContainerRecord
    known: Container | None
    state: str
    """What it must be by what was over when the reading began; see `container_state`."""
    whole: bool
    """From ContainerStatus, which says more than a list."""


class ReportedSandbox(NamedTuple):
    """A record of a sandbox as the runtime gave it, and what the trace had shown of it before."""

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
    """What was read last of each of the world's containers and sandboxes, and in reply to each request."""

    def __init__(self, containers: Mapping[str, Container], sandboxes: Mapping[str, Sandbox]) -> None:
        self._containers = containers
        self._sandboxes = sandboxes
        self._listed: dict[str, _Said] = {}
        self._whole: dict[str, _Said] = {}
        self._read: dict[tuple[str, bytes], int] = {}
        """When the answer to each request was last read through: the seq."""
        self._news_seq = 0

    def knows(self, reply: Reply, changed_seq: int) -> bool:
        """The reply is like the last one to its request, and nothing has changed since that was read."""
        key = reply.call.request.key or key_of(reply.call)
        if reply.same:
            read = self._read.get(key, -1)
            if read >= self._news_seq and read >= changed_seq:
                return True
        if len(self._read) >= _REQUESTS_REMEMBERED:
            self._read.clear()
        self._read[key] = reply.seq
        return False

    def containers(
        self, reply: Reply, records: Sequence[ContainerRecord], *, whole: bool
    ) -> list[ReportedContainer]:
        """The news of containers; `whole` for those of ContainerStatus."""
        views, memory = self._containers, self._whole if whole else self._listed
        news: list[ReportedContainer] = []
        for record in records:
            known = views.get(record.id)
            state = container_state(known, reply.call) if known else ""
            if _is_news(memory, record, state):
                news.append(ReportedContainer(record, known, state, whole))
        if news:
            self._note_news(reply.seq)
        return news

    def sandboxes(
        self, reply: Reply, records: Sequence[SandboxRecord], *, whole: bool
    ) -> list[ReportedSandbox]:
        """The news of sandboxes; `whole` for those of PodSandboxStatus."""
        views, memory = self._sandboxes, self._whole if whole else self._listed
        news: list[ReportedSandbox] = []
        for record in records:
            known = views.get(record.id)
            state = sandbox_state(known, reply.call) if known else ""
            if _is_news(memory, record, state):
                news.append(ReportedSandbox(record, known, state, whole))
        if news:
            self._note_news(reply.seq)
        return news

    def _note_news(self, seq: int) -> None:
        """Forget readings of entities that no longer exist."""
        self._news_seq = seq
        living = len(self._containers) + len(self._sandboxes)
        for memory in (self._listed, self._whole):
            if len(memory) > 2 * living + _FORGET_AT:
                for gone in list(self._gone(memory)):
                    del memory[gone]

    def _gone(self, memory: Mapping[str, _Said]) -> Iterator[str]:
        return (each for each in memory if each not in self._containers and each not in self._sandboxes)


def _is_news(memory: dict[str, _Said], record: ContainerRecord | SandboxRecord, state: str) -> bool:
    last = memory.get(record.id)
    if last is not None and last[1] == state and last[0] == record:
        return False
    memory[record.id] = record, state
    return True
