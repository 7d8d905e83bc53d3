"""A piece of what passed the tap: which connection, which way, when, and the bytes."""

from collections.abc import Callable
from enum import IntEnum

import msgspec


class What(IntEnum):
    """The kinds of chunks."""

    REQUESTS = 0
    """Bytes from the client to the runtime."""
    REPLIES = 1
    """Bytes from the runtime to the client."""
    CONNECTED = 2
    """A client connected; the first chunk of its connection."""
    CLIENT_GONE = 3
    """The client will send nothing more."""
    RUNTIME_GONE = 4
    """The runtime will send nothing more."""
    AWAY = 5
    """The runtime cannot be reached, or its last connection broke; `data` may say why, in UTF-8."""
    BACK = 6
    """The runtime can be reached again."""
    LOST = 7
    """Chunks of this connection were lost, because the reader was too slow; `data` says why, in UTF-8."""
    NOTE = 8
    """Not from the tap: bytes of another source, to be found in their place among the chunks."""


class Chunk(msgspec.Struct, frozen=True, gc=False):
    """One piece.

    `at_ns` is the monotonic clock in nanoseconds when the piece was read, and never falls from one chunk to
    the next. `connection` counts clients from 1; it is 0 where no connection is meant.
    """

    at_ns: int
    connection: int
    what: What
    data: bytes = b""


Sink = Callable[[Chunk], None]
"""Takes each chunk, in order, after its bytes were passed on; returns at once."""
