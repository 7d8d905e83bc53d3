"""A kubelet and a runtime with `record` between them: the trace holds it all, and nothing in it is broken."""

import asyncio
import json
import socket
from pathlib import Path

import pytest
from command import in_subprocess
from kubelet_command import manifest, on_machine
from on_loop import on_loop
from recorder_command import recording

from kubelet_conformance.trace.format.header import Header
from kubelet_conformance.trace.format.reader import Reader
from kubelet_reference.server.host.clock import LoopClock

pytestmark = pytest.mark.slow


def free_port() -> int:
    """A port of this machine that nobody listens at."""
    with socket.socket() as trial:
        trial.bind(("127.0.0.1", 0))
        port: int = trial.getsockname()[1]
    return port


def header(trace: Path) -> Header:
    """What the file begins with."""
    with Reader(trace) as reader:
        return reader.header


def kinds(trace: Path) -> dict[str, int]:
    """How many records of each kind it has."""
    found: dict[str, int] = {}
    with Reader(trace) as reader:
        for record in reader:
            found[record.kind] = found.get(record.kind, 0) + 1
    return found


def so_far(trace: Path, kind: str) -> int:
    """How many records of a kind it has while it grows; none before its writer has begun it."""
    if not trace.exists():
        return 0
    return trace.read_text(encoding="utf-8").count(f'"kind":"{kind}"')


async def until_recorded(trace: Path, kind: str, count: int) -> None:
    """Wait until the trace has so many records of a kind: the folder is read once a second."""
    clock = LoopClock(0)
    while so_far(trace, kind) < count:
        await clock.sleep(0.05)


@on_loop
async def test_a_folders_pods_are_recorded_and_judged(tmp_path: Path) -> None:
    """A static pod that comes and goes: calls and pod are in the trace, judged with nothing broken."""
    async with on_machine(tmp_path) as machine:
        trace, tap = tmp_path / "trace.jsonl", tmp_path / "tap" / "tap.sock"
        options = ("--pods", machine.manifests, "--node", "node-1", "--kubernetes", "1.32", "--judge")
        async with recording(tap, machine.socket, "-o", trace, *options) as recorder:
            kubelet = await machine.start(f"--container-runtime-endpoint=unix://{tap}")
            machine.write("web.yaml", manifest("web", "run", terminationGracePeriodSeconds=1))
            await kubelet.until_running("web")
            await until_recorded(trace, "pod", 1)
            stopped = asyncio.Event()
            machine.runtime.lies["StopPodSandbox"] = lambda _: stopped.set()
            (machine.manifests / "web.yaml").unlink()
            await stopped.wait()
            await until_recorded(trace, "pod", 2)
            code = await recorder.end()
        made = kinds(trace)

        assert (code, recorder.err) == (0, "")
        assert " 0 broken" in recorder.out
        assert f"recorded {trace}: " in recorder.out
        assert made["pod"] == 2
        assert made["end"] == 1
        assert machine.runtime.count("RunPodSandbox") == machine.runtime.count("StopPodSandbox") == 1


@on_loop
async def test_a_kubelets_pods_are_recorded(tmp_path: Path) -> None:
    """Read from the kubelet itself, pods have their UID; nothing is broken either.

    As it has no API server, its statuses are stored nowhere: the record ends its claim to have them.
    """
    async with on_machine(tmp_path) as machine:
        trace, tap = tmp_path / "trace.jsonl", tmp_path / "tap" / "tap.sock"
        port = free_port()
        url = f"http://127.0.0.1:{port}/pods"
        options = ("--pods", url, "--node", "node-1", "--kubernetes", "1.32", "--judge")
        async with recording(tap, machine.socket, "-o", trace, *options, "--format", "json") as recorder:
            unreachable = await recorder.says("note: ")
            kubelet = await machine.start(f"--container-runtime-endpoint=unix://{tap}", f"--port={port}")
            machine.write("web.yaml", manifest())
            (pod,) = await kubelet.until_running("web")
            code = await recorder.end()
        report = json.loads(recorder.out)
        files = [tmp_path / "trace.jsonl", tmp_path / "trace.1.jsonl"]
        channels = [header(file).channels for file in files]

        assert (code, recorder.err.count("note: ")) == (0, 1)
        assert f"{url}: [Errno 111] Connection refused" in unreachable
        assert "it is asked again and again" in unreachable + recorder.err
        assert report["recorded"]["files"] == list(map(str, files))
        assert [each.api for each in channels] == ["sampled", "none"]
        assert report["check"]["totals"]["broken"] == 0
        assert all(pod["metadata"]["uid"] in file.read_text() for file in files)


@on_loop
async def test_assumed_name_accuses_nobody(tmp_path: Path) -> None:
    """Static pods of a node with another name than the recorder assumes break nothing; `check` agrees."""
    async with on_machine(tmp_path) as machine:
        trace, tap = tmp_path / "trace.jsonl", tmp_path / "tap" / "tap.sock"
        options = ("--pods", machine.manifests, "--kubernetes", "1.32", "--judge", "--format", "json")
        async with recording(tap, machine.socket, "-o", trace, *options) as recorder:
            kubelet = await machine.start(f"--container-runtime-endpoint=unix://{tap}")
            machine.write("web.yaml", manifest())
            await kubelet.until_running("web")
            code = await recorder.end()
        judged = json.loads(recorder.out)["check"]
        checked = json.loads(in_subprocess("check", trace, "--format", "json").out)

        assert (code, header(trace).node_assumed) == (0, True)
        assert (judged["totals"]["broken"], judged["contracts"]) == (0, checked["contracts"])


@on_loop
async def test_runtime_that_goes_and_comes_is_reported(tmp_path: Path) -> None:
    """A runtime that is away, and back, is a fault that heals; pods go on, and nothing is broken."""
    async with on_machine(tmp_path) as machine:
        trace, tap = tmp_path / "trace.jsonl", tmp_path / "tap" / "tap.sock"
        options = ("--pods", machine.manifests, "--node", "node-1", "--kubernetes", "1.32", "--judge")
        async with recording(tap, machine.socket, "-o", trace, *options) as recorder:
            kubelet = await machine.start(f"--container-runtime-endpoint=unix://{tap}")
            machine.write("web.yaml", manifest())
            await kubelet.until_running("web")
            await machine.runtime_goes()
            await kubelet.says("is away")
            await machine.runtime_comes()
            await kubelet.says("is back")
            machine.write("late.yaml", manifest("late"))
            await kubelet.until_running("web", "late")
            code = await recorder.end()
        with Reader(trace) as reader:
            faults = [getattr(record, "what", "") for record in reader if record.kind == "fault"]

        assert (code, recorder.err) == (0, "")
        assert faults == ["the runtime is away", "healed: the runtime is away"]
