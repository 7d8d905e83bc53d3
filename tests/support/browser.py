"""Chromium without a window, driven by its DevTools protocol."""

import asyncio
import json
import tempfile
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp

CHROMIUM = "chromium"
PORT_IS = "DevTools listening on ws://"
PROBLEMS = {"Runtime.exceptionThrown", "Log.entryAdded", "Runtime.consoleAPICalled"}


@dataclass
class Tab:
    """A tab of the browser.

    Attributes:
        problems: what it wrote to its console, and exceptions of scripts.
    """

    socket: aiohttp.ClientWebSocketResponse
    problems: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    _asked: int = 0
    _seen: set[str] = field(default_factory=set[str])
    """The kinds of events that came."""

    async def ask(self, method: str, **parameters: Any) -> Any:
        """Call a method of the DevTools protocol."""
        self._asked += 1
        await self.socket.send_json({"id": self._asked, "method": method, "params": parameters})
        while True:
            answer = await self._receive()
            if answer.get("id") == self._asked:
                return answer["result"]

    async def _receive(self) -> dict[str, Any]:
        answer: dict[str, Any] = await self.socket.receive_json(timeout=60)
        self._seen.add(answer.get("method", ""))
        if answer.get("method") in PROBLEMS:
            self.problems.append(answer)
        return answer

    async def run(self, script: str) -> Any:
        """The value of an expression, or of what it promises."""
        how = {"returnByValue": True, "awaitPromise": True}
        answer = await self.ask("Runtime.evaluate", expression=script, **how)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    async def open(self, page: Path | str, width: int = 1280, *, dark: bool = False) -> None:
        """Show a page, which is a file or has a URL, and wait until it is there."""
        for domain in ("Page", "Runtime", "Log"):
            await self.ask(f"{domain}.enable")
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        await self.ask("Emulation.setDeviceMetricsOverride", **size)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        await self.ask("Emulation.setEmulatedMedia", features=[scheme])
        await self.ask("Page.navigate", url=page.as_uri() if isinstance(page, Path) else page)
        while "Page.loadEventFired" not in self._seen:
            await self._receive()

    async def settle(self) -> None:
        """Wait until the page has reacted, and is drawn again."""
        await self.run("new Promise((done) => setTimeout(() => requestAnimationFrame(() => done(1))))")

    async def open_all(self) -> None:
        """Open everything that can be opened, and wait until its pictures are drawn."""
        await self.run("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
        while await self.run("document.querySelector('script.later') !== null"):
            await self.settle()

    async def press(self, key: str) -> None:
        """Press a key where the focus is."""
        await self.ask("Input.dispatchKeyEvent", type="keyDown", key=key, code=key)


@asynccontextmanager
async def chromium() -> AsyncGenerator[Tab]:
    """A browser without a window, with an empty profile."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        options = ("--headless=new", "--no-sandbox", "--disable-gpu", f"--user-data-dir={profile}")
        browser = await asyncio.create_subprocess_exec(
            CHROMIUM,
            *options,
            "--remote-debugging-port=0",
            "about:blank",
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
        )
        try:
            assert browser.stderr is not None
            address = ""
            while not address:
                line = (await browser.stderr.readline()).decode()
                assert line, "Chromium ended before it listened"
                address = line.partition(PORT_IS)[2].partition("/")[0]
            async with aiohttp.ClientSession() as session:
                tabs = json.loads(await (await session.get(f"http://{address}/json")).text())
                url = next(each["webSocketDebuggerUrl"] for each in tabs if each["type"] == "page")
                async with session.ws_connect(url, max_msg_size=0) as socket:
                    yield Tab(socket)
        finally:
            browser.kill()
            await browser.wait()
