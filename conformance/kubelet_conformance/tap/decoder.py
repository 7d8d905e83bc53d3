"""Makes calls of the chunks that passed a tap, at once or later: no I/O, no clock."""

from itertools import count

from kubelet_conformance.tap.chunks import Chunk, What
from kubelet_conformance.tap.connection import Connection
from kubelet_conformance.tap.errors import UndecodableError
from kubelet_conformance.tap.events import UNDECODABLE, Note, Observation, PeerChange


class Decoder:
    """Decodes the calls of every connection of one tap.

    Bytes that make no sense stop the decoding of their connection, which is reported once; the others go on
    as before. What is kept is bounded for each connection: 10 000 calls under way, 64 MiB of messages that
    are not complete, of 16 MiB at most each; a header block and a header table of 1 MiB each way.
    """

    def __init__(self) -> None:
        self._ids = count(1)
        self._observed: list[Observation] = []
        self._connections: dict[int, Connection | None] = {}
        """None for one that cannot be decoded any more."""

    def feed(self, chunk: Chunk) -> list[Observation]:
        """What this chunk lets be observed, in order; never raises."""
        connection = self._connections.get(chunk.connection)
        if connection is None:
            self._tell(chunk)
        else:
            try:
                if chunk.what is What.REQUESTS:
                    connection.requests(chunk.at_ns, chunk.data)
                elif chunk.what is What.REPLIES:
                    connection.replies(chunk.at_ns, chunk.data)
                else:
                    self._change(connection, chunk)
            except UndecodableError as error:
                self._give_up(chunk, str(error))
        if not self._observed:
            return []
        observed = self._observed.copy()
        self._observed.clear()
        return observed

    def _tell(self, chunk: Chunk) -> None:
        """What belongs to no connection, or to one that is not decoded any more."""
        match chunk.what:
            case What.CONNECTED:
                self._connections[chunk.connection] = Connection(self._ids, self._observed)
                self._observed.append(PeerChange(chunk.at_ns, "client connected"))
            case What.CLIENT_GONE if chunk.connection in self._connections:
                self._close(chunk)
            case What.AWAY:
                self._observed.append(
                    PeerChange(chunk.at_ns, "runtime away", chunk.data.decode(errors="replace"))
                )
            case What.BACK:
                self._observed.append(PeerChange(chunk.at_ns, "runtime back"))
            case What.NOTE:
                self._observed.append(Note(chunk.at_ns, chunk.data))
            case _:
                pass

    def _change(self, connection: Connection, chunk: Chunk) -> None:
        """Something became of a connection that is decoded."""
        match chunk.what:
            case What.CLIENT_GONE:
                connection.client_gone(chunk.at_ns)
                self._close(chunk)
            case What.RUNTIME_GONE:
                connection.runtime_gone(chunk.at_ns)
            case What.LOST:
                self._give_up(chunk, chunk.data.decode(errors="replace"))
            case _:
                self._tell(chunk)

    def _close(self, chunk: Chunk) -> None:
        del self._connections[chunk.connection]
        self._observed.append(PeerChange(chunk.at_ns, "client gone"))

    def _give_up(self, chunk: Chunk, why: str) -> None:
        self._connections[chunk.connection] = None
        self._observed.append(PeerChange(chunk.at_ns, f"{UNDECODABLE}: {why}"))
