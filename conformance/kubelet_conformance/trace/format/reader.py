"""Read a trace record by record, in memory bounded by what is open at one time."""

from collections.abc import Iterable, Iterator
from io import BufferedIOBase, BufferedReader, BytesIO
from itertools import chain
from pathlib import Path
from typing import Self, get_args

import msgspec

from kubelet_conformance.trace.format.errors import TraceError, TruncatedError
from kubelet_conformance.trace.format.header import FORMAT_VERSION, Header
from kubelet_conformance.trace.format.records import (
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
from kubelet_conformance.trace.format.replies import LatestReplies

LINE_BYTES_MAX = 16 * 1024 * 1024
"""A longer line is bad input."""
OPEN_CALLS_MAX = 100_000
"""More calls without a reply at one time are bad input."""
OPEN_CALL_BYTES_MAX = 64 * 1024 * 1024
"""More bytes of calls without a reply at one time are bad input."""
REMEMBERED_IDS = 16_384
"""How many of the latest call ids are remembered at least to notice a duplicate."""

_BUFFER_BYTES = 64 * 1024
_BLOCK_BYTES = 32 * 1024
_SHARED_REQUESTS = 10_000
_SHARED_REQUEST_BYTES = 256
"""Requests up to this size come again and again. Equal ones share one body, so that it is parsed once."""

_KNOWN_KINDS = frozenset(str(kind.__struct_config__.tag) for kind in get_args(Line))
_DECODER = msgspec.json.Decoder(Line)
_UNREADABLE = (msgspec.MsgspecError, RecursionError, ValueError)
"""What decoding a line may raise: UnicodeDecodeError is a ValueError."""
_PACKERS = {
    b"\x1f\x8b": "gzip",
    b"PK\x03\x04": "zip",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"\xfd7zXZ": "xz",
    b"BZh": "bzip2",
}


class Reader:
    """Iterate over the records of one trace file; a context manager.

    `header` is read at once, from `file` where one is given (`path` then only names it). `line` is the number
    of the line last read, counted from 1. Raises TraceError for anything that is no valid trace of version 1;
    with `allow_truncated` one that is cut off ends there, and `cut_line` is its last whole line.
    """

    def __init__(
        self, path: Path | str, file: BufferedIOBase | None = None, *, allow_truncated: bool = False
    ) -> None:
        self.path = Path(path)
        self.line = 0
        self.cut_line: int | None = None
        self._allows_truncated = allow_truncated
        self._file = file or self._opened()
        try:
            self.header = self._read_header()
        except BaseException:
            self._file.close()
            raise
        self._open: dict[str, Call] = {}
        self._open_bytes = 0
        self._recent: set[str] = set()
        self._older: set[str] = set()
        self._requests: dict[tuple[str, bytes], Body] = {}
        self._replies = LatestReplies()
        self._ended = False

    def _opened(self) -> BufferedIOBase:
        try:
            return BufferedReader(self.path.open("rb", buffering=0), _BUFFER_BYTES)
        except OSError as error:
            raise TraceError(self.path, None, _unreadable(error), "name a trace file") from None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def bad(self, problem: str, remedy: str) -> TraceError:
        """An error about the line last read."""
        return TraceError(self.path, self.line, problem, remedy)

    def _block(self) -> bytes:
        """Some whole lines; the last may be cut where the file ends, or where it is too long."""
        try:
            block = self._file.read1(_BLOCK_BYTES)
            cut = block and not block.endswith(b"\n")
            return block + self._file.readline(LINE_BYTES_MAX + 1) if cut else block
        except OSError as error:
            self.line += 1
            raise self.bad(_unreadable(error), "name a trace file") from None

    def _decoded(self, block: bytes) -> Iterable[Line | Unknown]:
        """Its lines, decoded at once unless one of them is blank, too long, unknown or wrong."""
        try:
            if not block.isascii():
                block.decode()  # What is not read of a line is not looked at below.
            lines = _DECODER.decode_lines(block)
        except _UNREADABLE:
            return self._one_by_one(block)
        every = len(lines) == block.count(b"\n") + (not block.endswith(b"\n"))
        return lines if every and len(block) <= LINE_BYTES_MAX else self._one_by_one(block)

    def _one_by_one(self, block: bytes) -> Iterator[Line | Unknown]:
        """Its lines. The caller that takes one counts it: `line` is that of the one before."""
        for raw in BytesIO(block):
            if raw.isspace():
                self.line += 1
            elif self._ended:
                yield End(0, 0.0)
            else:
                yield self._line(raw)

    def _line(self, raw: bytes) -> Line | Unknown:
        self.line += 1
        try:
            if len(raw) > LINE_BYTES_MAX:
                raise self._too_long()
            raw.decode()
            line: Line | Unknown = _DECODER.decode(raw)
        except _UNREADABLE as error:
            line = self._unknown(raw, error)
        self.line -= 1
        return line

    def _too_long(self) -> TraceError:
        return self.bad(
            f"the line is longer than {LINE_BYTES_MAX // 1024 // 1024} MiB",
            "record with less in one reply, or cut the trace",
        )

    def _read_header(self) -> Header:
        self.line += 1
        try:
            raw = self._file.readline(LINE_BYTES_MAX + 1)
        except OSError as error:
            raise self.bad(_unreadable(error), "name a trace file") from None
        if len(raw) > LINE_BYTES_MAX:
            raise self._too_long()
        remedy = 'the first line of a trace is {"trace": 1, "channels": {...}, ...}'
        if not raw.strip():
            raise self.bad("the file is empty" if not raw else "there is no trace header", remedy)
        self._check_is_text(raw)
        try:
            raw.decode()
            version = msgspec.json.decode(raw, type=_Version).trace
        except _UNREADABLE as error:
            problem = _no_utf8(raw) or f"this is no trace header ({_short(error)})"
            raise self.bad(problem, remedy) from None
        if version != FORMAT_VERSION:
            raise self.bad(
                f"the trace has format version {version}",
                f"this suite reads version {FORMAT_VERSION}: use a newer suite or record again",
            )
        try:
            return msgspec.json.decode(raw, type=Header)
        except _UNREADABLE as error:
            raise self.bad(f"the trace header is wrong ({_short(error)})", "mend that field") from None

    def _check_is_text(self, raw: bytes) -> None:
        """Refuse a first line that is compressed or in another encoding than UTF-8."""
        if raw.startswith(b"\xef\xbb\xbf"):
            raise self.bad("the file begins with a byte order mark", "save it as plain UTF-8")
        if raw.startswith((b"\xff\xfe", b"\xfe\xff", b"{\0", b"\0{")):
            raise self.bad("the file is UTF-16 (byte 0)", "save it as plain UTF-8")
        for magic, packer in _PACKERS.items():
            if raw.startswith(magic):
                raise self.bad(f"the file is compressed ({packer})", "unpack it first")

    def __iter__(self) -> Iterator[Record]:
        return self._up_to_a_cut() if self._allows_truncated else self._records()

    def _up_to_a_cut(self) -> Iterator[Record]:
        try:
            yield from self._records()
        except TruncatedError:
            self.cut_line = self.line - 1

    def _records(self) -> Iterator[Record]:
        last_seq, last_t = 0, 0.0
        lines = chain.from_iterable(map(self._decoded, iter(self._block, b"")))
        for line in lines:
            self.line += 1
            seq, t = line.seq, line.t
            if seq <= last_seq or t < last_t:
                raise self._out_of_order(last_seq, last_t, seq, t)
            last_seq, last_t = seq, t
            if type(line) is CallLine:
                yield self._begin(line)
            elif type(line) is ReplyLine:
                yield self._end(line)
            else:
                yield line
                if type(line) is End:
                    self._expect_nothing_more(lines)
                    return
        self.line += 1
        raise self._truncated(": it has no `end` record")

    def _truncated(self, how: str) -> TruncatedError:
        remedy = "record it again, or judge it up to there with `check --allow-truncated`"
        return TruncatedError(self.path, self.line, f"the trace is truncated{how}", remedy)

    def _expect_nothing_more(self, lines: Iterator[Line | Unknown]) -> None:
        self._ended = True
        for _ in lines:
            self.line += 1
            raise self.bad("there is a record after `end`", "cut the file behind `end`, one trace a file")

    def _out_of_order(self, last_seq: int, last_t: float, seq: int, t: float) -> TraceError:
        if seq <= last_seq:
            word = "repeats" if seq == last_seq else "falls"
            return self.bad(
                f"seq {word}: {seq} after {last_seq}", "seq counts up from 1; renumber, or record again"
            )
        return self.bad(
            f"time falls from {last_t:g} to {t:g} s", "t is seconds since the start and never falls"
        )

    def _begin(self, line: CallLine) -> Call:
        call_id, rpc, recent, calls = line.id, line.rpc, self._recent, self._open
        if call_id in recent or call_id in self._older or call_id in calls:
            raise self.bad(f"call id {call_id!r} is used twice", "give each call an id of its own")
        raw = bytes(line.request)
        self._open_bytes += len(raw)
        if len(calls) >= OPEN_CALLS_MAX or self._open_bytes > OPEN_CALL_BYTES_MAX:
            raise self.bad(
                f"more than {OPEN_CALLS_MAX} calls, or {OPEN_CALL_BYTES_MAX // 1024 // 1024} MiB of them, "
                "have no reply",
                "record replies, or cut the trace",
            )
        recent.add(call_id)
        if len(recent) >= REMEMBERED_IDS:
            self._recent, self._older = set(), recent
        request = self._requests.get((rpc, raw)) or self._request(rpc, raw)
        call = calls[call_id] = Call(line.seq, line.t, rpc, call_id, request)
        return call

    def _request(self, rpc: str, raw: bytes) -> Body:
        """The body of a request that has not come lately."""
        body = Body(raw)
        if len(raw) <= _SHARED_REQUEST_BYTES:
            if len(self._requests) >= _SHARED_REQUESTS:
                self._requests.clear()
            self._requests[rpc, raw] = body
        return body

    def _end(self, line: ReplyLine) -> Reply:
        call = self._open.pop(line.id, None)
        if call is None:
            raise self.bad(f"reply to call {line.id!r}, which is not open", "a reply follows its call, once")
        self._open_bytes -= len(call.request.raw)
        if call.rpc != line.rpc:
            raise self.bad(
                f"reply of {line.rpc} to call {line.id!r} of {call.rpc}", "name the call's own rpc"
            )
        response, same, error, body = line.response, line.same, line.error, None
        if same is not None and error is None and not response:
            body = self._replies.find(call, same)
            if body is None:
                raise self._not_the_latest(call, same)
        elif response and error is None and same is None:
            body = Body(response.copy())  # It is kept for long, and the rest of the line is not.
            self._replies.remember(call, body)
        elif error is None or response or same is not None:
            raise self.bad("the reply has not exactly one of response, `same` and error", "write one of them")
        return Reply(line.seq, line.t, call, body, error, line.effect, same is not None)

    def _not_the_latest(self, call: Call, same: str) -> TraceError:
        return self.bad(
            f"`same` names {same!r}, which is not the latest full reply of this {call.rpc} and request",
            "write the response in full",
        )

    def _unknown(self, raw: bytes, error: Exception) -> Unknown:
        """A record of a kind of a later version; anything else that does not decode is bad input."""
        envelope: Unknown | None = None
        try:
            raw.decode()
            envelope = msgspec.json.decode(raw, type=Unknown)
        except RecursionError as deeper:
            error = deeper
        except _UNREADABLE:
            pass  # The first error says more.
        if envelope is not None and envelope.kind not in _KNOWN_KINDS:
            return envelope
        if not raw.endswith(b"\n"):
            raise self._truncated(" in the middle of a record") from None
        problem = _no_utf8(raw) or f"this is no trace record ({_short(error)})"
        raise self.bad(problem, "mend or cut the line") from None


class _Version(msgspec.Struct):
    trace: int


def _no_utf8(raw: bytes) -> str | None:
    """What is wrong with a line that is not UTF-8, None for one that is."""
    try:
        raw.decode()
    except UnicodeDecodeError as error:
        return f"the line is not UTF-8: byte {error.start} of it is {raw[error.start]:#04x}"
    return None


def _short(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return "nested too deeply"
    return str(error)


def _unreadable(error: OSError) -> str:
    return f"cannot be read: {error.strerror or error}"
