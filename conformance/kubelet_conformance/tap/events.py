"""What a decoder observes: calls, their replies, and the peers that come and go.

Times are nanoseconds of the monotonic clock at which the bytes that complete the thing passed the tap; they
never fall. Ids are `c1`, `c2`, ... in the order in which calls begin, over all connections of one tap.
Messages are protobuf's bytes as they passed, decompressed if they were compressed.
"""

import msgspec

CLIENT_GONE = "the client is gone"
"""The message of a call that ended because its client did: it never received an answer."""
UNDECODABLE = "cannot be decoded"
"""How it begins to say what became of a connection that can no longer be followed; see `PeerChange`."""


class CallBegan(msgspec.Struct, frozen=True, gc=False):
    """A call and its request passed.

    `service` is its full name, runtime.v1.RuntimeService. `timeout_ns` is how long the client said it would
    wait, None where it waits for ever.
    """

    at_ns: int
    id: str
    service: str
    rpc: str
    request: bytes
    timeout_ns: int | None = None


class Answered(msgspec.Struct, frozen=True, gc=False):
    """A unary call ended well."""

    at_ns: int
    id: str
    rpc: str
    response: bytes


class StreamItem(msgspec.Struct, frozen=True, gc=False):
    """One item of a server's stream."""

    at_ns: int
    id: str
    rpc: str
    message: bytes


class CallEnded(msgspec.Struct, frozen=True, gc=False):
    """A call failed, or a stream came to its end.

    `code` is gRPC's name, NOT_FOUND; that of a stream that ended well is OK. `by_client`: its client gave it
    up, or is gone, before anything was known of its end.
    """

    at_ns: int
    id: str
    rpc: str
    code: str
    message: str
    by_client: bool = False


class PeerChange(msgspec.Struct, frozen=True, gc=False):
    """Something became of a connection.

    `what` is `client connected`, `client gone`, `runtime away` (connecting to it failed, or its connection
    broke), `runtime back`, or `cannot be decoded: why`: the bytes of that connection still pass, and nothing
    more is observed of its calls, those in flight included. `why` is what the system said of a runtime that
    is away, empty where it said nothing.
    """

    at_ns: int
    what: str
    why: str = ""


class Note(msgspec.Struct, frozen=True, gc=False):
    """What another source put between the chunks, handed on in its place; see `chunks.What.NOTE`."""

    at_ns: int
    data: bytes


Observation = CallBegan | Answered | StreamItem | CallEnded | PeerChange | Note
"""What may be observed."""
