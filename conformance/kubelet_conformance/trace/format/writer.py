"""Write a trace of version 1: header first, keys sorted, no spaces, equal replies as `same`.

The same calls give the same bytes. A mistake of the caller (time that falls, a reply to no call) raises
ValueError before anything of the record is written.
"""

import math
from collections.abc import Callable
from typing import Any, BinaryIO, Self

import msgspec

from kubelet_conformance.trace.format.header import FORMAT_VERSION, Header
from kubelet_conformance.trace.format.reader import LINE_BYTES_MAX, REMEMBERED_IDS
from kubelet_conformance.trace.format.records import (
    NAME_CHARS_MAX,
    Alone,
    Body,
    Call,
    Record,
    Reply,
    RpcError,
    Unknown,
)
from kubelet_conformance.trace.format.replies import LatestReplies

_NOT_BY_NAME = frozenset({"call", "reply", "end"})
"""Kinds that have a method of their own."""
_encoded = msgspec.json.Encoder(order="deterministic").encode


class _CallLine(msgspec.Struct, frozen=True, gc=False):
    """Lines of which there are many, with their keys in order."""

    id: str
    kind: str
    request: bytes | msgspec.Raw
    rpc: str
    seq: int
    t: float


class _ReplyLine(msgspec.Struct, frozen=True, gc=False):
    id: str
    kind: str
    response: bytes | msgspec.Raw
    rpc: str
    seq: int
    t: float


class _SameLine(msgspec.Struct, frozen=True, gc=False):
    id: str
    kind: str
    rpc: str
    same: str
    seq: int
    t: float


