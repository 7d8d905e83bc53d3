"""`runtime` on a real containerd: every contract that it can show is judged, and nothing is left."""

import asyncio
import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cri_api.v1 import api_pb2 as cri

from kubelet_conformance.runtime_checks.judging import the_runtimes
from kubelet_conformance.runtime_checks.scenarios import every_runtime_scenario
from kubelet_conformance.targets.containerd import PrivateContainerd
from kubelet_conformance.targets.cri_endpoint import connected

NEWER_THAN_1_6 = {"CRI-30", "CRI-31", "CRI-39"}
"""What the CRI of containerd 1.6 does not have: events, time stamps of statuses, image_id."""
ENDED_BY = {signal.SIGINT: 130, signal.SIGTERM: 130}


def command(*arguments: str) -> list[str]:
    """The command in a process of its own."""
    return [sys.executable, "-m", "kubelet_conformance", "runtime", *arguments]


def left_at(containerd: PrivateContainerd) -> list[str]:
    """The names of sandboxes and containers of this suite, and of images that it pulled."""

    async def look() -> list[str]:
        async with connected(containerd.socket) as endpoint:
            services = endpoint.services
            sandboxes = (await services.ListPodSandbox(cri.ListPodSandboxRequest())).items
            containers = (await services.ListContainers(cri.ListContainersRequest())).containers
            images = (await services.ListImages(cri.ListImagesRequest())).images
        tags = [tag for image in images for tag in image.repo_tags if "kubelet-conformance" in tag]
        return [*(one.metadata.name for one in (*sandboxes, *containers)), *tags]

    return asyncio.run(look())


def test_all_that_containerd_can_show_is_judged(tmp_path: Path) -> None:
    """Each contract is kept, known to deviate, or declared not applicable; ours is restarted too."""
    done = subprocess.run(
        command("containerd", "--format", "json", "--require-exercised", "--record", str(tmp_path)),
        capture_output=True,
        check=False,
        timeout=300,
    )
    report: dict[str, Any] = json.loads(done.stdout)
    verdicts = {each["id"]: each["verdict"] for each in report["contracts"]}
    idle = {key for key, verdict in verdicts.items() if verdict == "not_applicable"}

    assert (done.returncode, done.stderr) == (0, b"")
    assert set(verdicts) == set(the_runtimes())
    assert idle == NEWER_THAN_1_6
    assert set(verdicts.values()) == {"kept", "known_deviation", "not_applicable"}
    assert Path(report["baseline"]["path"]).name == "containerd-1.6.toml"
    assert "a_restart_changes_nothing" in [each["name"] for each in report["scenarios"]]
    assert len(list((tmp_path / "traces").iterdir())) > len(every_runtime_scenario()) // 2


def test_a_socket_is_left_as_it_was(containerd: PrivateContainerd) -> None:
    """On a socket too nothing breaks that is not known. A runtime that pulls from a mirror says so."""
    before = left_at(containerd)
    done = subprocess.run(
        command(containerd.address, "CRI-0*", "CRI-2*", "--format", "json"),
        capture_output=True,
        check=False,
        timeout=300,
    )
    report: dict[str, Any] = json.loads(done.stdout)
    reasons = {each["id"]: "; ".join(each["reasons"]) for each in report["contracts"]}

    assert (done.returncode, done.stderr) == (0, b"")
    assert reasons["CRI-25"] == "it does not pull from a registry on loopback over plain HTTP"
    assert left_at(containerd) == before


@pytest.mark.parametrize("ended_by", ENDED_BY)
def test_a_run_that_is_interrupted_leaves_nothing(
    containerd: PrivateContainerd, ended_by: signal.Signals, until: Callable[[Callable[[], bool]], None]
) -> None:
    """Interrupted in the middle it removes what it made, reports what was played, and ends with 130."""
    before = left_at(containerd)
    running = subprocess.Popen(command(containerd.address), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    until(lambda: len(left_at(containerd)) > len(before) + 4)
    running.send_signal(ended_by)
    out, err = running.communicate(timeout=60)

    assert (running.returncode, err.strip()) == (ENDED_BY[ended_by], b"error: interrupted")
    assert b"\nINCOMPLETE" in out
    assert left_at(containerd) == before


@pytest.fixture
def until() -> Callable[[Callable[[], bool]], None]:
    """Ask again and again until it is so."""

    def ask(holds: Callable[[], bool]) -> None:
        for _ in range(10_000):
            if holds():
                return
        raise AssertionError("it never came true")

    return ask


def test_an_image_that_is_not_there_is_bad_input(containerd: PrivateContainerd) -> None:
    """The message names the images that are there, and how to name one; nothing is made."""
    done = subprocess.run(
        command(containerd.address, "--image", "none:1"), capture_output=True, check=False, timeout=60
    )

    assert (done.returncode, done.stdout) == (2, b"")
    assert b"image none:1 is not there; name one that has a shell with --image (there are " in done.stderr
