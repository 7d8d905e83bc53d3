"""Chunks cross to another process whole and in order, and their writer never waits."""

import asyncio
import os
import sys
from collections import Counter
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import grpc.aio
import pytest
from cri_api.v1 import api_pb2 as cri
from on_loop import on_loop
from pod_life import stubs
from tap_wire import V1, Peer, Talk
from tapped import serving

from kubelet_conformance.tap.chunks import Chunk, What
from kubelet_conformance.tap.pipeline import Pipeline, observations
from kubelet_conformance.tap.relay import Relay
from kubelet_conformance.tap.spool import Spool, read_chunks

EVERY = [Chunk(number, number % 3, what, bytes(number * 7)) for number, what in enumerate(What, 1)]

DECODING = """
import os, sys
from kubelet_conformance.tap.pipeline import give_way, observations
give_way()
with open(sys.argv[1], "w") as file:
    for each in observations(sys.stdin.fileno()):
        print(type(each).__name__, getattr(each, "rpc", ""), file=file, flush=True)
sys.exit(int(sys.argv[2]))
"""


def requests(count: int, size: int = 1000, connection: int = 1) -> list[Chunk]:
    """Bytes of one connection."""
    return [Chunk(at, connection, What.REQUESTS, bytes((at % 256,)) * size) for at in range(count)]


def spooled(
    write: Callable[[Spool], object], folder: Path, *, read_late: bool = False, **bounds: int
) -> list[Chunk]:
    """What a reader gets of what is written; it may begin only when all is written."""

    async def main() -> list[Chunk]:
        reading, writing = os.pipe()
        spool = Spool(writing, folder, **bounds)

        def read() -> list[Chunk]:
            return list(read_chunks(reading))

        reader = None if read_late else asyncio.create_task(asyncio.to_thread(read))
        write(spool)
        finished = asyncio.create_task(spool.finish())
        reader = reader or asyncio.create_task(asyncio.to_thread(read))
        chunks = await reader
        await finished
        os.close(reading)
        return chunks

    return asyncio.run(main())


def put(chunks: list[Chunk]) -> Callable[[Spool], object]:
    """Write these."""

    def write(spool: Spool) -> None:
        for chunk in chunks:
            spool(chunk)

    return write


def test_every_kind_of_chunk_crosses(tmp_path: Path) -> None:
    """With its time, its connection and its bytes."""
    assert spooled(put(EVERY), tmp_path) == EVERY


@pytest.mark.parametrize("read_late", [False, True])
@pytest.mark.parametrize("memory_max", [0, 200_000, 16 << 20])
def test_more_than_the_pipe_takes(*, read_late: bool, memory_max: int, tmp_path: Path) -> None:
    """What waits in memory and in the file comes in order; the file has no name that could be left over."""
    chunks = requests(6000)

    assert spooled(put(chunks), tmp_path, read_late=read_late, memory_max=memory_max) == chunks
    assert list(tmp_path.iterdir()) == []


def test_spool_is_used_again_after_the_file(tmp_path: Path) -> None:
    """A burst, quiet, a burst: nothing is lost or turned round in between."""
    first, second = requests(3000), requests(3000, 500, 2)

    async def main() -> list[Chunk]:
        reading, writing = os.pipe()
        spool = Spool(writing, tmp_path, memory_max=100_000)
        chunks = read_chunks(reading)
        put(first)(spool)
        got = [await asyncio.to_thread(next, chunks) for _ in first]
        put(second)(spool)
        finished = asyncio.create_task(spool.finish())
        got += await asyncio.to_thread(list[Chunk], chunks)
        await finished
        os.close(reading)
        return got

    assert asyncio.run(main()) == first + second


def lost(chunks: list[Chunk]) -> list[tuple[int, What]]:
    """The connections and what became of them, bytes left out."""
    return [(each.connection, each.what) for each in chunks if each.what is not What.REQUESTS]


def no_space(*_: object) -> int:
    """Write to a disk that is full."""
    raise OSError(28, "No space left on device")


