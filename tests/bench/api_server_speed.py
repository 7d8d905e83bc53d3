"""How fast the served API server is: from one change of a pod until every watch has it.

python tests/bench/api_server_speed.py [--watches N] [--rounds N]

The server is `kubelet-conformance serve-api` in a process of its own. Each watch is a connection that only
looks whether an event came, so that next to nothing of the time is the reader's.
"""

import argparse
import asyncio
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import yaml

_PODS = "/api/v1/namespaces/default/pods"
_POD = {
    "metadata": {"name": "web"},
    "spec": {"nodeName": "node-1", "containers": [{"name": "app", "image": "img:1"}]},
}


class Reader(asyncio.Protocol):
    """One watch: its request, and whether an event came."""

    def __init__(self, request: bytes) -> None:
        self.changed = asyncio.Event()
        self._request = request

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Ask."""
        if isinstance(transport, asyncio.WriteTransport):
            transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        """An event is written in one piece."""
        if b'"ADDED"' in data or b'"MODIFIED"' in data:
            self.changed.set()


class Api:
    """The server's address, and single requests on one connection."""

    def __init__(self, url: str) -> None:
        address, _, self._token = url.removeprefix("http://").partition("/")
        host, _, port = address.partition(":")
        self.place = host, int(port)

    def request(self, method: str, path: str, kind: str = "json", body: object = None) -> bytes:
        """The bytes of a request."""
        data = b"" if body is None else json.dumps(body).encode()
        head = (
            f"{method} /{self._token}{path} HTTP/1.1\r\nHost: localhost\r\n"
            f"Content-Type: application/{kind}\r\nContent-Length: {len(data)}\r\n\r\n"
        )
        return head.encode() + data

    async def ask(self, streams: tuple[Any, Any], request: bytes) -> None:
        """Send a request and read its answer."""
        reader, writer = streams
        writer.write(request)
        head: bytes = await reader.readuntil(b"\r\n\r\n")
        length = next(
            int(line.partition(b":")[2])
            for line in head.split(b"\r\n")
            if line.lower().startswith(b"content-length")
        )
        await reader.readexactly(length)


async def measured(url: str, watches: int, rounds: int) -> tuple[list[float], list[float]]:
    """The seconds of each change until all watches have it, and of each read of a pod."""
    api = Api(url)
    loop = asyncio.get_running_loop()
    streams = await asyncio.open_connection(*api.place)
    await api.ask(streams, api.request("POST", _PODS, body=_POD))
    path = "/api/v1/pods?watch=true&fieldSelector=spec.nodeName=node-1"
    readers = [
        (await loop.create_connection(lambda: Reader(api.request("GET", path)), *api.place))[1]
        for _ in range(watches)
    ]
    for reader in readers:
        await reader.changed.wait()
    changes, reads = list[float](), list[float]()
    for number in range(rounds):
        patch = {"metadata": {"labels": {"round": str(number)}}}
        for reader in readers:
            reader.changed.clear()
        began = time.perf_counter()
        await api.ask(streams, api.request("PATCH", f"{_PODS}/web", "strategic-merge-patch+json", patch))
        for reader in readers:
            await reader.changed.wait()
        changes.append(time.perf_counter() - began)
        began = time.perf_counter()
        await api.ask(streams, api.request("GET", f"{_PODS}/web"))
        reads.append(time.perf_counter() - began)
    return changes, reads


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Speed of the served API server.")
    parser.add_argument("--watches", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=200)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "kubeconfig")
        serving = [sys.executable, "-m", "kubelet_conformance", "serve-api", "--listen", "127.0.0.1:0"]
        with subprocess.Popen([*serving, "--kubeconfig", str(file)], stdout=subprocess.PIPE) as server:
            try:
                assert server.stdout is not None
                server.stdout.readline()
                url = yaml.safe_load(file.read_text())["clusters"][0]["cluster"]["server"]
                changes, reads = asyncio.run(measured(url, options.watches, options.rounds))
            finally:
                server.terminate()
    for name, seconds in (
        (f"one change to {options.watches} watches", changes),
        ("one read of a pod", reads),
    ):
        middle, slowest = statistics.median(seconds) * 1e3, statistics.quantiles(seconds, n=100)[98] * 1e3
        print(f"{name:<28} median {middle:6.2f} ms, 99th percentile {slowest:6.2f} ms")


if __name__ == "__main__":
    main()
