"""Write what is observed as records, piece by piece: each file is a trace by itself.

A piece ends when it is large enough, in a moment without open calls if one comes in time. The next one begins
in the middle of the node's life: its header says so, what stands is stated again, and the reply to a call
that began in an earlier piece is in neither, as for any recorder that came too late for the call.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec

from kubelet_conformance.recording.bodies import Bodies, name_of
from kubelet_conformance.recording.rotation import Piece, Pieces
from kubelet_conformance.tap.events import (
    CLIENT_GONE,
    UNDECODABLE,
    Answered,
    CallBegan,
    CallEnded,
    Note,
    Observation,
    PeerChange,
    StreamItem,
)
from kubelet_conformance.tap.messages import streams
from kubelet_conformance.trace.format.header import Header
from kubelet_conformance.trace.format.records import Record
from kubelet_conformance.trace.format.writer import Writer
from kubelet_conformance.trace.redaction.api_secrets import redacted_fields
from kubelet_conformance.trace.redaction.carried_over import CarriedOverState
from kubelet_conformance.trace.world.in_flight import RUNTIME_AWAY

BACK = f"healed: {RUNTIME_AWAY}"
"""What is recorded when it can be reached again."""

_NS = 1_000_000_000
_SECONDS_DIGITS = 6
_OVERSIZE_FACTOR = 1.1
"""How much larger than asked a piece may become while it waits for a moment without open calls."""


@dataclass(slots=True)
class Counts:
    """What was recorded so far."""

    records: int = 0
    calls: int = 0
    clients: int = 0
    """Clients that are connected."""
    undecodable: int = 0
    """Connections of which something was lost."""
    t: float = 0.0


@dataclass(frozen=True, slots=True)
class _Open:
    service: str
    rpc: str
    request: msgspec.Raw
    streams: bool


class Transcript:
    """Takes every observation in order and writes it.

    Args:
        pieces: Where to.
        header: What each piece begins with.
        bodies: Makes JSON of messages.
        started_ns: The monotonic clock at `t` 0.
        max_bytes: How large a piece becomes.
        begun: Called with each new piece, and may return a listener for its records.
    """

    def __init__(  # noqa: PLR0913 - the parts of a recording
        self,
        pieces: Pieces,
        header: Header,
        bodies: Bodies,
        *,
        started_ns: int,
        max_bytes: int,
        begun: Callable[[str, Header], Callable[[Record], None] | None] | None = None,
        ended: Callable[[], None] | None = None,
    ) -> None:
        self.counts = Counts()
        self._pieces = pieces
        self._header = header
        self._bodies = bodies
        self._started_ns = started_ns
        self._max_bytes = max_bytes
        self._begun = begun
        self._ended = ended
        self._open: dict[str, _Open] = {}
        """Calls under way that began in this piece."""
        self._unary = 0
        self._standing = CarriedOverState()
        self._piece: Piece
        self._writer: Writer
        self._begin()

    def seconds(self, at_ns: int) -> float:
        """The time of a record: seconds since the start, which never fall."""
        return max(self.counts.t, round((at_ns - self._started_ns) / _NS, _SECONDS_DIGITS))

    def observe(self, observation: Observation) -> None:
        """Write one observation."""
        match observation:
            case CallBegan():
                self._call(observation)
            case Answered() | CallEnded():
                self._reply(observation)
            case StreamItem():
                self._item(observation)
            case PeerChange():
                self._peer(observation)
            case Note() if observation.data:
                self.record(observation.at_ns, "stall", msgspec.json.decode(observation.data))
                return
            case _:
                return
        self._turn_over()

    def record(self, at_ns: int, kind: str, fields: dict[str, Any]) -> None:
        """Write any record that is no call and no reply."""
        t = self.seconds(at_ns)
        self._standing.take(t, kind, fields)
        self._write(t, kind, fields)
        self._turn_over()

    def narrow(self, at_ns: int, channel: str, value: str) -> None:
        """A channel can be trusted for less from here on: a new piece begins, whose header says so."""
        if getattr(self._header.channels, channel) != value:
            channels = msgspec.structs.replace(self._header.channels, **{channel: value})
            self._header = msgspec.structs.replace(self._header, channels=channels)
            self._cut(self.seconds(at_ns))

    def flush(self) -> None:
        """Hand what was written to the system."""
        self._piece.flush()

    def end(self, at_ns: int) -> None:
        """Observation stops."""
        self._finish(self.seconds(at_ns))

    def _call(self, observation: CallBegan) -> None:
        t, name = self.seconds(observation.at_ns), name_of(observation.service, observation.rpc)
        request = self._bodies.request(observation.service, observation.rpc, observation.request)
        is_stream = bool(streams(observation.service, observation.rpc))
        try:
            self._writer.call(t, name, observation.id, request)
        except ValueError:  # Longer than a line may be.
            request = self._bodies.opaque(b"")
            self._writer.call(t, name, observation.id, request)
        self._open[observation.id] = _Open(observation.service, observation.rpc, request, is_stream)
        self._unary += not is_stream
        self.counts.calls += 1
        self._count(t)

    def _reply(self, observation: Answered | CallEnded) -> None:
        call = self._open.pop(observation.id, None)
        if call is None:
            return  # It began in an earlier piece.
        self._unary -= not call.streams
        t = self.seconds(observation.at_ns)
        if isinstance(observation, Answered):
            body = self._bodies.response(call.service, call.rpc, observation.response)
            try:
                self._writer.reply(t, observation.id, body)
            except ValueError:
                self._writer.reply(t, observation.id, self._bodies.opaque(b""))
        elif observation.code == "OK":
            self._writer.reply(t, observation.id)
        elif observation.message == CLIENT_GONE:
            return  # The client was gone and never received an answer: the call stays without a reply.
        else:
            self._writer.failed(t, observation.id, observation.code, self._bodies.text(observation.message))
        self._count(t)

    def _item(self, observation: StreamItem) -> None:
        call = self._open.get(observation.id)
        if call is not None:
            body = self._bodies.response(call.service, call.rpc, observation.message)
            name = name_of(call.service, call.rpc)
            fields = {"rpc": name, "id": observation.id, "message": body}
            t = self.seconds(observation.at_ns)
            try:
                self._writer.record(t, "message", **fields)
            except ValueError:
                self._writer.record(t, "message", **{**fields, "message": self._bodies.opaque(b"")})
            self._count(t)

    def _peer(self, observation: PeerChange) -> None:
        if observation.what == "runtime away":
            self.record(observation.at_ns, "fault", {"what": RUNTIME_AWAY, "why": observation.why or None})
        elif observation.what == "runtime back":
            self.record(observation.at_ns, "fault", {"what": BACK})
        elif observation.what == "client connected":
            self.counts.clients += 1
        elif observation.what == "client gone":
            self.counts.clients -= 1
        elif observation.what.startswith(UNDECODABLE):
            self._lose(observation)

    def _lose(self, observation: PeerChange) -> None:
        """Calls are missing from here on."""
        self.counts.undecodable += 1
        self.narrow(observation.at_ns, "cri", "sampled")
        self.record(observation.at_ns, "fault", {"what": f"a connection {observation.what}"})

    def _write(self, t: float, kind: str, fields: dict[str, Any]) -> None:
        redactor = self._bodies.redactor
        written = fields if redactor is None else redacted_fields(redactor, kind, fields)
        self._writer.record(t, kind, **written)
        self._count(t)

    def _count(self, t: float) -> None:
        self.counts.records += 1
        self.counts.t = t

    def _turn_over(self) -> None:
        size = self._piece.written
        if size >= self._max_bytes and (self._unary == 0 or size >= _OVERSIZE_FACTOR * self._max_bytes):
            self._cut(self.counts.t)

    def _cut(self, t: float) -> None:
        self._finish(t)
        self._begin()

    def _begin(self) -> None:
        """Begin a new piece, which states again what stands."""
        t = self.counts.t
        self._piece = self._pieces.open_next()
        listener = self._begun(str(self._piece.path), self._header) if self._begun is not None else None
        self._writer = Writer(self._piece, self._header, listener)
        for kind, fields in self._standing.records():
            self._write(t, kind, fields)
        going_on = {call_id: call for call_id, call in self._open.items() if call.streams}
        for call_id, call in going_on.items():
            self._writer.call(t, name_of(call.service, call.rpc), call_id, call.request)
            self._count(t)
        self._open, self._unary = going_on, 0

    def _finish(self, t: float) -> None:
        self._writer.end(max(t, self.counts.t))
        self._count(max(t, self.counts.t))
        self._piece.close()
        if self._ended is not None:
            self._ended()
