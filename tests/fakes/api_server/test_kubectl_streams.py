"""kubectl exec, attach and port-forward through a kubelet that passes streams on, to the fake runtime."""

import asyncio
import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web
from api_world import pod
from cri_api.v1 import api_pb2 as cri
from kubectl_command import Kubectl
from on_loop import on_loop
from pod_life import container, sandbox
from served_api import ServedApi, served_api
from yarl import URL

from kubelet_fakes.api_server import kubelet_proxy
from kubelet_fakes.clock import LoopClock
from kubelet_fakes.runtime import FakeRuntime, RuntimeCore
from kubelet_fakes.runtime.serving.streams import StreamServer

#: What has kubectl speak SPDY/3.1, with a message on its standard error for each request; or WebSocket.
SPOKEN = {
    "websocket": {},
    "spdy": {"KUBECTL_REMOTE_COMMAND_WEBSOCKETS": "false", "KUBECTL_PORT_FORWARD_WEBSOCKETS": "false"},
}


class PassingKubelet:
    """The part of a kubelet that asks the runtime for a URL, and passes the client's connection on to it."""

    def __init__(self, runtime: FakeRuntime, sandbox_id: str, container_id: str) -> None:
        self._runtime, self._sandbox, self._container = runtime, sandbox_id, container_id

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """Execute, attach or forward as the path says."""
        query = request.query
        io = {"stdin": "input" in query, "stdout": "output" in query, "stderr": "error" in query}
        tty = "tty" in query
        match request.path.split("/")[1]:
            case "exec":
                cmd = query.getall("command")
                asked = cri.ExecRequest(container_id=self._container, cmd=cmd, tty=tty, **io)
                url = (await self._runtime.Exec(asked)).url
            case "attach":
                attached = cri.AttachRequest(container_id=self._container, tty=tty, **io)
                url = (await self._runtime.Attach(attached)).url
            case _:
                ports = [int(port) for port in query.getall("ports", [])]
                forwarded = cri.PortForwardRequest(pod_sandbox_id=self._sandbox, port=ports)
                url = (await self._runtime.PortForward(forwarded)).url
        return await kubelet_proxy.tunnel(request, URL(url).path, URL(url).port or 0)


@asynccontextmanager
async def running_pod(
    monkeypatch: pytest.MonkeyPatch, folder: Path, speaks: str
) -> AsyncGenerator[tuple[Kubectl, FakeRuntime, str]]:
    """A pod web of one container, on a node whose kubelet passes streams on."""
    for name, value in SPOKEN[speaks].items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(kubelet_proxy, "kubelet_tls", lambda: None)
    runtime = FakeRuntime(RuntimeCore(), LoopClock(0))
    sandbox_id = (await runtime.RunPodSandbox(sandbox())).pod_sandbox_id
    container_id = (await runtime.CreateContainer(container(sandbox_id, "run"))).container_id
    await runtime.StartContainer(cri.StartContainerRequest(container_id=container_id))
    application = web.Application()
    application.router.add_route("*", "/{path:.*}", PassingKubelet(runtime, sandbox_id, container_id).answer)
    runner = web.AppRunner(application)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    async with StreamServer(runtime), served_api() as api:
        _create_running(api, runner.addresses[0][1])
        yield Kubectl(api, folder), runtime, container_id
    await runner.cleanup()


def _create_running(api: ServedApi, port: int) -> None:
    endpoint = {"kubeletEndpoint": {"Port": port}}
    api.core.create("nodes", {"metadata": {"name": "node-1"}, "status": {"daemonEndpoints": endpoint}})
    api.core.create("pods", pod(container={"stdin": True}))
    api.core.patch("pods", "web", {"status": {"phase": "Running"}}, subresource="status")


@pytest.mark.slow
@pytest.mark.parametrize("speaks", SPOKEN)
@on_loop
async def test_exec(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, speaks: str) -> None:
    """A command's output and exit code, a shell's, and what it cannot run."""
    async with running_pod(monkeypatch, tmp_path, speaks) as (kubectl, _, _):
        said = await kubectl("exec", "web", "--", "echo", "hello", "true", "false")
        failed = await kubectl("exec", "web", "--", "x", "3", "0")
        shell = await kubectl("exec", "-i", "web", "--", "sh", stdin="echo one\nexit 5\n")
        quote = await kubectl("exec", "-i", "web", "--", "sh", stdin="echo 'one\n")

    assert said == "hello true false"
    assert failed == "out\ncommand terminated with exit code 3"
    assert shell == "one\ncommand terminated with exit code 5"
    assert "the shell cannot read this: No closing quotation" in quote


@pytest.mark.slow
@pytest.mark.parametrize("speaks", SPOKEN)
@on_loop
async def test_attach(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, speaks: str) -> None:
    """What is typed is written and comes back; the end of the container ends the command with its code."""
    async with running_pod(monkeypatch, tmp_path, speaks) as (kubectl, runtime, container_id):
        process = await kubectl.start("attach", "-i", "--quiet", "web")
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b"typed\n")
        await process.stdin.drain()
        seen = await process.stdout.readline()
        runtime.say(container_id, "after")
        runtime.exit(container_id, 7)
        rest, _ = await process.communicate()

    assert seen == b"typed\n"
    assert rest.decode().splitlines()[0] == "after"
    assert process.returncode == 7


@pytest.mark.slow
@pytest.mark.parametrize("speaks", SPOKEN)
@on_loop
async def test_port_forward(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, speaks: str) -> None:
    """A local port answers more than once, over SPDY: kubectl falls back to it."""
    async with running_pod(monkeypatch, tmp_path, speaks) as (kubectl, _, _):
        process = await kubectl.start("port-forward", "web", ":8080")
        assert process.stdout is not None
        line = ""
        while not (port := re.search(r"127\.0\.0\.1:(\d+) -> 8080", line)):
            line = (await asyncio.wait_for(process.stdout.readline(), 20)).decode()
            assert line, "kubectl has ended"
        async with aiohttp.ClientSession() as session:
            answers = [await _page(session, int(port[1])) for _ in range(2)]
        process.terminate()
        await process.communicate()

    assert answers == [(200, "ok\n")] * 2


async def _page(session: aiohttp.ClientSession, port: int) -> tuple[int, str]:
    async with session.get(f"http://127.0.0.1:{port}/") as answer:
        return answer.status, await answer.text()
