"""What the tap costs, and what it can take: direct against tapped in one run, then decoding and writing.

python tests/bench/tap_speed.py [--rounds N] [--loops N] [--format terminal|json]

Direct and tapped calls take turns in short rounds, so that both meet the same other load of the machine. The
server, the tap, and the process that decodes what passed are processes of their own, as on a node.

The mix that is decoded and written is that of a kubelet of 20 pods, its headers as Go's client writes them:
in each loop two lists, of which every fifth is a new one, two statuses of a sandbox and two of a container,
all different, two probes, and six events of a stream: 16 unary messages and 6 items.
"""

import argparse
import asyncio
import contextlib
import io
import json
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, Protocol

import grpc
import grpc.aio
from cri_api.v1 import api_pb2 as cri
from google.protobuf.message import Message
from hpack import Encoder

from kubelet_conformance.contract.deferred_gc import deferred_gc
from kubelet_conformance.recording.bodies import Bodies
from kubelet_conformance.tap.chunks import Chunk, What
from kubelet_conformance.tap.decoder import Decoder
from kubelet_conformance.tap.events import Answered, CallBegan, Observation, StreamItem
from kubelet_conformance.tap.frames import PREFACE, Kind
from kubelet_conformance.tap.pipeline import Pipeline, give_way, observations
from kubelet_conformance.tap.relay import Relay
from kubelet_conformance.trace.format.header import Header
from kubelet_conformance.trace.format.writer import Writer
from kubelet_conformance.trace.redaction.redactor import Redactor

ROUNDS = 40
CALLS = 100
"""How many calls follow each other in a round that measures the time of one."""
WORKERS, EACH = 30, 20
"""How many call at once in a round that measures how many there can be, and how often each."""
LOOPS = 4000
REPEATS = 5
PODS = 20
SERVICE = "runtime.v1.RuntimeService"
ADDED_MAX, KEPT_MIN = 0.5, 0.6
DECODED_TARGET, WRITTEN_TARGET = 100_000, 10_000

Call = Any
"""gRPC's callable for one method, from bytes to bytes."""


class Says(Protocol):
    """Makes a header block and the frame around it."""

    def __call__(self, stream: int, *fields: tuple[str, str], ends: bool = False) -> bytes:
        """The frame."""
        ...


async def serve(path: str) -> None:
    """Answer Version until the process is ended."""
    reply = cri.VersionResponse(version="0.1.0", runtime_name="bench", runtime_api_version="v1")
    answer = reply.SerializeToString()

    async def version(_: bytes, __: object) -> bytes:
        return answer

    unary: Any = grpc.unary_unary_rpc_method_handler
    server = grpc.aio.server()
    handler = grpc.method_handlers_generic_handler(SERVICE, {"Version": unary(version)})
    server.add_generic_rpc_handlers((handler,))
    server.add_insecure_port(f"unix:{path}")
    await server.start()
    print("ready", flush=True)
    await server.wait_for_termination()


async def tap(listen: str, upstream: str) -> None:
    """Relay until the process is ended; another one decodes."""
    async with (
        Pipeline([sys.executable, __file__, "--role", "decode"]) as pipeline,
        Relay(Path(listen), Path(upstream), pipeline.sink),
    ):
        print("ready", flush=True)
        await asyncio.Event().wait()


def listen_to_all() -> None:
    """Decode whatever comes, as the recorder does beside writing it."""
    give_way()
    for _ in observations(sys.stdin.fileno()):
        pass


