"""Temporary folders go with their process, however it ends."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from kubelet_conformance.run_record.temporary_folder import TemporaryFolder, place_for_sockets

_HOLDER = """
import sys
from kubelet_conformance.run_record.temporary_folder import TemporaryFolder
with TemporaryFolder() as folder:
    print(folder, flush=True)
    sys.stdin.read()
"""


def _age(folder: Path) -> None:
    os.utime(folder, (0, 0))


@pytest.fixture(autouse=True)
def _place(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))


def test_what_a_killed_process_left_is_removed(tmp_path: Path) -> None:
    """While it lives its folder stays, however old that is."""
    (tmp_path / "kubelet-conformance-tmp-of-a-user").mkdir()
    _age(tmp_path / "kubelet-conformance-tmp-of-a-user")
    with subprocess.Popen(
        [sys.executable, "-c", _HOLDER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        left = Path(holder.stdout.readline().strip())
        (left / "traces").mkdir()
        _age(left)
        with TemporaryFolder():
            assert left.is_dir()
        holder.send_signal(signal.SIGKILL)
        holder.wait()
    with TemporaryFolder() as folder:
        assert {each.name for each in tmp_path.iterdir()} == {
            Path(folder).name,
            "kubelet-conformance-tmp-of-a-user",
        }


def test_young_folder_is_let_be() -> None:
    """It may be about to be locked."""
    with TemporaryFolder() as folder:
        young = Path(folder).with_name("kubelet-conformance-tmp-12345678")
        young.mkdir()
        with TemporaryFolder():
            assert young.is_dir()


def test_kept_folder_stays() -> None:
    """It has another name then."""
    held = TemporaryFolder()
    kept = held.keep()
    _age(kept)
    with TemporaryFolder():
        assert kept.is_dir()
    assert not Path(held.name).exists()


def test_sockets_have_short_paths(monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder of which a kubelet could not name its sockets is not taken."""
    longest = "/" + "a" * 38
    monkeypatch.setattr("tempfile.tempdir", longest)
    assert place_for_sockets() == longest
    monkeypatch.setattr("tempfile.tempdir", longest + "a")
    assert len(place_for_sockets()) < len(longest)
