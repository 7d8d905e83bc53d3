"""The points of a play at which a fault may come: its calls, requests and probes, each by name and number."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from urllib.parse import urlsplit

from kubelet_conformance.trace.format.recorder import Item, RecordedCall, RecordedReply, Seen

_READS = ("List", "ImageFsInfo", "Version", "RuntimeConfig", "GetContainerEvents")
_STREAM = "GetContainerEvents"
_PLUGIN = frozenset({"NodePrepareResources", "NodeUnprepareResources"})
_WRITES = frozenset({"create", "update", "patch", "delete"})


class Role(StrEnum):
    """What a call does, which decides the faults that it is played with."""

    CHANGE = "change"
    """It changes something at the runtime, or runs a command in a container."""
    PLUGIN = "plugin"
    """It asks a plugin of dynamic resources."""
    WRITE = "write"
    """It writes to the API server."""
    PROBE = "probe"
    """It is a probe or a hook over the network."""
    READ = "read"
    """It is the first to read the runtime after a change."""
    POLL = "poll"
    """It reads a runtime that has not changed."""


@dataclass(frozen=True, slots=True, order=True)
class Point:
    """The call of this name with this number, counted from the start of the play."""

    call: str
    number: int
    role: Role

    def __str__(self) -> str:
        return f"{self.call}#{self.number}"


def points_of(records: Iterable[Seen]) -> list[Point]:
    """The points of a play with these records, in order; of the unchanged polls the one in the middle."""
    counts: Counter[str] = Counter()
    found: list[Point] = []
    polls: list[Point] = []
    changed = False
    for seen in records:
        if isinstance(seen, RecordedReply):
            changed |= _role(seen.call.rpc) is Role.CHANGE
            continue
        for call, role in _called(seen):
            counts[call] += 1
            if role is Role.POLL and changed:
                role, changed = Role.READ, False  # noqa: PLW2901 - what it is depends on what was before
            (polls if role is Role.POLL else found).append(Point(call, counts[call], role))
    return [*found, *polls[len(polls) // 2 :][:1]]


def _called(seen: Seen) -> Iterator[tuple[str, Role]]:
    """The call that a record is of, as faults name it."""
    if isinstance(seen, RecordedCall):
        if seen.rpc != _STREAM:
            yield seen.rpc, _role(seen.rpc)
    elif isinstance(seen, Item) and seen.kind == "api" and seen.fields["verb"] in _WRITES:
        below = seen.fields.get("subresource")
        yield f"{seen.fields['verb']} {seen.fields['resource']}{f'/{below}' if below else ''}", Role.WRITE
    elif isinstance(seen, Item) and seen.kind == "probe":
        yield _probe(seen), Role.PROBE


def _role(rpc: str) -> Role:
    if rpc in _PLUGIN:
        return Role.PLUGIN
    return Role.POLL if rpc.startswith(_READS) or rpc.endswith(("Status", "Stats")) else Role.CHANGE


def _probe(seen: Item) -> str:
    handler, fields = seen.fields["handler"], seen.fields
    match handler:
        case "httpGet":
            url: str = fields["url"]
            return f"httpGet {urlsplit(url).path}"
        case "tcpSocket":
            return f"tcpSocket {fields['port']}"
        case _:
            return f"{handler} {fields['service']}"