@contextlib.asynccontextmanager
async def role(*arguments: str) -> AsyncGenerator[None]:
    """One of the processes, ready."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, __file__, "--role", *arguments, stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    await process.stdout.readline()
    try:
        yield
    finally:
        process.kill()
        await process.wait()


async def latencies(call: Call) -> list[float]:
    """Seconds of each of some calls that follow each other."""
    took: list[float] = []
    for _ in range(CALLS):
        began = time.perf_counter()
        await call(b"", timeout=60)
        took.append(time.perf_counter() - began)
    return took


async def throughput(call: Call) -> float:
    """Calls a second when many call at once."""

    async def work() -> None:
        for _ in range(EACH):
            await call(b"", timeout=60)

    began = time.perf_counter()
    await asyncio.gather(*(work() for _ in range(WORKERS)))
    return WORKERS * EACH / (time.perf_counter() - began)


async def in_turns(
    measure: Callable[[Call], Awaitable[Any]], calls: list[Call], rounds: int
) -> list[list[Any]]:
    """What is measured of each way in each round; who comes first changes."""
    found: list[list[Any]] = [[], []]
    for number in range(rounds):
        for way in (0, 1) if number % 2 else (1, 0):
            found[way].append(await measure(calls[way]))
    return found


async def relayed(rounds: int) -> dict[str, Any]:
    """Direct against tapped."""
    with tempfile.TemporaryDirectory() as folder:
        upstream, listen = f"{folder}/runtime.sock", f"{folder}/tap.sock"
        async with (
            role("serve", upstream),
            role("tap", listen, upstream),
            grpc.aio.insecure_channel(f"unix:{upstream}") as direct,
            grpc.aio.insecure_channel(f"unix:{listen}") as tapped,
        ):
            channels: list[Any] = [direct, tapped]
            calls = [channel.unary_unary(f"/{SERVICE}/Version") for channel in channels]
            await in_turns(throughput, calls, 2)
            took = await in_turns(latencies, calls, rounds)
            rates = await in_turns(throughput, calls, rounds)
    medians = [statistics.median(each for part in way for each in part) * 1000 for way in took]
    return {
        "direct_ms": round(medians[0], 3),
        "tapped_ms": round(medians[1], 3),
        "added": round((medians[1] - medians[0]) / medians[0], 2),
        "direct_calls_per_second": round(statistics.median(rates[0])),
        "tapped_calls_per_second": round(statistics.median(rates[1])),
        "kept": round(statistics.median(b / a for a, b in zip(*rates, strict=True)), 2),
    }


def frame(kind: Kind, flags: int, stream: int, payload: bytes) -> bytes:
    """One frame."""
    return len(payload).to_bytes(3) + bytes((kind, flags)) + stream.to_bytes(4) + payload


def speaker() -> Says:
    """One direction's header blocks."""
    encoder = Encoder()

    def says(stream: int, *fields: tuple[str, str], ends: bool = False) -> bytes:
        return frame(Kind.HEADERS, 4 | ends, stream, encoder.encode(fields))

    return says


def message(of: Message) -> bytes:
    """A message with gRPC's head."""
    data = of.SerializeToString()
    return b"\0" + len(data).to_bytes(4) + data


def lists(version: int) -> tuple[Message, Message]:
    """What a node of 20 pods has."""
    ids = [f"{number:032x}" for number in range(PODS)]
    labels = {"io.kubernetes.pod.name": f"web-{version}", "io.kubernetes.pod.namespace": "default"}
    pods = [cri.PodSandbox(id=each, created_at=version, labels=labels) for each in ids]
    containers = [
        cri.Container(
            id=each, pod_sandbox_id=each, created_at=version, state=cri.CONTAINER_RUNNING, labels=labels
        )
        for each in ids
    ]
    return cri.ListPodSandboxResponse(items=pods), cri.ListContainersResponse(containers=containers)


