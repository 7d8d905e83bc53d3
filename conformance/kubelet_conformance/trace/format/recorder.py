"""Collects the records of a run in order, and writes them as a trace at its end.

Requests and responses are kept as the messages they came as: turning one into JSON costs more than the
call itself in process, and equal replies, of which there are many, never need it twice.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, BinaryIO, cast

import msgspec
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.json_format import MessageToDict
from google.protobuf.message import Message

from kubelet_conformance.trace.format.header import Header
from kubelet_conformance.trace.format.records import Body, Record
from kubelet_conformance.trace.format.writer import Writer

_TEXTS_REMEMBERED = 4_000


class RecordedCall(msgspec.Struct, frozen=True, gc=False):
    """A call began."""

    t: float
    rpc: str
    id: str
    request: Message


@dataclass(frozen=True, slots=True)
class Failed:
    """How a call failed: `code` is gRPC's name; `effect` is False if a fault kept it from taking place."""

    code: str
    message: str
    effect: bool = True


class RecordedReply(msgspec.Struct, frozen=True, gc=False):
    """A call ended, well or not."""

    t: float
    call: RecordedCall
    outcome: Message | Failed

    @property
    def response(self) -> Message:
        """The response of a call that succeeded; `TypeError` for any other."""
        if isinstance(self.outcome, Failed):
            raise TypeError(f"{self.call.rpc} failed and has no response")
        return self.outcome


class Item(msgspec.Struct, frozen=True):
    """A record of any other kind."""

    t: float
    kind: str
    fields: dict[str, Any]


Seen = RecordedCall | RecordedReply | Item


class Recorder:
    """Takes records in order; `now` returns the seconds since the start. Listeners receive each at once.

    What is in `ahead` is called before a record that is no reply is made, with its kind and its fields, or
    with the RPC and the request of a call: what it records comes before.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        self.now = now
        self._calls = 0
        self.records: list[Seen] = []
        self.listeners: list[Callable[[Seen], None]] = []
        self.ahead: list[Callable[[str, Message | dict[str, Any]], None]] = []

    def call(self, rpc: str, request: Message) -> RecordedCall:
        """A call begins; its reply is recorded with what this returns."""
        for look in self.ahead:
            look(rpc, request)
        self._calls += 1
        call = RecordedCall(self.now(), rpc, f"c{self._calls}", request)
        self._take(call)
        return call

    def reply(self, call: RecordedCall, outcome: Message | Failed) -> None:
        """A call ends."""
        self._take(RecordedReply(self.now(), call, outcome))

    def record(self, kind: str, **fields: Any) -> None:  # noqa: ANN401 - JSON values of any type
        """Anything else; a field that is None is left out when written."""
        for look in self.ahead:
            look(kind, fields)
        self._take(Item(self.now(), kind, fields))

    def insert(self, place: int, kind: str, **fields: Any) -> None:  # noqa: ANN401 - see `record`
        """Put something before the record at that place, at its time: it must have been so by then.

        Listeners do not receive it.
        """
        t = self.records[place].t
        self.records.insert(place, Item(t, kind, fields))

    def _take(self, seen: Seen) -> None:
        self.records.append(seen)
        for listener in self.listeners:
            listener(seen)

    def follow(self, header: Header, on_record: Callable[[Record], None]) -> None:
        """Call `on_record` with each record as a reader of the trace returns it, those so far included."""
        writer, encoded = Writer(cast("BinaryIO", _Nowhere()), header, on_record), _Encoded()
        for seen in self.records:
            _write(writer, seen, encoded)
        self.listeners.append(lambda seen: _write(writer, seen, encoded))

    def write(self, file: BinaryIO, header: Header) -> int:
        """Write everything as a trace that ends now; how many records it has."""
        encoded = _Encoded()
        with Writer(file, header) as writer:
            for seen in self.records:
                _write(writer, seen, encoded)
            return writer.end(max(self.now(), self.records[-1].t if self.records else 0.0))


class _Nowhere:
    """A file that keeps nothing."""

    def write(self, data: bytes) -> int:
        """Take the bytes."""
        return len(data)


class _Asked(msgspec.Struct):
    """A request as it is written, and the latest answer to it as it came and as it is written."""

    request: Body
    answer: Message | None = None
    response: Body | None = None


class _Encoded:
    """The JSON of messages: an equal message of the same rpc, the latest one, is not encoded again."""

    def __init__(self) -> None:
        self._asked: dict[tuple[str, bytes], _Asked] = {}
        self._known: dict[int, _Asked] = {}
        """The same by the id of each request, which stays its own as long as the record is kept."""

    def response(self, call: RecordedCall, response: Message) -> Body:
        """The JSON of a response."""
        asked = self.asked(call)
        if asked.response is None or not (asked.answer is response or asked.answer == response):
            asked.answer, asked.response = response, _body(response)
        return asked.response

    def asked(self, call: RecordedCall) -> _Asked:
        """What is known of a request."""
        return self._known.get(id(call.request)) or self._first_asked(call)

    def _first_asked(self, call: RecordedCall) -> _Asked:
        request = call.request
        key = call.rpc, request.SerializeToString(deterministic=True)
        asked = self._asked.get(key)
        if asked is None:
            asked = self._asked[key] = _Asked(_body(request))
        self._known[id(request)] = asked
        return asked


def _body(message: Message) -> Body:
    return Body(_json_of(message))


def _json_of(message: Message) -> msgspec.Raw:
    # mypy takes the hash of a message for that of its type.
    return _json(type(message), message.SerializeToString(deterministic=True))  # type: ignore[arg-type]


@lru_cache(maxsize=_TEXTS_REMEMBERED)
def _json(kind: type[Message], content: bytes) -> msgspec.Raw:
    """The JSON of a message; the runs of a node in one process have much in common.

    So have two lists, of which one item differs: each item is a text of its own.
    """
    message = kind.FromString(content)
    match message.ListFields():
        case [(field, items)] if _is_list_of_messages(field):
            fields = {field.name: [_json_of(item) for item in items]}
        case _:
            fields = MessageToDict(message, preserving_proto_field_name=True)
    return msgspec.Raw(msgspec.json.encode(fields, order="deterministic"))


def _is_list_of_messages(field: FieldDescriptor) -> bool:
    inner = field.message_type
    return inner is not None and field.is_repeated and not inner.GetOptions().map_entry


def _write(writer: Writer, seen: Seen, encoded: _Encoded) -> None:
    # isinstance() is slow where it says no: these are msgspec's structs.
    if type(seen) is RecordedCall:
        writer.call(seen.t, seen.rpc, seen.id, encoded.asked(seen).request)
    elif type(seen) is RecordedReply:
        failed = seen.outcome
        if isinstance(failed, Failed):
            writer.failed(seen.t, seen.call.id, failed.code, failed.message, effect=failed.effect)
        else:
            writer.reply(seen.t, seen.call.id, encoded.response(seen.call, failed))
    elif type(seen) is Item:
        writer.record(seen.t, seen.kind, **seen.fields)
