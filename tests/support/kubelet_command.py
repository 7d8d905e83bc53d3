"""`kubelet-reference` in a process of its own, beside a fake runtime on a socket in this one."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from inspect import isasyncgenfunction
from pathlib import Path
from typing import Any

import aiohttp

from kubelet_fakes.runtime import FakeRuntime, RuntimeCore
from kubelet_fakes.runtime.serving.server import RuntimeServer
from kubelet_reference.server.host.system_clock import WallClock

Json = dict[str, Any]
#: Nothing here takes long; this only keeps a test that waits for nothing from hanging.
IN_VAIN_SECONDS = 40


def manifest(name: str = "web", *command: str, **spec: Any) -> str:
    """A pod with one container, as the text of a file."""
    container = {"name": "app", "image": "img:1", "command": command or ("run",)}
    pod = {"metadata": {"name": name}, "spec": {"containers": [container], **spec}}
    return json.dumps({"apiVersion": "v1", "kind": "Pod", **pod})


class Machine:
    """A folder with a runtime's socket, manifests and a root folder; the runtime can go and come back."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.socket = folder / "run" / "cri.sock"
        self.manifests = folder / "manifests"
        self.root = folder / "root"
        self.clock = WallClock()
        self.core = RuntimeCore(epoch_ns=self.clock.wall_ns())
        self.runtime = HeardRuntime(FakeRuntime(self.core, self.clock))
        self._server: RuntimeServer | None = None
        self.kubelets: list[KubeletCommand] = []

    async def runtime_comes(self) -> None:
        """Begin to listen."""
        self._server = RuntimeServer(self.runtime, self.socket)
        await self._server.__aenter__()

    async def runtime_goes(self) -> None:
        """Listen no more; what runs goes on."""
        server, self._server = self._server, None
        if server is not None:
            await server.__aexit__()

    def write(self, name: str, text: str) -> None:
        """Put a file into the manifest folder, all at once."""
        part = self.manifests / f".{name}"
        part.write_text(text, encoding="utf-8")
        part.rename(self.manifests / name)

    @property
    def flags(self) -> list[str]:
        """What tells a kubelet where everything is; ports are free ones."""
        return [
            f"--container-runtime-endpoint=unix://{self.socket}",
            f"--root-dir={self.root}",
            f"--pod-manifest-path={self.manifests}",
            f"--config={self.folder / 'config.yaml'}",
            "--hostname-override=node-1",
            "--port=0",
            "--healthz-port=0",
            "--v=2",
        ]

    async def start(self, *flags: str) -> KubeletCommand:
        """Start a kubelet and wait until it says so; flags come after the usual ones."""
        kubelet = await self.begin(*flags)
        await kubelet.says("Started kubelet-reference")
        return kubelet

    async def start_with_pod(self) -> KubeletCommand:
        """Start a kubelet whose one pod, `web`, runs."""
        self.write("web.yaml", manifest())
        kubelet = await self.start()
        await kubelet.until_running("web")
        return kubelet

    async def begin(self, *flags: str) -> KubeletCommand:
        """Start a kubelet."""
        kubelet = KubeletCommand(await begun(*self.flags, *flags))
        self.kubelets.append(kubelet)
        return kubelet


class HeardRuntime:
    """A runtime whose calls are written down by name, and that lies: `lies` change a copy of a reply."""

    def __init__(self, runtime: Any) -> None:
        self._runtime = runtime
        self.calls: list[str] = []
        self.lies: dict[str, Callable[[Any], object]] = {}

    def __getattr__(self, rpc: str) -> Any:
        method = getattr(self._runtime, rpc)
        if isasyncgenfunction(method):
            return method

        async def received(request: Any) -> Any:
            self.calls.append(rpc)
            reply = await method(request)
            if rpc in self.lies:
                lie = type(reply)()
                lie.CopyFrom(reply)
                self.lies[rpc](lie)
                return lie
            return reply

        return received

    def count(self, rpc: str) -> int:
        """How often it was called."""
        return self.calls.count(rpc)


class KubeletCommand:
    """A process; every line it writes is kept."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.lines: list[str] = []
        self._reported = asyncio.Event()
        self._reading = asyncio.create_task(self._read())

    async def _read(self) -> None:
        assert self.process.stderr is not None
        async for line in self.process.stderr:
            self.lines.append(line.decode().rstrip("\n"))
            self._reported.set()
        self._reported.set()

    async def says(self, text: str, *, times: int = 1) -> str:
        """Wait for a line that holds the text, for as many as asked; the last one."""
        while True:
            found = [line for line in self.lines if text in line]
            if len(found) >= times:
                return found[times - 1]
            if self._reading.done():
                raise AssertionError(f"it ended without saying {text!r}:\n" + "\n".join(self.lines))
            self._reported.clear()
            async with asyncio.timeout(IN_VAIN_SECONDS):
                await self._reported.wait()

    async def ended(self) -> int:
        """Wait for its end; the exit code."""
        async with asyncio.timeout(IN_VAIN_SECONDS):
            await self._reading
            return await self.process.wait()

    async def kill(self) -> None:
        """SIGKILL."""
        with suppress(ProcessLookupError):
            self.process.kill()
        await self.ended()

    @property
    def url(self) -> str:
        """Where it serves everything."""
        line = next(line for line in self.lines if "Serving /healthz, /pods" in line)
        return line.rpartition(" ")[2]

    async def get(self, path: str) -> tuple[int, str]:
        """The status and the text of an answer."""
        async with aiohttp.ClientSession() as session, session.get(self.url + path) as answer:
            return answer.status, await answer.text()

    async def pods(self) -> list[Json]:
        """The items of /pods."""
        _, text = await self.get("/pods")
        items: list[Json] = json.loads(text)["items"]
        return items

    async def until_pods(self, holds: Callable[[list[Json]], bool]) -> list[Json]:
        """Ask until the pods are so."""
        async with asyncio.timeout(IN_VAIN_SECONDS):
            while not holds(found := await self.pods()):
                await WallClock().sleep(0.05)
        return found

    async def until_running(self, *names: str) -> list[Json]:
        """Ask until these pods, and no others, are Running."""
        return await self.until_pods(
            lambda found: (
                {pod["metadata"]["name"] for pod in found} == {f"{name}-node-1" for name in names}
                and all(pod.get("status", {}).get("phase") == "Running" for pod in found)
            )
        )


async def begun(*arguments: str) -> asyncio.subprocess.Process:
    """The command, begun."""
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-P",
        "-m",
        "kubelet_reference.server",
        *arguments,
        stdin=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
        limit=1 << 20,
    )


@asynccontextmanager
async def on_machine(folder: Path) -> AsyncGenerator[Machine]:
    """A machine whose runtime listens; what still runs is ended."""
    machine = Machine(folder)
    machine.manifests.mkdir()
    logs = folder / "logs"
    (folder / "config.yaml").write_text(
        "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"
        f"podLogsDir: {logs}\nfileCheckFrequency: 1s\n"
        # However full the disk of this machine is.
        'evictionHard: {memory.available: "0%"}\nimageGCHighThresholdPercent: 100\n',
        encoding="utf-8",
    )
    await machine.runtime_comes()
    try:
        yield machine
    finally:
        for kubelet in machine.kubelets:
            await kubelet.kill()
        await machine.runtime_goes()


async def ran(*arguments: str) -> tuple[int, list[str]]:
    """Run the command to its end: the exit code, and what it wrote."""
    kubelet = KubeletCommand(await begun(*arguments))
    try:
        return await kubelet.ended(), kubelet.lines
    finally:
        await kubelet.kill()
