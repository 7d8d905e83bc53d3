"""What a kubelet's log says of panics: they are put on the record, in whatever form it writes them."""

import asyncio

import pytest
from on_loop import on_loop

from kubelet_conformance.targets.process.kubelet_log import KubeletLog
from kubelet_conformance.trace.format.recorder import Item, Recorder

STACK = (
    "goroutine 192 [running]:",
    "k8s.io/kubernetes/pkg/kubelet.probe(0x1b)",
    "\tkubelet/worker.go:9 +0x98",
)
PLAIN = ("E1124 12:27:06.1   28075 runtime.go:79] Observed a panic: no index (no index)", *STACK)
BELOW = (f"\t{each}" for each in STACK)
STRUCTURED = ('E1124 12:27:06.1 1 panic.go:9] "Observed a panic" panic="no index" stacktrace=<', *BELOW, " >")
JSON = (r'{"msg":"Observed a panic","stacktrace":"goroutine 192 [running]:\nprobe(...)\n\tw.go:9"}',)
SERVED = ("E1124 12:27:06.1 1 server.go:9] http: panic serving 127.0.0.1:9: no index", *STACK)


@pytest.mark.parametrize(
    "lines", [PLAIN, STRUCTURED, JSON, SERVED], ids=["text", "structured", "json", "http"]
)
@on_loop
async def test_panic_that_is_logged_is_recorded(lines: tuple[str, ...]) -> None:
    """Its lines are one record, whatever was written before; a second panic is another one."""
    recorder, read = Recorder(lambda: 0.0), asyncio.Event()
    log = KubeletLog(recorder)
    for line in ("I1124 started", *lines, *lines):
        log.read_line(line.encode())
    asyncio.get_running_loop().call_soon(read.set)
    await read.wait()
    found = [each.fields for each in recorder.records if isinstance(each, Item)]
    first, second = found

    assert first == second
    assert first["op"] == "panicked"
    assert len(first["log"]) == max(len(lines), 3)
    assert "panic" in first["log"][0]
    assert "goroutine 192 [running]:" in "".join(first["log"][:2])
