"""The relay passes bytes as they are, both ways, as clients come and go."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable
from pathlib import Path

import pytest
from on_loop import on_loop

from kubelet_conformance.tap.chunks import Chunk, What
from kubelet_conformance.tap.relay import Relay

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
MEGABYTE = 1 << 20


class World:
    """A runtime's socket, a tap in front of it, and what the tap's sink was given."""

    def __init__(self, folder: Path) -> None:
        self.upstream = folder / "runtime.sock"
        self.listen = folder / "tap.sock"
        self.chunks: list[Chunk] = []
        self.news = asyncio.Condition()
        self.accepted: asyncio.Queue[Streams] = asyncio.Queue()

    def sink(self, chunk: Chunk) -> None:
        """Keep it, and wake who waits for it."""
        self.chunks.append(chunk)
        self._task = asyncio.ensure_future(self._wake())

    async def _wake(self) -> None:
        async with self.news:
            self.news.notify_all()

    async def until(self, enough: Callable[[list[What]], bool]) -> None:
        """Wait until the sink was given that."""
        async with self.news:
            await self.news.wait_for(lambda: enough([chunk.what for chunk in self.chunks]))

    @contextlib.asynccontextmanager
    async def runtime(self) -> AsyncGenerator[None]:
        """Somebody listens where the runtime should."""

        async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await self.accepted.put((reader, writer))

        async with await asyncio.start_unix_server(accept, self.upstream):
            yield
        self.upstream.unlink(missing_ok=True)

    async def client(self) -> Streams:
        """A client of the tap."""
        return await asyncio.open_unix_connection(self.listen)

    def passed(self, what: What) -> bytes:
        """The bytes that the sink saw of one direction."""
        return b"".join(chunk.data for chunk in self.chunks if chunk.what is what)

    def given(self) -> list[What]:
        """What the sink was given, without the bytes."""
        return [each.what for each in self.chunks if each.what not in {What.REQUESTS, What.REPLIES}]


@contextlib.asynccontextmanager
async def relayed(folder: Path) -> AsyncGenerator[World]:
    """A tap in front of a runtime."""
    world = World(folder)
    async with world.runtime(), Relay(world.listen, world.upstream, world.sink):
        yield world


async def close(*streams: Streams) -> None:
    """Close the connections."""
    for _, writer in streams:
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()


@on_loop
async def test_bytes_pass_verbatim_and_the_sink_sees_them(tmp_path: Path) -> None:
    """Both ways at once, more than any buffer holds: what went in comes out, and is what the sink got."""
    up, down = bytes(range(256)) * 9000, bytes(reversed(range(256))) * 9000

    async with relayed(tmp_path) as world:
        client = await world.client()
        runtime = await world.accepted.get()
        client[1].write(up)
        runtime[1].write(down)
        received = await asyncio.gather(runtime[0].readexactly(len(up)), client[0].readexactly(len(down)))
        times = [chunk.at_ns for chunk in world.chunks]
        await close(client, runtime)

        assert list(received) == [up, down]
        assert (world.passed(What.REQUESTS), world.passed(What.REPLIES)) == (up, down)
        assert times == sorted(times)


@pytest.mark.parametrize("client_first", [True, False])
@on_loop
async def test_one_side_may_end_and_still_receive(*, client_first: bool, tmp_path: Path) -> None:
    """Each direction ends by itself; the connection is over when both have ended."""
    async with relayed(tmp_path) as world:
        client = await world.client()
        runtime = await world.accepted.get()
        first, second = (client, runtime) if client_first else (runtime, client)
        first[1].write(b"question")
        first[1].write_eof()
        asked = await second[0].read()
        second[1].write(b"answer")
        second[1].write_eof()
        answered = await first[0].read()
        order = (
            [What.CLIENT_GONE, What.RUNTIME_GONE] if client_first else [What.RUNTIME_GONE, What.CLIENT_GONE]
        )
        await world.until(lambda given: set(order) <= set(given))
        await close(client, runtime)

        assert (asked, answered) == (b"question", b"answer")
        assert [each for each in world.given() if each in order] == order


@on_loop
async def test_slow_reader_slows_the_writer(tmp_path: Path) -> None:
    """What no client reads is not read either: the tap holds less than a few hundred kilobytes of it."""
    flood = bytes(8 * MEGABYTE)

    async with relayed(tmp_path) as world:
        client = await world.client()
        runtime = await world.accepted.get()
        client[1].transport.set_write_buffer_limits(0)
        client[1].write(flood)
        stuck = asyncio.ensure_future(client[1].drain())
        answer = b""
        for _ in range(50):
            # Each round trip the other way gives the flood its turns.
            runtime[1].write(b"x")
            answer += await client[0].readexactly(1)
        seen = len(world.passed(What.REQUESTS))
        was_stuck = not stuck.done()
        received = await runtime[0].readexactly(len(flood))
        await stuck
        await close(client, runtime)

        assert was_stuck
        assert seen < 2 * MEGABYTE
        assert received == flood


@on_loop
async def test_runtime_that_is_not_there(tmp_path: Path) -> None:
    """The client's connection ends at once; the next one is tried anew; each change is reported once."""
    world = World(tmp_path)
    async with Relay(world.listen, world.upstream, world.sink):
        for _ in range(2):
            client = await world.client()
            client[1].write(b"hello")
            with contextlib.suppress(ConnectionError):
                assert await client[0].read() == b""
            await close(client)
        async with world.runtime():
            client = await world.client()
            runtime = await world.accepted.get()
            await world.until(lambda given: What.BACK in given)
            await close(client, runtime)
    connected = [What.CONNECTED, What.CLIENT_GONE]

    assert world.given()[:6] == [What.CONNECTED, What.AWAY, What.CLIENT_GONE, *connected, What.CONNECTED]
    assert world.given()[6] is What.BACK
    assert "No such file" in next(each.data for each in world.chunks if each.what is What.AWAY).decode()


