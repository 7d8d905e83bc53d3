"""The calls of one connection, out of the bytes of its two directions."""

from collections.abc import Iterator, Mapping
from typing import Final

from kubelet_conformance.tap.errors import UndecodableError
from kubelet_conformance.tap.events import (
    CLIENT_GONE,
    Answered,
    CallBegan,
    CallEnded,
    Observation,
    StreamItem,
)
from kubelet_conformance.tap.frames import FrameReader, Kind
from kubelet_conformance.tap.grpc import (
    MessageReader,
    TooLongError,
    code_of_reset,
    outcome,
    timeout_ns,
    whole_message,
)
from kubelet_conformance.tap.headers import HeaderReader
from kubelet_conformance.tap.messages import streams

CALLS_MAX: Final = 10_000
"""How many calls may be under way on one connection."""
WAITING_BYTES_MAX: Final = 64 << 20
"""How many bytes of messages may wait for their end on one connection."""
_METHODS_MAX: Final = 1024
"""How many paths are remembered."""
_TABLE_SIZE_SETTING: Final = 1
_SETTING_BYTES: Final = 6
_CANCEL: Final = 8
_SLACK_NS: Final = 1_000_000
_SLACK_PART: Final = 100
"""A call that its client gives up this near to its deadline, a hundredth and a millisecond, was given up for
it: the client began to wait a little before the tap observed it."""

_DATA: Final = int(Kind.DATA)
_HEADERS: Final = int(Kind.HEADERS)
_RST_STREAM: Final = int(Kind.RST_STREAM)
_SETTINGS: Final = int(Kind.SETTINGS)
_GOAWAY: Final = int(Kind.GOAWAY)


class _Call:
    """One call under way."""

    __slots__ = (
        "began_ns",
        "held",
        "id",
        "replies",
        "reply_encoding",
        "request_encoding",
        "requests",
        "rpc",
        "service",
        "streams",
        "timeout_ns",
    )

    def __init__(
        self, at_ns: int, path: tuple[str, str, bool | None], headers: Mapping[bytes, bytes]
    ) -> None:
        self.service, self.rpc, self.streams = path
        self.began_ns = at_ns
        self.timeout_ns = timeout_ns(headers.get(b"grpc-timeout"))
        self.id = ""
        """Empty until its request is there."""
        self.held: bytes | None = None
        """The answer of a unary call, until it is known to have ended well."""
        self.request_encoding = headers.get(b"grpc-encoding", b"")
        self.reply_encoding = b""
        self.requests: MessageReader | None = None
        self.replies: MessageReader | None = None

    @property
    def waiting(self) -> int:
        """How many bytes are kept for this call."""
        readers = (self.requests, self.replies)
        return len(self.held or b"") + sum(len(reader) for reader in readers if reader is not None)

    def in_time(self, at_ns: int) -> bool:
        """Whether its deadline is still to come."""
        if self.timeout_ns is None:
            return True
        return at_ns - self.began_ns < self.timeout_ns - self.timeout_ns // _SLACK_PART - _SLACK_NS


