"""A kubelet's binary as a target: its version, and the flags and configuration that follow from it."""

from pathlib import Path

import pytest
import yaml

from kubelet_conformance.targets.choice import Choice, UnknownTargetError
from kubelet_conformance.targets.kubelet_target.choosing import kubelet_process, resolved
from kubelet_conformance.targets.kubelet_target.target import KubeletTarget


def binary(folder: Path, says: str, code: int = 0) -> str:
    """A program that says this and ends."""
    path = folder / "kubelet"
    path.write_text(f"#!/bin/sh\necho '{says}'\nexit {code}\n", encoding="utf-8")
    path.chmod(0o755)
    return str(path)


def target(folder: Path, version: str) -> KubeletTarget:
    """The target of a kubelet of that version."""
    found = kubelet_process(Choice(binary(folder, f"Kubernetes v{version}")))
    assert found is not None
    return found


def test_a_kubelet_says_its_version(tmp_path: Path) -> None:
    """The version decides what is expected, which deviations are known, and what reports call it."""
    path = binary(tmp_path, "Kubernetes v1.36.2-rc.1+k3s1")

    assert resolved(Choice(path)).kubernetes == "1.36"
    found = kubelet_process(Choice(path))
    assert found is not None
    assert (found.name, found.baseline) == ("kubelet 1.36.2-rc.1+k3s1", "kubernetes-1.36")


@pytest.mark.parametrize("minor", range(24, 38))
def test_each_version_gets_what_it_knows(tmp_path: Path, minor: int) -> None:
    """No version gets a field that it does not know; every one is told the runtime, by field or flag."""
    found = target(tmp_path, f"1.{minor}.0")
    fields = set(yaml.safe_load(found.config))
    by_flag = "--container-runtime-endpoint={runtime}" in found.command

    assert by_flag is (minor < 27) is ("containerRuntimeEndpoint" not in fields)
    assert ("podLogsDir" in fields) is (minor >= 30)
    assert ("failCgroupV1" in fields) is (minor >= 31)


@pytest.mark.parametrize(
    ("says", "message"),
    [
        ("busybox", "no kubelet: with --version it says 'busybox' instead of 'Kubernetes v1.36.2'"),
        ("Kubernetes v1.99.0", "1.99 is not known; this suite knows 1.24 to 1.36: describe it in a target"),
    ],
)
def test_what_is_no_kubelet_is_refused(tmp_path: Path, says: str, message: str) -> None:
    """The message says what the program said, and what to do."""
    with pytest.raises(UnknownTargetError, match=message):
        resolved(Choice(binary(tmp_path, says)))


def test_the_next_version_is_taken_for_the_newest(tmp_path: Path) -> None:
    """Until its requirements are frozen, a kubelet is held to those of the release before."""
    assert target(tmp_path, "1.37.0-beta.1").kubernetes == "1.36"


def test_what_is_not_there_is_refused() -> None:
    """The path of nothing is an error too."""
    with pytest.raises(UnknownTargetError, match="/nowhere/kubelet: cannot be executed: name the binary"):
        resolved(Choice("/nowhere/kubelet"))
