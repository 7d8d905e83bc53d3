"""Exec, attach and port-forward of the fake runtime as a kubelet's clients use them."""

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from cri_api.v1 import api_pb2 as cri
from cri_node import refused
from on_loop import on_loop
from pod_life import container, sandbox
from yarl import URL

from kubelet_fakes.clock import LoopClock
from kubelet_fakes.runtime import FakeRuntime, RuntimeCore
from kubelet_fakes.runtime.logs import NodeFiles
from kubelet_fakes.runtime.serving.streams import StreamServer

V5 = "v5.channel.k8s.io"


class Streams:
    """A runtime with one container, and a client of its streams."""

    def __init__(self, runtime: FakeRuntime, session: aiohttp.ClientSession, pod: str, app: str) -> None:
        self.runtime, self.session, self.pod, self.app = runtime, session, pod, app

    async def exec(self, *cmd: str, typed: bytes | None = None, **how: bool) -> tuple[bytes, Any]:
        """The output of a command, and its status."""
        asked = cri.ExecRequest(container_id=self.app, cmd=cmd, stdin=typed is not None, stdout=True, **how)
        url = (await self.runtime.Exec(asked)).url
        async with self.session.ws_connect(url, protocols=(V5,)) as socket:
            if typed is not None:
                await socket.send_bytes(b"\0" + typed)
                await socket.send_bytes(b"\xff\0")
            return await rest(socket)


async def rest(socket: aiohttp.ClientWebSocketResponse) -> tuple[bytes, Any]:
    """What comes on standard output until the end, and the status."""
    output, status = b"", None
    async for message in socket:
        if message.data[0] == 1:
            output += message.data[1:]
        elif message.data[0] == 3:
            status = json.loads(message.data[1:])
    return output, status


@asynccontextmanager
async def streams(root: Path) -> AsyncGenerator[Streams]:
    """The runtime, its streams and its files below `root`."""
    runtime = FakeRuntime(RuntimeCore(), LoopClock(0))
    runtime.core.store.logs.files = NodeFiles(root)
    asked = sandbox()
    asked.config.log_directory = "/logs"
    pod = (await runtime.RunPodSandbox(asked)).pod_sandbox_id
    app = container(pod, "run", "say=begun")
    app.config.log_path = "app.log"
    made = (await runtime.CreateContainer(app)).container_id
    await runtime.StartContainer(cri.StartContainerRequest(container_id=made))
    async with StreamServer(runtime), aiohttp.ClientSession() as session:
        yield Streams(runtime, session, pod, made)


@on_loop
async def test_command_has_output_and_exit_code(tmp_path: Path) -> None:
    """Output comes on its channel, and how the command ended as a Status at the end."""
    async with streams(tmp_path) as it:
        good, bad = await it.exec("echo", "hello", "you"), await it.exec("sh", "-c", "x 3 0")
        wrong = await it.exec("x", "soon")

    assert good == (b"hello you\n", {"metadata": {}, "status": "Success"})
    assert (bad[0], bad[1]["reason"]) == (b"out\n", "NonZeroExitCode")
    assert bad[1]["details"]["causes"] == [{"reason": "ExitCode", "message": "3"}]
    assert "no script" in wrong[1]["message"]


@on_loop
async def test_shell_reads_commands_until_its_input_ends(tmp_path: Path) -> None:
    """A shell ends with the last code, or as it is told; a terminal shows what is typed."""
    async with streams(tmp_path) as it:
        first = await it.exec("/bin/sh", typed=b"echo one\n\nx 4 0")
        second = await it.exec("sh", typed=b"echo 'a  b'\rexit 5\r", tty=True)

    assert (first[0], first[1]["details"]["causes"][0]["message"]) == (b"one\nout\n", "4")
    assert second[0] == b"echo 'a  b'\r\nexit 5\r\na  b\r\n"
    assert second[1]["details"]["causes"][0]["message"] == "5"