class Connection:
    """What a client and the runtime say to each other on one connection.

    Every method adds what it observes to `observed`. Calls of an unknown service or method are observed like
    the others; of an answer that may be one message or a stream the first message is reported when a second
    one or the end has come. Streams that are not gRPC are ignored.

    Args:
        ids: Gives the numbers of calls.
        observed: Observations are added to it.
    """

    def __init__(self, ids: Iterator[int], observed: list[Observation]) -> None:
        self._ids = ids
        self._observed = observed
        self._calls: dict[int, _Call] = {}
        self._latest = 0
        """The highest stream so far: one that is not higher is not new."""
        self._waiting = 0
        self._is_broken = False
        """The runtime has broken it, and the client may still hold it."""
        self._request_frames = FrameReader(from_client=True)
        self._reply_frames = FrameReader(from_client=False)
        self._request_headers = HeaderReader()
        self._reply_headers = HeaderReader()
        self._paths: dict[bytes, tuple[str, str, bool | None]] = {}

    def requests(self, at_ns: int, data: bytes) -> None:
        """Bytes from the client. Raises `UndecodableError`; nothing can be observed afterwards."""
        for kind, stream, ends, payload in self._request_frames.feed(data):
            if kind == _DATA:
                call = self._calls.get(stream)
                if call is not None and not call.id:
                    self._request_data(at_ns, stream, call, payload, ends=ends)
            elif kind == _HEADERS:
                self._request_block(at_ns, stream, payload, ends=ends)
            elif kind == _RST_STREAM:
                self._given_up(at_ns, stream, payload)
            elif kind == _SETTINGS:
                _allow(self._reply_headers, payload)

    def replies(self, at_ns: int, data: bytes) -> None:
        """Bytes from the runtime. Raises `UndecodableError`; nothing can be observed afterwards."""
        for kind, stream, ends, payload in self._reply_frames.feed(data):
            if kind == _DATA:
                call = self._calls.get(stream)
                if call is not None:
                    self._reply_data(at_ns, stream, call, payload, ends=ends)
            elif kind == _HEADERS:
                self._reply_block(at_ns, stream, payload, ends=ends)
            elif kind == _RST_STREAM:
                if stream in self._calls:
                    number = _error_code(payload, 0)
                    self._fail(at_ns, stream, code_of_reset(number), f"the runtime reset the call ({number})")
            elif kind == _SETTINGS:
                _allow(self._request_headers, payload)
            elif kind == _GOAWAY:
                self._goes_away(at_ns, payload)
            else:
                raise UndecodableError("PUSH_PROMISE, which gRPC does not know")

    def runtime_gone(self, at_ns: int) -> None:
        """The runtime broke the connection: no call on it is answered, nor are those that are still sent."""
        self._is_broken = True
        for stream in list(self._calls):
            self._break(at_ns, stream)

    def client_gone(self, at_ns: int) -> None:
        """The client broke the connection: every call under way ends."""
        for stream in list(self._calls):
            if self._is_broken:
                self._break(at_ns, stream)
            else:
                self._fail(at_ns, stream, "CANCELLED", CLIENT_GONE, by_client=True)

    def _break(self, at_ns: int, stream: int) -> None:
        self._fail(at_ns, stream, "UNAVAILABLE", "the runtime's connection broke")

    def _request_block(self, at_ns: int, stream: int, block: bytes, *, ends: bool) -> None:
        headers = self._request_headers.read(block)
        call = self._calls.get(stream)
        if call is None:
            path = self._path(headers)
            if stream <= self._latest or path is None:
                return
            self._latest = stream
            if len(self._calls) >= CALLS_MAX:
                raise UndecodableError(f"more than {CALLS_MAX} calls under way")
            call = self._calls[stream] = _Call(at_ns, path, headers)
        if ends and not call.id:
            self._begin(at_ns, call, b"")

    def _path(self, headers: Mapping[bytes, bytes]) -> tuple[str, str, bool | None] | None:
        """Service, method and kind of a call; None if it is not one of gRPC."""
        if not headers.get(b"content-type", b"").startswith(b"application/grpc"):
            return None
        path = headers.get(b":path", b"")
        known = self._paths.get(path)
        if known is None:
            service, _, rpc = path.decode(errors="replace").removeprefix("/").rpartition("/")
            known = service, rpc, streams(service, rpc)
            if len(self._paths) < _METHODS_MAX:
                self._paths[path] = known
        return known

    def _request_data(self, at_ns: int, stream: int, call: _Call, data: bytes, *, ends: bool) -> None:
        message = whole_message(data) if call.requests is None else None
        if message is None:
            if call.requests is None:
                call.requests = MessageReader(call.request_encoding)
            messages = self._messages(at_ns, stream, call.requests, data)
            if messages is None or (not messages and not ends):
                return
            message = messages[0] if messages else b""
            self._waiting -= len(call.requests)
            call.requests = None
        self._begin(at_ns, call, message)

    def _begin(self, at_ns: int, call: _Call, request: bytes) -> None:
        call.id = f"c{next(self._ids)}"
        self._observed.append(CallBegan(at_ns, call.id, call.service, call.rpc, request, call.timeout_ns))

    def _reply_block(self, at_ns: int, stream: int, block: bytes, *, ends: bool) -> None:
        headers = self._reply_headers.read(block)
        call = self._calls.get(stream)
        if call is None:
            return
        if not ends:
            call.reply_encoding = headers.get(b"grpc-encoding", b"")
            return
        if headers.get(b"grpc-status") == b"0":
            self._end_well(at_ns, stream, call)
        else:
            self._fail(at_ns, stream, *outcome(headers))

    def _reply_data(self, at_ns: int, stream: int, call: _Call, data: bytes, *, ends: bool) -> None:
        message = whole_message(data) if call.replies is None else None
        if message is not None:
            self._reply(at_ns, call, message)
        elif data:
            if call.replies is None:
                call.replies = MessageReader(call.reply_encoding)
            messages = self._messages(at_ns, stream, call.replies, data)
            if messages is None:
                return
            for each in messages:
                self._reply(at_ns, call, each)
            if not len(call.replies):
                call.replies = None
        if ends:
            self._fail(at_ns, stream, *outcome({}))

    def _messages(self, at_ns: int, stream: int, reader: MessageReader, data: bytes) -> list[bytes] | None:
        """The messages that are complete; None if the call ended, since one is too long."""
        before = len(reader)
        try:
            messages = reader.feed(data)
        except TooLongError as error:
            # The reader took the data in, which the end of the call will give back.
            self._waiting += len(reader) - before
            self._fail(at_ns, stream, "RESOURCE_EXHAUSTED", str(error))
            return None
        self._wait(len(reader) - before)
        return messages

    def _wait(self, more: int) -> None:
        self._waiting += more
        if self._waiting > WAITING_BYTES_MAX:
            raise UndecodableError(f"more than {WAITING_BYTES_MAX} bytes of messages under way")

    def _reply(self, at_ns: int, call: _Call, message: bytes) -> None:
        """One message of an answer."""
        if call.streams:
            if not call.id:
                self._begin(at_ns, call, b"")
            self._observed.append(StreamItem(at_ns, call.id, call.rpc, message))
        elif call.held is None:
            call.held = message
            self._wait(len(message))
        elif call.streams is None:
            first, call.held = call.held, None
            self._waiting -= len(first)
            call.streams = True
            self._reply(at_ns, call, first)
            self._reply(at_ns, call, message)

    def _end_well(self, at_ns: int, stream: int, call: _Call) -> None:
        if call.streams or (call.streams is None and call.held is None):
            self._fail(at_ns, stream, "OK", "")
        elif call.held is None:
            self._fail(at_ns, stream, "INTERNAL", "the call ended well without an answer")
        else:
            response = call.held
            self._forget(stream)
            if not call.id:
                self._begin(at_ns, call, b"")
            self._observed.append(Answered(at_ns, call.id, call.rpc, response))

    def _given_up(self, at_ns: int, stream: int, payload: bytes) -> None:
        """The client resets a call."""
        call = self._calls.get(stream)
        if call is None:
            return
        if self._is_broken:
            self._break(at_ns, stream)
            return
        if not call.in_time(at_ns):
            self._fail(at_ns, stream, "DEADLINE_EXCEEDED", "the client's deadline passed")
            return
        number = _error_code(payload, 0)
        because = "" if number == _CANCEL else f" ({number})"
        self._fail(at_ns, stream, "CANCELLED", f"the client gave the call up{because}", by_client=True)

    def _goes_away(self, at_ns: int, payload: bytes) -> None:
        """The runtime will not look at streams above the one it names (RFC 9113, 6.8)."""
        last = _error_code(payload, 0) & 0x7FFFFFFF
        for stream in [each for each in self._calls if each > last]:
            self._fail(at_ns, stream, "UNAVAILABLE", "the runtime goes away and did not look at the call")

    def _fail(self, at_ns: int, stream: int, code: str, message: str, *, by_client: bool = False) -> None:
        """The call ended otherwise; one that its client never finished asking has not been made at all."""
        call = self._forget(stream)
        if not call.id:
            if by_client:
                return
            self._begin(at_ns, call, b"")
        self._observed.append(CallEnded(at_ns, call.id, call.rpc, code, message, by_client))

    def _forget(self, stream: int) -> _Call:
        call = self._calls.pop(stream)
        self._waiting -= call.waiting
        return call


def _error_code(payload: bytes, at: int) -> int:
    """A number of four bytes."""
    if len(payload) < at + 4:
        raise UndecodableError("a frame that is shorter than its kind")
    return int.from_bytes(payload[at : at + 4])


def _allow(headers: HeaderReader, settings: bytes) -> None:
    """Who sends settings says how large a table it keeps for what it reads."""
    for at in range(0, len(settings) - _SETTING_BYTES + 1, _SETTING_BYTES):
        if int.from_bytes(settings[at : at + 2]) == _TABLE_SIZE_SETTING:
            headers.allow(_error_code(settings, at + 2))
