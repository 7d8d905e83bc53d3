"""`serve-fake`: a real client plays with the fake runtime, and a signal ends it cleanly."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import grpc
import pytest
from command import in_process
from cri_api.v1 import api_pb2 as cri
from pod_life import container, sandbox, stubs


@contextmanager
def serving(path: Path) -> Generator[tuple[subprocess.Popen[str], str]]:
    """The command in a process of its own, and the line it prints when clients can connect."""
    command = [sys.executable, "-m", "kubelet_conformance", "serve-fake", "--listen", f"unix://{path}"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield process, process.stdout.readline()
        finally:
            process.kill()


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_serves_until_a_signal(tmp_path: Path, number: signal.Signals) -> None:
    """It says where it is, answers a client, and at the signal takes its socket away and ends with 0."""
    path = tmp_path / "run" / "cri.sock"
    with serving(path) as (process, line), grpc.insecure_channel(f"unix://{path}") as channel:
        runtime, _ = stubs(channel)
        pod = runtime.RunPodSandbox(sandbox(), timeout=20).pod_sandbox_id
        app = runtime.CreateContainer(container(pod, "run"), timeout=20).container_id
        runtime.StartContainer(cri.StartContainerRequest(container_id=app), timeout=20)
        started = runtime.ContainerStatus(
            cri.ContainerStatusRequest(container_id=app), timeout=20
        ).status.started_at
        process.send_signal(number)
        code = process.wait(timeout=20)
        out, err = process.communicate(timeout=20)

    assert line == (
        "fake 1.0.0: runtime.v1.RuntimeService (30 methods), runtime.v1.ImageService (5 methods) "
        f"at unix://{path}; end it with Ctrl-C\n"
    )
    assert (code, out, err) == (0, "", "")
    assert abs(started - path_time_ns(tmp_path)) < 600 * 10**9
    assert list(tmp_path.iterdir()) == []


def path_time_ns(path: Path) -> int:
    """The machine's time of day, as the file system last took it down for this folder."""
    return path.stat().st_mtime_ns


def test_bad_address_is_two(capsys: pytest.CaptureFixture[str]) -> None:
    """An address that is none is a usage error with an example."""
    ended = in_process(capsys, "serve-fake", "--listen", "tcp://localhost:1")

    assert (ended.code, ended.out) == (2, "")
    assert ended.err == (
        "error: tcp://localhost:1: no unix socket with an absolute path; write it like unix:///run/fake.sock\n"
    )


def test_missing_address_is_two(capsys: pytest.CaptureFixture[str]) -> None:
    """The address has to be given."""
    ended = in_process(capsys, "serve-fake")

    assert ended.code == 2
    assert "Missing option '--listen'" in ended.err


def test_socket_in_use_is_two(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """A socket that somebody listens on is left alone."""
    path = tmp_path / "cri.sock"
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(os.fspath(path))
        other.listen()
        ended = in_process(capsys, "serve-fake", "--listen", f"unix://{path}")

    assert (ended.code, ended.out) == (2, "")
    assert ended.err == f"error: {path}: in use by another program: name another path, or end that\n"
    assert path.exists()