@on_loop
async def test_attached_client_sees_what_is_written_until_the_end(tmp_path: Path) -> None:
    """Lines go to the log file and to whoever is attached; after a rotation they go to the new file."""
    async with streams(tmp_path) as it:
        log = tmp_path / "logs/app.log"
        url = (await it.runtime.Attach(cri.AttachRequest(container_id=it.app, stdin=True, stdout=True))).url
        async with it.session.ws_connect(url, protocols=(V5,)) as socket:
            await socket.send_bytes(b"\0typed\n")
            seen = await socket.receive_bytes()
            log.rename(tmp_path / "old.log")
            await it.runtime.ReopenContainerLog(cri.ReopenContainerLogRequest(container_id=it.app))
            it.runtime.say(it.app, "after")
            it.runtime.exit(it.app, 7)
            last, status = await rest(socket)

    assert (seen, last, status["details"]["causes"][0]["message"]) == (b"\1typed\n", b"after\n", "7")
    logs = [file.read_text().splitlines() for file in (tmp_path / "old.log", log)]
    texts = [[line.split(" ", 1)[1] for line in lines] for lines in logs]
    assert texts == [["stdout F begun", "stdout F typed"], ["stdout F after"]]


@on_loop
async def test_forwarded_port_answers(tmp_path: Path) -> None:
    """Each port has a channel of data, begins with its number, and answers HTTP."""
    async with streams(tmp_path) as it:
        asked = cri.PortForwardRequest(pod_sandbox_id=it.pod, port=[8080])
        url = (await it.runtime.PortForward(asked)).url
        async with it.session.ws_connect(url, protocols=("v4.channel.k8s.io",)) as socket:
            numbers = [await socket.receive_bytes() for _ in range(2)]
            await socket.send_bytes(b"\0GET / HTTP/1.1\r\n")
            await socket.send_bytes(b"\0\r\n")
            answer = await socket.receive_bytes()

    assert numbers == [b"\0\x90\x1f", b"\1\x90\x1f"]
    assert answer.startswith(b"\0HTTP/1.1 200 OK")


@on_loop
async def test_url_is_good_once_and_for_known_protocols(tmp_path: Path) -> None:
    """A used token is not found, an unknown protocol is refused, no URL is given without a server."""
    async with streams(tmp_path) as it:
        ask = cri.ExecRequest(container_id=it.app, cmd=["echo"])
        url = (await it.runtime.Exec(ask)).url
        headers = {"Connection": "Upgrade", "Upgrade": "SPDY/3.1", "X-Stream-Protocol-Version": "v9"}
        async with it.session.post(url, headers=headers) as answer:
            spdy = answer.status, await answer.text()
        async with it.session.get(url) as answer:
            again = answer.status
    error = await refused(it.runtime.Exec(ask), "UNIMPLEMENTED")

    assert (spdy[0], again) == (400, 404)
    assert "channel.k8s.io, not SPDY/3.1 v9" in spdy[1]
    assert "serves no streams" in str(error.details())


@pytest.mark.slow
@on_loop
async def test_server_ends_with_a_client_that_opens_no_streams(tmp_path: Path) -> None:
    """Neither a client of SPDY that leaves before its streams nor one that stays holds the server up."""
    async with streams(tmp_path) as it:
        ask = cri.ExecRequest(container_id=it.app, cmd=["echo"])
        headers = {"Connection": "Upgrade", "Upgrade": "SPDY/3.1"}
        async with it.session.post((await it.runtime.Exec(ask)).url, headers=headers) as answer:
            left = answer.status
        url = URL((await it.runtime.Exec(ask)).url)
        reader, writer = await asyncio.open_connection(url.host, url.port)
        lines = (f"POST {url.path} HTTP/1.1", "Host: x", "Connection: Upgrade", "Upgrade: SPDY/3.1", "", "")
        writer.write("\r\n".join(lines).encode())
        stayed = await reader.readline()
        began = asyncio.get_running_loop().time()
    took = asyncio.get_running_loop().time() - began
    writer.close()

    assert (left, stayed) == (101, b"HTTP/1.1 101 Switching Protocols\r\n")
    assert took < 10


@pytest.mark.parametrize("kind", ["exec", "attach"])
@on_loop
async def test_what_does_not_run_is_refused(tmp_path: Path, kind: str) -> None:
    """A container that has ended gets no stream."""
    async with streams(tmp_path) as it:
        it.runtime.exit(it.app, 0)
        call = it.runtime.Exec if kind == "exec" else it.runtime.Attach
        request = cri.ExecRequest if kind == "exec" else cri.AttachRequest

        await refused(call(request(container_id=it.app)), "FAILED_PRECONDITION")
