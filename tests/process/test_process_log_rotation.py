"""Logs of containers are rotated: put aside when too large, packed, removed when too many."""

from __future__ import annotations

import asyncio
import gzip
from typing import TYPE_CHECKING, Any

import grpc
import pytest
from cri_api.v1 import api_pb2 as cri

from kubelet_fakes.runtime import CallError
from kubelet_reference.process.configuration import Configuration
from kubelet_reference.process.log_rotation import LogRotation, excess, rotated_names

if TYPE_CHECKING:
    from pathlib import Path

NOON_NS = 1_767_268_800 * 10**9


class Noon:
    """A clock that stands still at 2026-01-01T12:00:00Z."""

    def monotonic(self) -> float:
        """No time has passed."""
        return 0.0

    def wall_ns(self) -> int:
        """Always the same."""
        return NOON_NS

    async def sleep(self, seconds: float) -> None:
        """Nobody sleeps here."""
        raise NotImplementedError(seconds)


class Runtime:
    """One running container and one that has ended, with a log; reopening makes the file anew."""

    def __init__(self, log: Path) -> None:
        self.log = log
        self.reopened = 0
        self.refuses = False

    async def ListContainers(self, request: Any, **timeout: float) -> cri.ListContainersResponse:
        """Both."""
        del request, timeout
        running = cri.Container(id="run", state=cri.CONTAINER_RUNNING)
        return cri.ListContainersResponse(
            containers=[running, cri.Container(id="end", state=cri.CONTAINER_EXITED)]
        )

    async def ContainerStatus(self, request: Any, **timeout: float) -> cri.ContainerStatusResponse:
        """The running one's log."""
        assert (request.container_id, timeout) == ("run", {"timeout": 120})
        return cri.ContainerStatusResponse(status=cri.ContainerStatus(id="run", log_path=str(self.log)))

    async def ReopenContainerLog(self, request: Any, **timeout: float) -> cri.ReopenContainerLogResponse:
        """Make the file."""
        del request, timeout
        if self.refuses:
            raise CallError(grpc.StatusCode.INTERNAL, "no")
        self.reopened += 1
        self.log.touch()
        return cri.ReopenContainerLogResponse()


@pytest.fixture
def runtime(tmp_path: Path) -> Runtime:
    """A runtime whose container has a log of 10 bytes."""
    folder = tmp_path / "pods" / "app"
    folder.mkdir(parents=True)
    (folder / "0.log").write_bytes(b"0123456789")
    return Runtime(folder / "0.log")


def look(runtime: Runtime, **limits: int) -> list[str]:
    """Let the kubelet look once; the names in the folder of the log."""
    folder = runtime.log.parent
    configuration = Configuration(pod_logs_dir=str(folder.parent), **limits)  # type: ignore[arg-type]
    asyncio.run(LogRotation(runtime, Noon(), configuration).look())
    return sorted(each.name for each in folder.iterdir())


def test_small_log_is_left_alone(runtime: Runtime) -> None:
    """A log below the limit stays."""
    assert look(runtime, container_log_max_size=11) == ["0.log"]
    assert runtime.reopened == 0


def test_large_log_is_put_aside(runtime: Runtime) -> None:
    """A log at the limit gets the time as its ending, and the runtime opens a new one."""
    assert look(runtime, container_log_max_size=10) == ["0.log", "0.log.20260101-120000"]
    assert (runtime.log.read_bytes(), runtime.reopened) == (b"", 1)


def test_older_parts_are_packed_and_the_oldest_go(runtime: Runtime) -> None:
    """What was put aside before is packed; never are there more files than allowed."""
    folder = runtime.log.parent
    for name in (
        "0.log.20250101-000000.gz",
        "0.log.20250102-000000.gz",
        "0.log.20250103-000000",
        "0.log.x.tmp",
    ):
        (folder / name).write_bytes(b"old")

    assert look(runtime, container_log_max_size=1, container_log_max_files=3) == [
        "0.log",
        "0.log.20250103-000000.gz",
        "0.log.20260101-120000",
    ]
    assert gzip.decompress((folder / "0.log.20250103-000000.gz").read_bytes()) == b"old"


def test_runtime_that_does_not_reopen_keeps_its_log(runtime: Runtime) -> None:
    """Where the runtime goes on writing into the old file, that stays the log."""
    runtime.refuses = True

    assert look(runtime, container_log_max_size=1) == ["0.log"]


def test_missing_log_is_opened_anew(runtime: Runtime) -> None:
    """A log that somebody took away is asked for again."""
    runtime.log.unlink()

    assert look(runtime) == ["0.log"]
    assert runtime.reopened == 1


def test_path_elsewhere_is_not_touched(runtime: Runtime, tmp_path: Path) -> None:
    """A runtime cannot have a file rotated that is no log, nor by a link."""
    elsewhere = tmp_path / "passwd"
    elsewhere.write_bytes(b"0123456789")
    link = runtime.log.parent / "1.log"
    link.symlink_to(elsewhere)
    for told in (elsewhere, runtime.log.parent / ".." / ".." / "passwd", link):
        runtime.log = told
        asyncio.run(
            LogRotation(
                runtime, Noon(), Configuration(pod_logs_dir=str(tmp_path / "pods"), container_log_max_size=1)
            ).look()
        )

    assert (elsewhere.read_bytes(), runtime.reopened) == (b"0123456789", 0)


def test_names() -> None:
    """Parts of another log, and what is half packed, are no parts of this one."""
    names = ["0.log", "0.log.2", "0.log.1.gz", "0.log.3.tmp", "10.log.1"]

    assert rotated_names(names, "0.log") == ["0.log.1.gz", "0.log.2"]
    assert excess(["a", "b", "c"], 3) == ["a", "b"]
    assert excess(["a"], 5) == []