class Writer:
    """Write records to a binary file, one by one; a context manager that leaves the file open.

    Each method takes `t`, seconds since the start, and returns the `seq` of its record. Bodies are JSON
    values, encoded or not. The writer remembers what a reader does, so that every reader finds what a `same`
    refers to.
    A trace that is left without `end` is truncated for its readers, so that a crash of the writer shows.
    `on_record` is called with each record as a reader will return it, once it is written.
    """

    def __init__(
        self, file: BinaryIO, header: Header, on_record: Callable[[Record], None] | None = None
    ) -> None:
        if header.trace != FORMAT_VERSION:
            raise ValueError(f"this writes version {FORMAT_VERSION} of the format, not {header.trace}")
        self._file = file
        self._seq = 0
        self._t = 0.0
        self._open: dict[str, Call] = {}
        self._recent: dict[str, None] = {}
        self._replies = LatestReplies()
        self._ended = False
        self._on_record = on_record
        self._last = b""
        self._file.write(_line(_header_fields(header)))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.flush()

    def call(self, t: float, rpc: str, call_id: str, request: Any = None) -> int:  # noqa: ANN401 - a JSON value
        """A call begins."""
        if call_id in self._recent or call_id in self._open:
            raise ValueError(f"call id {call_id!r} is used twice")
        if max(len(rpc), len(call_id)) > NAME_CHARS_MAX:
            raise ValueError(f"an rpc or a call id is longer than {NAME_CHARS_MAX} characters")
        body = _body(request)
        seq = self._next(t)
        self._put(seq, t, _CallLine(call_id, "call", body.raw, rpc, seq, t))
        call = self._open[call_id] = Call(seq, t, rpc, call_id, body)
        if self._on_record is not None:
            self._on_record(call)
        self._recent[call_id] = None
        if len(self._recent) > REMEMBERED_IDS:
            del self._recent[next(iter(self._recent))]
        return seq

    def reply(self, t: float, call_id: str, response: Any = None) -> int:  # noqa: ANN401 - a JSON value
        """A call ends well; a response like the latest of this rpc and request is written as `same`."""
        call = self._opened(call_id)
        body = _body(response)
        latest = self._replies.latest(call)
        is_same = latest is not None and (latest[1] is body or latest[1].raw == body.raw)
        seq = self._next(t)
        if latest is not None and is_same:
            body = latest[1]
            self._put(seq, t, _SameLine(call_id, "reply", call.rpc, latest[0], seq, t))
        else:
            self._put(seq, t, _ReplyLine(call_id, "reply", body.raw, call.rpc, seq, t))
            self._replies.remember(call, body)
        del self._open[call_id]
        if self._on_record is not None:
            self._on_record(Reply(seq, t, call, body, None, True, is_same))  # noqa: FBT003 - a positional field
        return seq

    def failed(self, t: float, call_id: str, code: str, message: str = "", *, effect: bool = True) -> int:
        """A call ends with an error; `effect` is False where an injected error kept it from taking place."""
        call = self._opened(call_id)
        fields: dict[str, Any] = {"error": {"code": code, **({"message": message} if message else {})}}
        if not effect:
            fields["effect"] = False
        seq = self._write(t, "reply", rpc=call.rpc, id=call_id, **fields)
        del self._open[call_id]
        if self._on_record is not None:
            self._on_record(Reply(seq, t, call, None, RpcError(code, message), effect, same=False))
        return seq

    def record(self, t: float, kind: str, **fields: Any) -> int:  # noqa: ANN401 - fields of any kind
        """A record of any other kind; a field that is None is left out."""
        if kind in _NOT_BY_NAME:
            raise ValueError(f"a {kind} record has a method of its own")
        seq = self._write(t, kind, **{name: value for name, value in fields.items() if value is not None})
        self._report_line()
        return seq

    def end(self, t: float) -> int:
        """Observation stops; nothing may follow."""
        seq = self._write(t, "end")
        self._ended = True
        self._report_line()
        return seq

    def _opened(self, call_id: str) -> Call:
        call = self._open.get(call_id)
        if call is None:
            raise ValueError(f"reply to call {call_id!r}, which is not open")
        return call

    def _write(self, t: float, kind: str, **fields: Any) -> int:  # noqa: ANN401 - fields of any kind
        seq = self._next(t)
        self._put(seq, t, {**fields, "kind": kind, "seq": seq, "t": t})
        return seq

    def _next(self, t: float) -> int:
        """The number of a record at this time."""
        if self._ended:
            raise ValueError("a record after `end`")
        if not self._t <= t < math.inf:
            raise ValueError(f"time goes from {self._t:g} to {t:g} s")
        return self._seq + 1

    def _put(self, seq: int, t: float, fields: object) -> None:
        line = _line(fields)
        self._file.write(line)
        self._seq, self._t = seq, t
        if self._on_record is not None:
            self._last = line

    def _report_line(self) -> None:
        """Report the line last written, which is neither a call nor a reply."""
        if self._on_record is not None:
            try:
                record: Record = msgspec.json.decode(self._last, type=Alone)
            except msgspec.ValidationError:
                record = msgspec.json.decode(self._last, type=Unknown)
            self._on_record(record)


def _header_fields(header: Header) -> dict[str, Any]:
    """What the header says; what it leaves at its default is left out, save the clock and the channels."""
    defaults = type(header)(trace=FORMAT_VERSION)
    every = msgspec.to_builtins(header)
    silent = msgspec.to_builtins(defaults)
    always = {"trace", "clock", "channels"}
    return {name: value for name, value in every.items() if name in always or value != silent[name]}


def _body(value: Any) -> Body:  # noqa: ANN401 - a JSON value has any type
    """What is JSON already is taken as it is."""
    if type(value) is Body:
        return value
    if type(value) is msgspec.Raw:
        return Body(value)
    return Body(msgspec.Raw(_encoded({} if value is None else value)))


def _line(fields: object) -> bytes:
    line = _encoded(fields) + b"\n"
    if len(line) > LINE_BYTES_MAX:
        raise ValueError(f"the record is longer than {LINE_BYTES_MAX // 1024 // 1024} MiB")
    return line