@pytest.mark.parametrize("disk_full", [False, True])
def test_full_spool_gives_connections_up(
    *, disk_full: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A connection that lost a chunk is reported as lost, once; its bytes end there, and its end follows."""
    if disk_full:
        monkeypatch.setattr(os, "pwrite", no_space)
    busy = requests(6000)
    coming = [
        Chunk(6000, 2, What.CONNECTED),
        Chunk(6001, 2, What.REQUESTS, b"x"),
        Chunk(6002, 0, What.NOTE, b"n"),
    ]
    going = [Chunk(6003, 1, What.REQUESTS, b"x"), Chunk(6004, 1, What.CLIENT_GONE), Chunk(6005, 0, What.AWAY)]
    bounds = {"memory_max": 0, "file_max": 1 << 40 if disk_full else 1_000_000}
    chunks = spooled(put([*busy, *coming, *going]), tmp_path, read_late=True, **bounds)
    kept = [each for each in chunks if each.what is What.REQUESTS]

    assert lost(chunks) == [
        (1, What.LOST),
        (2, What.CONNECTED),
        (2, What.LOST),
        (1, What.CLIENT_GONE),
        (0, What.AWAY),
    ]
    assert kept == busy[: len(kept)]
    assert 500 < len(kept) < 4000


def test_reader_that_is_gone(tmp_path: Path) -> None:
    """Whatever comes is dropped, and finishing does not wait."""

    async def main() -> bool:
        reading, writing = os.pipe()
        spool = Spool(writing, tmp_path, memory_max=0)
        put(requests(6000))(spool)
        os.close(reading)
        await spool.finish()
        put(EVERY)(spool)
        return spool.is_broken

    assert asyncio.run(main())


def test_chunk_that_is_cut_short_is_left_out() -> None:
    """As when the writer was killed in the middle of one."""

    async def main() -> bytes:
        reading, writing = os.pipe()
        spool = Spool(writing)
        put(EVERY)(spool)
        await spool.finish()
        data = os.read(reading, 1 << 16)
        os.close(reading)
        return data

    data = asyncio.run(main())
    reading, writing = os.pipe()
    os.write(writing, data[:-1])
    os.close(writing)

    assert list(read_chunks(reading)) == EVERY[:-1]
    os.close(reading)


def test_hearing_at_the_end_of_a_pipe() -> None:
    """The same is observed as without one."""
    talk = Talk().connects().asks(Peer().asks(1, "Version", b"?")).answers(Peer().answers(1, b"!"))

    async def main() -> list[Any]:
        reading, writing = os.pipe()
        spool = Spool(writing)
        put(talk.chunks)(spool)
        await spool.finish()
        observed = list(observations(reading))
        os.close(reading)
        return observed

    assert asyncio.run(main()) == talk.observations()


def piped(
    send: Callable[[Pipeline], Coroutine[Any, Any, None]],
    out: Path,
    status: int = 0,
    decoding: str = DECODING,
) -> Pipeline:
    """A pipeline to a process that writes down what it observes, after the scenario is over."""

    async def main() -> Pipeline:
        async with Pipeline([sys.executable, "-c", decoding, str(out), str(status)]) as pipeline:
            await send(pipeline)
        return pipeline

    return asyncio.run(main())


def test_another_process_hears_all_before_it_ends(tmp_path: Path) -> None:
    """Leaving waits for it, and its exit status is reported."""
    talk = Talk().connects().asks(Peer().asks(1, "Version")).answers(Peer().answers(1, b"!"))

    async def send(pipeline: Pipeline) -> None:
        for chunk in talk.chunks:
            pipeline.sink(chunk)

    pipeline = piped(send, tmp_path / "observed", 3)

    assert pipeline.exit_status == 3
    assert (tmp_path / "observed").read_text().splitlines() == [
        "PeerChange ",
        "CallBegan Version",
        "Answered Version",
    ]
    assert talk.calls()[0] == ("CallBegan", "c1", V1, "Version", b"")


def test_calls_through_a_relay_are_observed_in_another_process(tmp_path: Path) -> None:
    """Many at once, and not one is missing at the end."""

    async def send(pipeline: Pipeline) -> None:
        upstream, listen = tmp_path / "cri.sock", tmp_path / "tap.sock"
        async with (
            serving(upstream),
            Relay(listen, upstream, pipeline.sink),
            grpc.aio.insecure_channel(f"unix:{listen}") as channel,
        ):
            runtime, _ = stubs(channel)
            await asyncio.gather(*(runtime.Version(cri.VersionRequest(version=f"{at}")) for at in range(300)))

    piped(send, tmp_path / "observed")

    assert Counter((tmp_path / "observed").read_text().splitlines()) == {
        "PeerChange ": 2,
        "CallBegan Version": 300,
        "Answered Version": 300,
    }


def test_process_that_ends_by_itself_is_reported(tmp_path: Path) -> None:
    """The sink goes on taking chunks, for the bytes must pass."""

    async def send(pipeline: Pipeline) -> None:
        assert await pipeline.wait() == 7
        for chunk in requests(3000):
            pipeline.sink(chunk)

    assert piped(send, tmp_path / "observed", decoding="raise SystemExit(7)").exit_status == 7


def test_process_is_killed_when_nobody_waits_for_it(tmp_path: Path) -> None:
    """A second interruption ends the wait for one that hangs; nothing is left over."""
    ready = tmp_path / "ready"
    os.mkfifo(ready)
    hanging = f"import os; open({str(ready)!r}, 'w').close(); os.read(os.pipe()[0], 1)"

    async def main() -> int:
        entered = asyncio.Event()
        pipeline = Pipeline([sys.executable, "-c", hanging])

        async def use() -> None:
            async with pipeline:
                await asyncio.to_thread(ready.read_text)
                entered.set()

        user = asyncio.create_task(use())
        await entered.wait()
        user.cancel()
        with pytest.raises(asyncio.CancelledError):
            await user
        return pipeline.exit_status

    assert asyncio.run(main()) == -9


@on_loop
async def test_command_that_cannot_be_run(tmp_path: Path) -> None:
    """The system's word for it, and no pipe left open."""
    before = os.listdir("/proc/self/fd")  # noqa: PTH208 - only the number counts
    with pytest.raises(FileNotFoundError):
        await Pipeline([str(tmp_path / "nothing")]).__aenter__()

    assert len(os.listdir("/proc/self/fd")) == len(before)  # noqa: PTH208 - only the number counts


def test_modest_process_steps_back() -> None:
    """The node that is listened to comes first."""
    code = "import os; from kubelet_conformance.tap.pipeline import give_way; give_way(); print(os.nice(0))"

    async def main() -> int:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-c", code, stdout=asyncio.subprocess.PIPE
        )
        return int((await process.communicate())[0]) - os.nice(0)

    assert asyncio.run(main()) > 0