@on_loop
async def test_runtime_whose_connections_break_is_away(tmp_path: Path) -> None:
    """Not when one of several ends, but when the last one does; the client's end closes too."""
    async with relayed(tmp_path) as world:
        clients = [await world.client(), await world.client()]
        runtimes = [await world.accepted.get(), await world.accepted.get()]
        runtimes[0][1].transport.abort()
        ends = [await asyncio.wait_for(clients[0][0].read(), None)]
        await world.until(lambda given: What.RUNTIME_GONE in given)
        early = What.AWAY in world.given()
        runtimes[1][1].transport.abort()
        ends += [await clients[1][0].read()]
        await world.until(lambda given: What.AWAY in given)
        again = await world.client()
        await world.until(lambda given: What.BACK in given)
        await close(*clients, again, *runtimes, await world.accepted.get())

        assert (ends, early) == ([b"", b""], False)
        assert world.given().count(What.AWAY) == 1


@on_loop
async def test_client_that_is_gone_takes_its_connection_along(tmp_path: Path) -> None:
    """The runtime sees the end, and is not taken to be away."""
    async with relayed(tmp_path) as world:
        client = await world.client()
        runtime = await world.accepted.get()
        client[1].transport.abort()
        end = await runtime[0].read()
        await close(runtime)
        await world.until(lambda given: {What.CLIENT_GONE, What.RUNTIME_GONE} <= set(given))

        assert end == b""
        assert What.AWAY not in world.given()


@on_loop
async def test_end_of_the_tap_ends_every_connection(tmp_path: Path) -> None:
    """Those who are connected get what is left, and see the end; nothing of the tap remains."""
    world = World(tmp_path)
    async with world.runtime():
        async with Relay(world.listen, world.upstream, world.sink):
            client = await world.client()
            runtime = await world.accepted.get()
            runtime[1].write(b"the last word")
            await world.until(lambda given: What.REPLIES in given)
        last = await client[0].read()
        end = await runtime[0].read()
        await close(client, runtime)

    assert (last, end) == (b"the last word", b"")
    assert not world.listen.exists()
    assert What.AWAY not in world.given()


@on_loop
async def test_sink_that_fails_does_not_stop_the_bytes(tmp_path: Path) -> None:
    """Its error goes to the loop's handler; the client gets its answer."""

    def sink(chunk: Chunk) -> None:
        raise LookupError(chunk.what.name)

    failed: list[str] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: failed.append(str(context["exception"])))
    world = World(tmp_path)
    async with world.runtime(), Relay(world.listen, world.upstream, sink):
        client = await world.client()
        runtime = await world.accepted.get()
        client[1].write(b"ping")
        asked = await runtime[0].readexactly(4)
        await close(client, runtime)

    assert asked == b"ping"
    assert failed[:2] == ["CONNECTED", "REQUESTS"]


@on_loop
async def test_relay_that_is_left_while_nobody_reads(tmp_path: Path) -> None:
    """A client that takes nothing does not keep the tap from ending."""
    world = World(tmp_path)
    async with world.runtime():
        async with Relay(world.listen, world.upstream, world.sink):
            client = await world.client()
            client[1].transport.pause_reading()  # type: ignore[attr-defined]
            runtime = await world.accepted.get()
            runtime[1].write(bytes(4 * MEGABYTE))
            await world.until(lambda given: What.REPLIES in given)
        gone = not world.listen.exists()
        client[1].transport.abort()
        runtime[1].transport.abort()

    assert gone
