"""What an in-process node records of its disk, its cgroups and its plugin."""

from collections.abc import Iterator
from typing import Any

import grpc
import pytest

from kubelet_conformance.targets.in_process.disk_recorder import RecordedCgroups, RecordedFiles
from kubelet_conformance.targets.in_process.resource_plugin import RecordedPlugin
from kubelet_conformance.trace.format.recorder import Failed, Item, RecordedCall, RecordedReply, Recorder
from kubelet_fakes.clock import run
from kubelet_fakes.disk import MemoryDisk
from kubelet_fakes.faults import Faults
from kubelet_reference.util.ports import Claim

ROOT, LOGS = "/var/lib/kubelet", "/var/log/pods"


def items(recorder: Recorder) -> Iterator[dict[str, Any]]:
    """The records that are no calls."""
    return (one.fields for one in recorder.records if isinstance(one, Item))


def test_data_folders_and_small_files_are_reported() -> None:
    """A pod's folders, hosts file and message files are recorded, large and foreign files are not."""
    disk, recorder = MemoryDisk(), Recorder(lambda: 0.0)
    RecordedFiles(disk, recorder, ROOT, LOGS)
    disk.make_folder(f"{ROOT}/pods/u1/volumes")
    disk.write(f"{ROOT}/pods/u1/etc-hosts", b"10.0.0.1 web")
    disk.make_folder(f"{ROOT}/pods/u1/containers/c1")
    disk.write(f"{ROOT}/pods/u1/containers/c1/1", b"x" * 5000)
    disk.make_folder("/elsewhere")
    disk.write("/elsewhere/file", b"secret")
    reported = [
        (one["op"], one["path"].removeprefix(f"{ROOT}/pods/u1"), one.get("text")) for one in items(recorder)
    ]

    assert ("folder", "", None) in reported
    assert ("folder", "/volumes", None) in reported
    assert ("written", "/etc-hosts", "10.0.0.1 web") in reported
    assert ("written", "/containers/c1/1", None) in reported
    assert not any("elsewhere" in path for _, path, _ in reported)


def test_cgroups_come_and_go() -> None:
    """Each change is recorded once."""
    recorder = Recorder(lambda: 0.0)
    cgroups = RecordedCgroups(recorder)
    for change in (cgroups.make, cgroups.make, cgroups.reduce, cgroups.remove, cgroups.remove):
        change("u1")

    assert [one["op"] for one in items(recorder)] == ["folder", "reduced", "removed"]
    assert not cgroups.exists("u1")
    assert not cgroups.uids()


async def _at_once(seconds: float) -> None:
    del seconds


def test_plugin_is_recorded_and_can_be_struck() -> None:
    """What is said to the plugin is on the record, a failure too."""
    recorder, faults = Recorder(lambda: 0.0), Faults()
    plugin, claims = RecordedPlugin(faults, recorder, _at_once), [Claim("default", "fast")]
    devices = run(plugin.prepare(claims))
    run(plugin.unprepare(claims))
    with faults.add("NodePrepareResources", code="UNAVAILABLE", delay=1), pytest.raises(grpc.RpcError):
        run(plugin.prepare(claims))
    calls = [one.rpc for one in recorder.records if isinstance(one, RecordedCall)]
    ends = [one.outcome for one in recorder.records if isinstance(one, RecordedReply)]

    assert devices == {claims[0]: ("devices.example/device=default-fast",)}
    assert calls == ["NodePrepareResources", "NodeUnprepareResources", "NodePrepareResources"]
    assert isinstance(ends[-1], Failed)
    assert ends[-1].code == "UNAVAILABLE"
