"""What a gRPC call to the fake runtime costs a foreign client, beside an empty echo of the same sizes.

python tests/bench/runtime_speed.py [--calls N] [--side-by-side N] [--rounds N] [--format terminal|json]

Client and server are processes of their own, both Python. The floor is a `grpc.aio` server whose one method
gives back bytes of the length that the fake's answer has: what the fake adds is the difference.
"""

import argparse
import asyncio
import json
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import grpc
import grpc.aio
from cri_api.v1 import api_pb2 as cri
from google.protobuf.message import Message

PODS = 50
"""How many pods of one container the fake has, as on a busy node."""
SERVICE = "/runtime.v1.RuntimeService/"
ECHO = "/floor.Echo/"
CALLS: dict[str, Callable[[str], Message]] = {
    "Version": lambda _: cri.VersionRequest(),
    "ContainerStatus": lambda one: cri.ContainerStatusRequest(container_id=one),
    "ListContainers": lambda _: cri.ListContainersRequest(),
}


async def serve_floor(path: str) -> None:
    """Answer every call with as many bytes as its name says, until SIGTERM."""

    class Echo(grpc.GenericRpcHandler):
        """Methods whose names are the sizes of their answers."""

        def service(self, handler_call_details: Any) -> Any:
            """The handler of a call."""
            answer = bytes(int(handler_call_details.method.rpartition("/")[2]))

            async def echo(_request: bytes, _context: Any) -> bytes:
                return answer

            return cast("Any", grpc.unary_unary_rpc_method_handler(echo))

    server = grpc.aio.server()
    server.add_generic_rpc_handlers((Echo(),))
    server.add_insecure_port(f"unix:{path}")
    ended = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ended.set)
    await server.start()
    await ended.wait()
    await server.stop(0)


def method(channel: grpc.aio.Channel, path: str) -> Any:
    """A call from bytes to bytes."""
    return cast("Any", channel.unary_unary(path))


async def fill(channel: grpc.aio.Channel) -> str:
    """Run pods on the fake; the id of a container."""
    container = ""
    for number in range(PODS):
        metadata = cri.PodSandboxMetadata(name=f"p{number}", namespace="default", uid=f"uid-{number}")
        labels = {"io.kubernetes.pod.uid": f"uid-{number}"}
        config = cri.PodSandboxConfig(metadata=metadata, labels=labels)
        run = cri.RunPodSandboxRequest(config=config).SerializeToString()
        sandbox = cri.RunPodSandboxResponse.FromString(await method(channel, f"{SERVICE}RunPodSandbox")(run))
        made = cri.ContainerConfig(
            metadata=cri.ContainerMetadata(name="c1"), image=cri.ImageSpec(image="img:1"), labels=labels
        )
        asked = cri.CreateContainerRequest(pod_sandbox_id=sandbox.pod_sandbox_id, config=made)
        create = method(channel, f"{SERVICE}CreateContainer")
        container = cri.CreateContainerResponse.FromString(
            await create(asked.SerializeToString())
        ).container_id
        start = cri.StartContainerRequest(container_id=container).SerializeToString()
        await method(channel, f"{SERVICE}StartContainer")(start)
    return container


async def measured(call: Any, request: bytes, calls: int, side_by_side: int) -> tuple[float, float]:
    """The median of one call after the other, in milliseconds, and calls a second side by side."""
    times: list[float] = []
    for _ in range(calls):
        began = time.perf_counter()
        await call(request)
        times.append(time.perf_counter() - began)

    async def some() -> None:
        for _ in range(calls // side_by_side):
            await call(request)

    began = time.perf_counter()
    await asyncio.gather(*(some() for _ in range(side_by_side)))
    rate = calls // side_by_side * side_by_side / (time.perf_counter() - began)
    return statistics.median(times) * 1000, rate


async def compare(fake: str, floor: str, options: argparse.Namespace) -> list[dict[str, Any]]:
    """Each call to the fake and to the floor in turn, the best of some rounds of each."""
    rows: list[dict[str, Any]] = []
    async with (
        grpc.aio.insecure_channel(f"unix:{fake}") as one,
        grpc.aio.insecure_channel(f"unix:{floor}") as other,
    ):
        container = await fill(one)
        for rpc, make in CALLS.items():
            request = make(container).SerializeToString()
            answer = await method(one, f"{SERVICE}{rpc}")(request)
            sides = {
                "fake": method(one, f"{SERVICE}{rpc}"),
                "floor": method(other, f"{ECHO}{len(answer)}"),
            }
            found: dict[str, list[tuple[float, float]]] = {side: [] for side in sides}
            for _ in range(options.rounds):
                for side, call in sides.items():
                    found[side].append(await measured(call, request, options.calls, options.side_by_side))
            row: dict[str, Any] = {"rpc": rpc, "bytes": len(answer)}
            for side, results in found.items():
                row[f"{side}_ms"] = min(each[0] for each in results)
                row[f"{side}_per_second"] = max(each[1] for each in results)
            rows.append(row)
    return rows


def started(command: list[str], path: Path) -> subprocess.Popen[bytes]:
    """A server, once it listens."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    while not path.exists():
        if process.poll() is not None:
            raise SystemExit(f"{command} ended with {process.returncode}")
        time.sleep(0.01)
    return process


def parsed() -> argparse.Namespace:
    """The options."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--calls", type=int, default=2000)
    parser.add_argument("--side-by-side", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--format", choices=["terminal", "json"], default="terminal")
    parser.add_argument("--floor", help=argparse.SUPPRESS)
    return parser.parse_args()


def main() -> None:
    """Measure, or be the floor."""
    options = parsed()
    if options.floor:
        asyncio.run(serve_floor(options.floor))
        return
    with tempfile.TemporaryDirectory() as folder:
        fake, floor = Path(folder, "fake.sock"), Path(folder, "floor.sock")
        serving = [sys.executable, "-m", "kubelet_conformance", "serve-fake", "--listen", f"unix://{fake}"]
        echoing = [sys.executable, str(Path(__file__).resolve()), "--floor", str(floor)]
        servers: list[subprocess.Popen[bytes]] = []
        try:
            servers += [started(serving, fake), started(echoing, floor)]
            rows = asyncio.run(compare(str(fake), str(floor), options))
        finally:
            for server in servers:
                server.terminate()
                server.wait()
    if options.format == "json":
        print(json.dumps(rows, indent=2))
        return
    print(
        f"{'call':<16} {'bytes':>7} {'fake / floor':>18} {'ratio':>13} {'calls a second':>18} {'ratio':>13}"
    )
    for row in rows:
        print(
            f"{row['rpc']:<16} {row['bytes']:>7}"
            f"  {row['fake_ms']:>6.3f} / {row['floor_ms']:.3f} ms  {row['fake_ms'] / row['floor_ms']:>12.2f}"
            f"  {row['fake_per_second']:>7.0f} / {row['floor_per_second']:<7.0f}"
            f"  {row['fake_per_second'] / row['floor_per_second']:>12.2f}"
        )


if __name__ == "__main__":
    main()