def calls_of_a_loop(loop: int) -> Iterator[tuple[str, Message, Message]]:
    """The unary calls of one loop of a kubelet."""
    pods, containers = lists(loop // 5)
    yield "ListPodSandbox", cri.ListPodSandboxRequest(), pods
    yield "ListContainers", cri.ListContainersRequest(), containers
    for number in (loop % PODS, (loop + 7) % PODS):
        name = f"{number:032x}"
        pod = cri.PodSandboxStatus(id=name, created_at=loop, labels={"a": name})
        status = cri.ContainerStatus(
            id=name, started_at=loop, state=cri.CONTAINER_RUNNING, labels={"a": name}
        )
        ask = cri.PodSandboxStatusRequest(pod_sandbox_id=name)
        yield "PodSandboxStatus", ask, cri.PodSandboxStatusResponse(status=pod)
        asks = cri.ContainerStatusRequest(container_id=name)
        yield "ContainerStatus", asks, cri.ContainerStatusResponse(status=status)
        probe = cri.ExecSyncRequest(container_id=name, cmd=["cat", "/tmp/healthy"], timeout=1)  # noqa: S108
        yield "ExecSync", probe, cri.ExecSyncResponse(stdout=b"ok\n")


def mix(loops: int) -> tuple[list[Chunk], int]:
    """The chunks of the mix, and how many messages are in them."""
    client, runtime = speaker(), speaker()
    begins = ((":status", "200"), ("content-type", "application/grpc"))
    ends = (("grpc-status", "0"), ("grpc-message", ""))

    def asks(stream: int, rpc: str, request: Message, timeout: str) -> bytes:
        fields = [(":method", "POST"), (":scheme", "http"), (":path", f"/{SERVICE}/{rpc}")]
        fields += [(":authority", "localhost"), ("content-type", "application/grpc")]
        fields += [("user-agent", "grpc-go/1.65.0"), ("te", "trailers"), ("grpc-timeout", timeout)]
        return client(stream, *fields) + frame(Kind.DATA, 1, stream, message(request))

    chunks = [Chunk(0, 1, What.CONNECTED), Chunk(0, 1, What.REQUESTS, PREFACE)]
    chunks.append(Chunk(0, 1, What.REQUESTS, asks(1, "GetContainerEvents", cri.GetEventsRequest(), "1H")))
    chunks.append(Chunk(0, 1, What.REPLIES, runtime(1, *begins)))
    stream, messages = 1, 1
    for loop in range(loops):
        for rpc, request, reply in calls_of_a_loop(loop):
            stream += 2
            timeout = f"{119_999_999 - stream * 7919 % 1_000_000}u"
            chunks.append(Chunk(stream, 1, What.REQUESTS, asks(stream, rpc, request, timeout)))
            data = frame(Kind.DATA, 0, stream, message(reply))
            says = runtime(stream, *begins) + data + runtime(stream, *ends, ends=True)
            chunks.append(Chunk(stream, 1, What.REPLIES, says))
            messages += 2
        for number in range(6):
            event = cri.ContainerEventResponse(container_id=f"{number:032x}", created_at=loop)
            chunks.append(Chunk(stream, 1, What.REPLIES, frame(Kind.DATA, 0, 1, message(event))))
            messages += 1
    return chunks, messages


def write(observed: list[Observation]) -> int:
    """Write what was observed as a trace, secrets taken out; how many records it has."""
    bodies = Bodies(Redactor(bytes(32)))
    with Writer(io.BytesIO(), Header(trace=1)) as writer:
        for each in observed:
            t = each.at_ns / 1e9
            if isinstance(each, CallBegan):
                writer.call(t, each.rpc, each.id, bodies.request(SERVICE, each.rpc, each.request))
            elif isinstance(each, Answered):
                writer.reply(t, each.id, bodies.response(SERVICE, each.rpc, each.response))
            elif isinstance(each, StreamItem):
                item = bodies.response(SERVICE, each.rpc, each.message)
                writer.record(t, "message", rpc=each.rpc, id=each.id, message=item)
        return writer.end(observed[-1].at_ns / 1e9)


def best(work: Callable[[], object]) -> float:
    """The processor's seconds of the fastest of some runs: what slows the others down is not the work."""
    took: list[float] = []
    for _ in range(REPEATS):
        began = time.process_time()
        work()
        took.append(time.process_time() - began)
    return min(took)


def digested(loops: int) -> dict[str, Any]:
    """How fast the mix is decoded and written."""
    chunks, messages = mix(loops)

    def decode() -> list[Observation]:
        decoder = Decoder()
        return [each for chunk in chunks for each in decoder.feed(chunk)]

    observed = decode()
    found = sum(isinstance(each, (CallBegan, Answered, StreamItem)) for each in observed)
    if found != messages:
        raise SystemExit(f"{found} of {messages} messages were observed")
    with deferred_gc():
        return {
            "messages": messages,
            "decoded_per_second": round(messages / best(decode)),
            "written_per_second": round(write(observed) / best(lambda: write(observed))),
        }


def print_report(found: dict[str, Any]) -> None:
    """The measurement as text."""

    def said(met: bool) -> str:  # noqa: FBT001 - the one thing that is asked
        return "met" if met else "missed"

    print(
        f"a call takes {found['direct_ms']} ms, tapped {found['tapped_ms']} ms: the tap adds {found['added']}"
        f" of it (target under {ADDED_MAX}: {said(found['added'] < ADDED_MAX)})"
    )
    print(
        f"{found['direct_calls_per_second']} calls/s, tapped {found['tapped_calls_per_second']}: the tap"
        f" keeps {found['kept']} (target {KEPT_MIN}: {said(found['kept'] >= KEPT_MIN)})"
    )
    decoded, written = found["decoded_per_second"], found["written_per_second"]
    print(
        f"{found['messages']} messages, in a second of one processor: {decoded} decoded"
        f" (target {DECODED_TARGET}: {said(decoded >= DECODED_TARGET)}), {written} written as trace lines"
        f" (target {WRITTEN_TARGET}: {said(written >= WRITTEN_TARGET)})"
    )


def main() -> None:
    """Measure and report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--loops", type=int, default=LOOPS)
    parser.add_argument("--format", choices=["terminal", "json"], default="terminal")
    parser.add_argument("--role", nargs="+", help=argparse.SUPPRESS)
    options = parser.parse_args()
    match options.role:
        case ["serve", path]:
            asyncio.run(serve(path))
        case ["tap", listen, upstream]:
            asyncio.run(tap(listen, upstream))
        case ["decode"]:
            listen_to_all()
        case _:
            found = {**asyncio.run(relayed(options.rounds)), **digested(options.loops)}
            print(json.dumps(found)) if options.format == "json" else print_report(found)


if __name__ == "__main__":
    main()
