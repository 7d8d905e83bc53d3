"""Read a trace record by record, in memory bounded by what is open at one time."""

from __future__ import annotations

import contextlib
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Self

import msgspec

from kubelet_conformance.trace.errors import TraceError
from kubelet_conformance.trace.header import FORMAT_VERSION, Header
from kubelet_conformance.trace.records import (
    ABSENT,
    Body,
    Call,
    CallLine,
    End,
    Line,
    Record,
    Reply,
    ReplyLine,
    Unknown,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ("LINE_BYTES_MAX", "OPEN_CALLS_MAX", "REMEMBERED_IDS", "REMEMBERED_REPLIES", "Reader")

LINE_BYTES_MAX = 16 * 1024 * 1024
"""A longer line is bad input."""
OPEN_CALLS_MAX = 100_000
"""More calls without a reply at one time are bad input."""
REMEMBERED_IDS = 65_536
"""How many of the latest call ids are remembered to notice a duplicate."""
REMEMBERED_REPLIES = 16_384
"""How many (rpc, request) pairs keep their latest full reply for a later `same`."""
REMEMBERED_REPLY_BYTES = 128 * 1024 * 1024
"""How many bytes of replies are kept for a later `same`."""

_ONE_FIELD_BYTES = 80
"""A shorter request has no map whose keys could stand in another order."""

_KNOWN_KINDS = frozenset(
    "call reply message pod api status deleted event runtime fault kubelet expect probe disk http end".split(),
)


class _Replies:
    """The latest full reply of each (rpc, request), the oldest forgotten first."""

    def __init__(self) -> None:
        self._id_of: dict[tuple[str, bytes], str] = {}
        self._kept: dict[str, tuple[tuple[str, bytes], Body]] = {}
        self._bytes = 0

    @staticmethod
    def _key(call: Call) -> tuple[str, bytes]:
        raw = bytes(call.request.raw)
        if len(raw) <= _ONE_FIELD_BYTES:
            return call.rpc, raw
        # Real recorders do not sort the keys of maps, so equal requests may differ in their bytes.
        in_order = msgspec.json.encode(call.request.json(), order="deterministic")
        return call.rpc, blake2b(in_order, digest_size=16).digest()

    def remember(self, call: Call, body: Body) -> None:
        key = self._key(call)
        older = self._id_of.pop(key, None)
        if older is not None:
            self._drop(older)
        self._id_of[key] = call.id
        self._kept[call.id] = key, body
        self._bytes += len(bytes(body.raw))
        while len(self._kept) > REMEMBERED_REPLIES or self._bytes > REMEMBERED_REPLY_BYTES:
            oldest, (oldest_key, _) = next(iter(self._kept.items()))
            del self._id_of[oldest_key]
            self._drop(oldest)

    def _drop(self, call_id: str) -> None:
        _, body = self._kept.pop(call_id)
        self._bytes -= len(bytes(body.raw))

    def find(self, call: Call, same: str) -> Body | None:
        """The body `same` refers to, if it is the latest full reply of this rpc and request."""
        kept = self._kept.get(same)
        if kept is None or kept[0] != self._key(call):
            return None
        return kept[1]


class Reader:
    """Iterate over the records of one trace file; a context manager.

    `header` is read at once, from `file` where one is given (`path` then only names it). `line` is the number of the line last read, counted from 1.
    Raises TraceError for anything that is not a valid trace of version 1.
    """

    def __init__(self, path: Path | str, file: BinaryIO | None = None) -> None:
        self.path = Path(path)
        self.line = 0
        self._file = file or self._opened()
        try:
            self.header = self._read_header()
        except BaseException:
            self._file.close()
            raise
        self._open: dict[str, Call] = {}
        self._recent: dict[str, None] = {}
        self._replies = _Replies()
        self._seq = 0
        self._t = 0.0

    def _opened(self) -> BinaryIO:
        try:
            return self.path.open("rb")
        except OSError as error:
            reason = error.strerror or str(error)
            raise TraceError(self.path, None, f"cannot be read: {reason}", "name a trace file") from None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def bad(self, problem: str, remedy: str) -> TraceError:
        """An error about the line last read."""
        return TraceError(self.path, self.line, problem, remedy)

    def _next_line(self) -> bytes:
        raw = self._file.readline(LINE_BYTES_MAX + 1)
        self.line += 1
        if len(raw) > LINE_BYTES_MAX:
            raise self.bad(
                f"the line is longer than {LINE_BYTES_MAX // 1024 // 1024} MiB",
                "record with less in one reply, or cut the trace",
            )
        return raw

    def _read_header(self) -> Header:
        raw = self._next_line()
        remedy = 'the first line of a trace is {"trace": 1, "channels": {...}, ...}'
        if not raw.strip():
            raise self.bad("there is no trace header", remedy)
        try:
            version = msgspec.json.decode(raw, type=_Version).trace
        except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
            raise self.bad(f"this is no trace header ({_short(error)})", remedy) from None
        if version != FORMAT_VERSION:
            raise self.bad(
                f"the trace has format version {version}",
                f"this suite reads version {FORMAT_VERSION}: use a newer suite or record again",
            )
        try:
            return msgspec.json.decode(raw, type=Header)
        except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
            raise self.bad(f"the trace header is wrong ({_short(error)})", "mend that field") from None

    def __iter__(self) -> Iterator[Record]:
        decode = msgspec.json.Decoder(Line).decode
        while raw := self._next_line():
            if raw.isspace():
                continue
            try:
                line = decode(raw)
            except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
                yield self._unknown(raw, error)
                continue
            self._in_order(line.seq, line.t)
            if isinstance(line, CallLine):
                yield self._begin(line)
            elif isinstance(line, ReplyLine):
                yield self._end(line)
            else:
                yield line
                if isinstance(line, End):
                    self._expect_nothing_more()
                    return
        raise self.bad(
            "the trace is truncated: it has no `end` record",
            'record it again, or append {"kind":"end","seq":N,"t":T} for the moment observation stopped',
        )

    def _expect_nothing_more(self) -> None:
        while raw := self._next_line():
            if not raw.isspace():
                raise self.bad("there is a record after `end`", "cut the file behind `end`, one trace a file")

    def _in_order(self, seq: int, t: float) -> None:
        if seq <= self._seq:
            raise self.bad(f"seq falls from {self._seq} to {seq}", "seq counts up from 1 without repeats")
        if t < self._t:
            raise self.bad(
                f"time falls from {self._t:g} to {t:g} s", "t is seconds since the start and never falls"
            )
        self._seq, self._t = seq, t

    def _begin(self, line: CallLine) -> Call:
        if line.id in self._recent:
            raise self.bad(f"call id {line.id!r} is used twice", "give each call an id of its own")
        if len(self._open) >= OPEN_CALLS_MAX:
            raise self.bad(
                f"more than {OPEN_CALLS_MAX} calls have no reply", "record replies, or cut the trace"
            )
        self._recent[line.id] = None
        if len(self._recent) > REMEMBERED_IDS:
            del self._recent[next(iter(self._recent))]
        call = self._open[line.id] = Call(line.seq, line.t, line.rpc, line.id, Body(line.request))
        return call

    def _end(self, line: ReplyLine) -> Reply:
        call = self._open.pop(line.id, None)
        if call is None:
            raise self.bad(f"reply to call {line.id!r}, which is not open", "a reply follows its call, once")
        if call.rpc != line.rpc:
            raise self.bad(
                f"reply of {line.rpc} to call {line.id!r} of {call.rpc}", "name the call's own rpc"
            )
        body: Body | None = None
        if line.error is None:
            body = self._body(call, line)
        return Reply(line.seq, line.t, call, body, line.error, effect=line.effect, same=line.same is not None)

    def _body(self, call: Call, line: ReplyLine) -> Body:
        if line.response:
            body = Body(line.response)
            self._replies.remember(call, body)
            return body
        if line.same is None:
            raise self.bad("the reply has no response, no `same` and no error", "write one of the three")
        found = self._replies.find(call, line.same)
        if found is None:
            raise self.bad(
                f"`same` names {line.same!r}, which is not the latest full reply of this {call.rpc} and request",
                "write the response in full",
            )
        return found

    def _unknown(self, raw: bytes, error: Exception) -> Unknown:
        """A record of a kind of a later version; anything else that does not decode is bad input."""
        envelope: Unknown | None = None
        with contextlib.suppress(msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
            envelope = msgspec.json.decode(raw, type=Unknown)
        if envelope is not None and envelope.kind not in _KNOWN_KINDS:
            self._in_order(envelope.seq, envelope.t)
            return envelope
        if not raw.endswith(b"\n"):
            raise self.bad(
                "the trace is truncated in the middle of a record",
                "record it again, or cut the last line and append an `end` record",
            )
        raise self.bad(f"this is no trace record ({_short(error)})", "mend or cut the line") from None


class _Version(msgspec.Struct):
    trace: int


def _short(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return "nested too deeply"
    return str(error)
