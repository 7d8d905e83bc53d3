"""`record` and `slice` as commands: what they refuse, what they say, how they end."""

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import grpc.aio
import pytest
from command import in_process
from cri_api.v1 import api_pb2 as cri
from pod_life import stubs
from recorder_command import recording
from tapped import serving

from kubelet_conformance.targets import cri_endpoint
from kubelet_conformance.trace.format.reader import Reader
from kubelet_fixtures import traces

TRACE = traces() / "kubernetes-1.32" / "hooks.jsonl"


def sockets(folder: Path) -> list[str]:
    """Where to listen and where the runtime is, as options."""
    return ["--listen", f"unix://{folder / 'tap' / 'tap.sock'}", "--to", f"unix://{folder / 'runtime.sock'}"]


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_records_until_a_signal(tmp_path: Path, number: signal.Signals) -> None:
    """A client's calls are in the trace, the socket is gone, and the end says what was recorded."""
    trace, tap = tmp_path / "trace.jsonl", tmp_path / "tap" / "tap.sock"

    async def scenario() -> tuple[int, str, str]:
        async with (
            serving(tmp_path / "runtime.sock"),
            recording(tap, tmp_path / "runtime.sock", "-o", trace, "--kubernetes", "1.32") as recorder,
            grpc.aio.insecure_channel(f"unix://{tap}") as channel,
        ):
            runtime, _ = stubs(channel)
            await runtime.Version(cri.VersionRequest(), timeout=20)
            mode = tap.stat().st_mode & 0o777, tap.parent.stat().st_mode & 0o777
            code = await recorder.end(number)
        assert mode == (0o600, 0o700)
        return code, recorder.out, recorder.err

    code, out, err = asyncio.run(scenario())
    with Reader(trace) as reader:
        kinds = [record.kind for record in reader]

    assert (code, err) == (0, "")
    assert out.startswith(f"recorded {trace}: 3 records, 1 calls, ")
    assert kinds == ["call", "reply", "end"]
    assert sorted(each.name for each in tmp_path.iterdir()) == ["trace.jsonl"]


@pytest.mark.slow
def test_runtime_may_come_later(tmp_path: Path) -> None:
    """Without a runtime it says so and starts all the same; calls pass once there is one."""
    trace, tap = tmp_path / "trace.jsonl", tmp_path / "tap" / "tap.sock"

    async def scenario() -> str:
        hasty = [("grpc.initial_reconnect_backoff_ms", 20), ("grpc.max_reconnect_backoff_ms", 20)]
        async with (
            recording(tap, tmp_path / "runtime.sock", "-o", trace) as recorder,
            grpc.aio.insecure_channel(f"unix://{tap}", options=hasty) as channel,
            serving(tmp_path / "runtime.sock"),
        ):
            runtime, _ = stubs(channel)
            await runtime.Version(cri.VersionRequest(), timeout=20, wait_for_ready=True)
            assert await recorder.end() == 0
        return recorder.err

    err = asyncio.run(scenario())

    assert err == (
        f"note: unix://{tmp_path}/runtime.sock: No such file or directory; "
        "clients are refused until a runtime answers there\n"
        "note: the trace will not say its Kubernetes version, on which many contracts depend; "
        "give --kubernetes\n"
    )


@pytest.mark.slow
def test_json_report_tells_the_files(tmp_path: Path) -> None:
    """--format json prints one object; without --judge it has no check, and no call is no failure."""
    trace, tap = tmp_path / "trace.jsonl", tmp_path / "tap" / "tap.sock"

    async def scenario() -> tuple[int, str]:
        async with recording(
            tap, tmp_path / "runtime.sock", "-o", trace, "--format", "json", "--no-redact"
        ) as recorder:
            code = await recorder.end()
        return code, recorder.out

    code, out = asyncio.run(scenario())
    report = json.loads(out)

    assert code == 0
    assert (report["schema"], report["check"], report["recorded"]["files"]) == (1, None, [str(trace)])
    assert report["recorded"]["calls"] == 0


@pytest.mark.slow
def test_full_disk_ends_the_record_and_not_the_node(tmp_path: Path) -> None:
    """When nothing more can be written that is said at once, calls go on passing, and the exit code is 2."""
    trace, tap = tmp_path / "trace.jsonl", tmp_path / "tap" / "tap.sock"

    async def scenario() -> tuple[int, str]:
        async with (
            serving(tmp_path / "runtime.sock"),
            recording(tap, tmp_path / "runtime.sock", "-o", trace, file_bytes_max=8192) as recorder,
            grpc.aio.insecure_channel(f"unix://{tap}") as channel,
        ):
            runtime, _ = stubs(channel)
            for _ in range(100):
                await runtime.Version(cri.VersionRequest(), timeout=20)
            said = await recorder.says("cannot be written")
            await runtime.Version(cri.VersionRequest(), timeout=20)
            return await recorder.end(), said

    code, said = asyncio.run(scenario())

    assert code == 2
    assert said == (
        f"error: {trace}: cannot be written: File too large; nothing more is recorded, "
        "and calls go on passing\n"
    )


