"""`run` on a real containerd: at its socket and privately, to the end and interrupted."""

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cri_api.v1 import api_pb2 as cri

from kubelet_conformance.targets.containerd import PrivateContainerd
from kubelet_conformance.targets.cri_endpoint import connected

SHARED = (
    "restart.crashed_container_is_run_again_alone",
    "sandbox.killed_sandbox_is_replaced",
    "pleg.pod_without_records_begins_anew",
    "status.host_network_pod_has_the_nodes_address",
    "hooks.failed_pre_stop_keeps_nobody",
)
ALONE = "workers.leftovers_of_an_ended_pod_are_stopped"
SCRIPTED = "sync.new_sandbox_has_to_be_read"


def command(*arguments: str) -> list[str]:
    """The command in a process of its own."""
    return [sys.executable, "-m", "kubelet_conformance", "run", *arguments]


def scenarios(*names: str) -> Iterator[str]:
    """The options that choose these."""
    for name in names:
        yield from ("--scenario", name)


def left_at(containerd: PrivateContainerd) -> list[str]:
    """The sandboxes that are there."""

    async def look() -> list[str]:
        async with connected(containerd.socket) as endpoint:
            found = await endpoint.services.ListPodSandbox(cri.ListPodSandboxRequest())
        return [each.metadata.namespace for each in found.items]

    return asyncio.run(look())


@pytest.fixture
def place() -> Iterator[Path]:
    """Where a run makes its private folders: none is taken for another's, and sockets have short paths."""
    with tempfile.TemporaryDirectory(prefix="kct-", dir="/tmp") as folder:
        yield Path(folder)


@pytest.fixture
def environment(place: Path) -> dict[str, str]:
    """What a run gets to know."""
    return {**os.environ, "TMPDIR": str(place)}


def test_scenarios_at_a_socket(
    containerd: PrivateContainerd, place: Path, environment: dict[str, str]
) -> None:
    """Scenarios share a node or have one of their own, all is judged, and nothing is left anywhere."""
    chosen = [*scenarios(*SHARED, ALONE, SCRIPTED), "--runtime", containerd.address, "--format", "json"]
    done = subprocess.run(command(*chosen), env=environment, capture_output=True, check=False, timeout=300)
    report: dict[str, Any] = json.loads(done.stdout)

    assert report["target"]["runtime"].startswith("containerd 1.")
    assert [(each["name"], each["unmet"], each["failed"]) for each in report["scenarios"]] == [
        (name, "", "") for name in sorted((*SHARED, ALONE))
    ]
    assert [each["id"] for each in report["contracts"] if each["verdict"] in {"broken", "error"}] == []
    assert report["not_applicable"] == [{"name": SCRIPTED, "reason": "needs a scripted runtime: inject"}]
    assert report["totals"]["kept"] > 120
    assert done.returncode == 0
    assert left_at(containerd) == []
    assert list(place.iterdir()) == []


def test_private_runtime_can_do_more(place: Path, environment: dict[str, str]) -> None:
    """A private containerd has files that scripts look for, and a registry; it is gone in the end."""
    chosen = scenarios("probes.failing_startup_kills", "runtime.pulled_image_is_known")
    done = subprocess.run(
        command(*chosen, "--runtime", "containerd", "--format", "json"),
        env=environment,
        capture_output=True,
        check=False,
        timeout=300,
    )
    report: dict[str, Any] = json.loads(done.stdout)

    assert [(each["unmet"], each["failed"]) for each in report["scenarios"]] == [("", "")] * 2
    assert report["not_applicable"] == []
    assert done.returncode == 0
    assert list(place.iterdir()) == []


def test_interrupted_run_leaves_nothing(
    containerd: PrivateContainerd, place: Path, environment: dict[str, str]
) -> None:
    """Ctrl-C in the middle of a pod's life ends with 130 when all is removed."""
    chosen = [*scenarios("init.long_init_is_waited_for"), "--runtime", containerd.address]
    pipe = subprocess.PIPE
    with subprocess.Popen(command(*chosen), env=environment, stdout=pipe, stderr=pipe) as process:
        asyncio.run(first_sandbox(containerd))
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=100)

    assert process.returncode == 130
    assert err.decode().rstrip().endswith("interrupted")
    assert left_at(containerd) == []
    assert list(place.iterdir()) == []


async def first_sandbox(containerd: PrivateContainerd) -> None:
    """Wait until somebody has a sandbox there."""
    loop = asyncio.get_running_loop()
    async with asyncio.timeout(100), connected(containerd.socket) as endpoint:
        while not (await endpoint.services.ListPodSandbox(cri.ListPodSandboxRequest())).items:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(loop.create_future(), 0.05)
