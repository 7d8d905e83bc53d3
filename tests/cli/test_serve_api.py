"""`serve-api`: a Kubernetes client talks to the fake API server, and a signal ends it cleanly."""

import signal
import socket
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any, cast

import pytest
from command import in_process
from lightkube import Client, KubeConfig
from lightkube.core.exceptions import ApiError
from lightkube.models.core_v1 import Container, PodSpec
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.core_v1 import Namespace, Pod


def refused(capsys: pytest.CaptureFixture[str], address: str, file: Path) -> str:
    """The one message of a command that cannot serve."""
    ended = in_process(capsys, "serve-api", "--listen", address, "--kubeconfig", str(file))

    assert (ended.code, ended.out) == (2, "")
    return ended.err


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_serves_until_a_signal(tmp_path: Path, number: signal.Signals) -> None:
    """It writes a file for its owner only, with which a client creates, lists, watches and deletes a pod."""
    file = tmp_path / "node.conf"
    command = [sys.executable, "-m", "kubelet_conformance", "serve-api"]
    with subprocess.Popen(
        [*command, "--listen", "127.0.0.1:0", "--kubeconfig", str(file)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        mode = stat.S_IMODE(file.stat().st_mode)
        # The types of its lists and watches have parameters that are left open.
        with cast("Any", Client(KubeConfig.from_file(file), trust_env=False)) as client:
            spec = PodSpec(containers=[Container(name="app", image="img:1")])
            client.create(Pod(metadata=ObjectMeta(name="web"), spec=spec), namespace="default")
            names = [each.metadata.name for each in client.list(Namespace) if each.metadata]
            seen = next(iter(client.watch(Pod, namespace="default")))
            client.delete(Pod, "web", namespace="default")
            with pytest.raises(ApiError, match='pods "web" not found'):
                client.get(Pod, "web", namespace="default")
        process.send_signal(number)
        code = process.wait(timeout=20)
        out, err = process.communicate(timeout=20)

    assert line.startswith("API server at http://127.0.0.1:")
    assert mode == 0o600
    assert names == ["default", "kube-node-lease", "kube-public", "kube-system"]
    assert seen[0] == "ADDED"
    assert (code, out, err) == (0, "", "")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("address", ["6443", "127.0.0.1", "127.0.0.1:x", "127.0.0.1:65536", "0.0.0.0:6443"])
def test_bad_address_is_two(capsys: pytest.CaptureFixture[str], tmp_path: Path, address: str) -> None:
    """An address that is none is a usage error with an example, and no file is written."""
    said = refused(capsys, address, tmp_path / "node.conf")

    assert said == f"error: {address}: no loopback address with a port; write it like 127.0.0.1:6443\n"
    assert list(tmp_path.iterdir()) == []


def test_port_in_use_is_two(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """A port that somebody listens at is left alone, and no file is written."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        address = f"127.0.0.1:{other.getsockname()[1]}"
        said = refused(capsys, address, tmp_path / "node.conf")

    assert said == (
        f"error: {address}: Address already in use: name another port, or 0 for any that is free\n"
    )
    assert list(tmp_path.iterdir()) == []


def test_file_that_is_there_is_two(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """A kubeconfig of somebody else is left as it is."""
    file = tmp_path / "node.conf"
    file.write_text("mine")

    said = refused(capsys, "127.0.0.1:0", file)

    assert said == f"error: {file}: is there already: name another file, or remove that\n"
    assert file.read_text() == "mine"
    assert "cannot be written" in refused(capsys, "127.0.0.1:0", tmp_path / "none" / "node.conf")