def test_listen_path_in_use_is_two(tmp_path: Path) -> None:
    """A socket that somebody answers is left alone, and no trace is begun."""
    path = tmp_path / "cri.sock"
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(os.fspath(path))
        other.listen()
        done = subprocess.run(
            [
                *(sys.executable, "-P", "-m", "kubelet_conformance", "record", "--listen", f"unix://{path}"),
                *("--to", f"unix://{tmp_path}/runtime.sock", "-o", str(tmp_path / "trace.jsonl")),
            ],
            capture_output=True,
            check=False,
            timeout=60,
        )

    assert (done.returncode, done.stdout) == (2, b"")
    assert f"error: {path}: in use by another program" in done.stderr.decode()
    assert sorted(each.name for each in tmp_path.iterdir()) == ["cri.sock"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["-o", "{folder}"], "is a folder; name a file for the trace"),
        (["-o", "/dev/null"], "is no plain file; name one for the trace"),
        (["-o", "{folder}/none/trace.jsonl"], "its folder does not exist; make it first"),
        (["-o", "{folder}/t.jsonl", "--pods", "ftp://x/pods"], "is no folder and no URL"),
        (["-o", "{folder}/t.jsonl", "--max-size", "0"], "0 is not in the range x>=1"),
        (["-o", "{folder}/t.jsonl", "--kubernetes", "new"], "'new' is no Kubernetes version"),
        (["-o", "{folder}/t.jsonl", "--listen", "tcp://x"], "no unix socket with an absolute path"),
        (["-o", "{folder}/t.jsonl", "--to", "unix:///dev/null"], "/dev/null: this is no socket"),
        ([], "Missing option '-o'"),
        (["-o", "{folder}/x", "--kubernetes", "9.9"], "this suite knows 1.24 to 1.36"),
    ],
)
def test_wrong_usage_of_record_is_two(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, arguments: list[str], said: str
) -> None:
    """What can never become good is refused with one message, before anything listens."""
    given = [each.format(folder=tmp_path) for each in arguments]
    ended = in_process(capsys, "record", *sockets(tmp_path), *given)

    assert (ended.code, ended.out) == (2, "")
    assert said in ended.err
    assert list(tmp_path.iterdir()) == []


def test_socket_of_something_else_is_two(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where somebody listens who does not speak the CRI nothing is recorded."""
    monkeypatch.setattr(cri_endpoint, "_ANSWER_SECONDS", 0.5)
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(str(tmp_path / "other.sock"))
        other.listen()
        given = ("--to", f"unix://{tmp_path}/other.sock", "-o", tmp_path / "trace.jsonl")
        ended = in_process(capsys, "record", *sockets(tmp_path), *given)

    assert (ended.code, ended.out) == (2, "")
    assert "other.sock: did not answer Version within 0.5 s: is that a container runtime?" in ended.err


def test_folder_that_cannot_be_written_is_two(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """A folder in which no file can be made, even by root, is refused at once."""
    ended = in_process(capsys, "record", *sockets(tmp_path), "-o", "/proc/trace.jsonl")

    assert ended.code == 2
    assert "/proc/trace.jsonl: cannot be written: " in ended.err


def test_slice_says_what_it_kept(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """The slice is a trace that `check` reads, for its owner only."""
    output = tmp_path / "slice.jsonl"
    ended = in_process(capsys, "slice", TRACE, "--pod", "default/web", "--from", "1", "-o", output)
    checked = in_process(capsys, "check", output)

    assert (ended.code, ended.err) == (0, "")
    assert "records of default/web, without secrets" in ended.out
    assert checked.code == 0
    assert output.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--pod", "default/nobody"], "knows no pod default/nobody"),
        (["--pod", "a/b/c"], "'a/b/c' is no pod"),
        (["--from", "1000"], "the trace ends at 11.9518 s"),
        (["--from", "-1"], "--from -1 is no time"),
        (["--from", "nan"], "--from nan is no time"),
        (["--from", "3", "--to", "2"], "--from 3 is after --to 2"),
    ],
)
def test_wrong_usage_of_slice_is_two(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, arguments: list[str], said: str
) -> None:
    """What cannot be cut is named, and an older slice stays as it was."""
    output = tmp_path / "slice.jsonl"
    output.write_text("old")
    ended = in_process(capsys, "slice", TRACE, *arguments, "-o", output)

    assert (ended.code, ended.out) == (2, "")
    assert said in ended.err
    assert output.read_text() == "old"
    assert list(tmp_path.iterdir()) == [output]


def test_slice_of_no_trace_is_two(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Bad input names the file and the line; the input is never the output."""
    bad = tmp_path / "bad.jsonl"
    bad.write_text("{}\n")
    refused = in_process(capsys, "slice", bad, "-o", tmp_path / "x.jsonl")
    itself = in_process(capsys, "slice", bad, "-o", bad)

    assert (refused.code, itself.code) == (2, 2)
    assert f"{bad}:1: this is no trace header" in refused.err
    assert "is an input too" in itself.err
