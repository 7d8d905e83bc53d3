"""Pods wait for their volumes: what is made and reported, when it is tried again, how it is refreshed."""

import asyncio
import contextlib
import re
from typing import Any, cast

import pytest
from on_loop import in_virtual_time
from volume_bench import VolumeBench, config_map, pod_with, secret

from kubelet_fakes.clock import run
from kubelet_fakes.disk import MemoryDisk
from kubelet_reference.util.ports import ApiError
from kubelet_reference.volumemanager import VolumesNotReady

Json = dict[str, Any]
FAILED = 'MountVolume.SetUp failed for volume "v" : '
TOO_LATE = (
    "unmounted volumes=[v], unattached volumes=[], failed to process volumes=[]: context deadline exceeded"
)


async def both(*work: Any) -> None:
    """Run these side by side to their ends."""
    async with asyncio.TaskGroup() as group:
        for each in work:
            group.create_task(each)


def memory(bench: VolumeBench) -> MemoryDisk:
    """The bench's disk, which is memory."""
    return cast("MemoryDisk", bench.disk)


def why_not(volume: Json, *, api: bool = True) -> str:
    """Why a pod with this volume has to wait, "" if it has not."""
    reported: list[str] = []

    async def main() -> None:
        bench = VolumeBench(api=api)
        bench.api.config_maps["c"] = config_map(a="1")
        bench.api.secrets["s"] = secret(a="MQ==")
        with contextlib.suppress(VolumesNotReady):
            await bench.volumes.wait(pod_with({"name": "v", **volume}))
        reported.extend(bench.reported())

    run(main())
    return reported[0] if reported else ""


VOLUMES: list[tuple[Json, str]] = [
    ({}, ""),
    ({"emptyDir": {}}, ""),
    ({"emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}}, ""),
    (
        {"emptyDir": {"medium": "HugePages"}},
        "unknown storage medium 'HugePages': this kubelet has the node's disk and Memory",
    ),
    ({"configMap": {"name": "c"}}, ""),
    ({"configMap": {"name": "x"}}, 'configmap "x" not found'),
    ({"configMap": {"name": "x", "optional": True}}, ""),
    ({"configMap": {"name": "c", "items": [{"key": "a", "path": "a"}]}}, ""),
    (
        {"configMap": {"name": "c", "items": [{"key": "b", "path": "b"}]}},
        "configmap references non-existent config key: b",
    ),
    ({"configMap": {"name": "c", "optional": True, "items": [{"key": "b", "path": "b"}]}}, ""),
    ({"secret": {"secretName": "s"}}, ""),
    ({"secret": {"secretName": "x"}}, 'secret "x" not found'),
    (
        {"secret": {"secretName": "s", "items": [{"key": "b", "path": "b"}]}},
        "references non-existent secret key: b",
    ),
    ({"projected": {"sources": [{"secret": {"name": "x"}}]}}, 'secret "x" not found'),
    (
        {"projected": {"sources": [{"secret": {"name": "x"}}, {"configMap": {"name": "y"}}]}},
        '[secret "x" not found, configmap "y" not found]',
    ),
    ({"projected": {"sources": [{"configMap": {"name": "c"}}, {"downwardAPI": {}}]}}, ""),
    (
        {"projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]}},
        "serviceAccountToken: this kubelet makes no tokens; set automountServiceAccountToken to false",
    ),
    (
        {"projected": {"sources": [{"clusterTrustBundle": {"path": "ca"}}]}},
        "a source of this projected volume is not supported by this kubelet",
    ),
    ({"nfs": {"server": "s", "path": "/"}}, "volume v is of a kind that is not supported by this kubelet"),
    ({"hostPath": {"path": "/data"}}, ""),
    ({"hostPath": {"path": "/data", "type": ""}}, ""),
    ({"hostPath": {"path": "/data", "type": "DirectoryOrCreate"}}, ""),
    (
        {"hostPath": {"path": "/data", "type": "Directory"}},
        "hostPath type check failed: /data is not a directory",
    ),
    ({"hostPath": {"path": "/file", "type": "FileOrCreate"}}, ""),
    ({"hostPath": {"path": "/file", "type": "File"}}, "hostPath type check failed: /file is not a file"),
    ({"hostPath": {"path": "/s", "type": "Socket"}}, "hostPath type check failed: /s is not a socket"),
    ({"hostPath": {"path": "/s", "type": "Pipe"}}, "hostPath type check failed: /s is not a pipe"),
    (
        {"hostPath": {"path": "/data/../etc"}},
        "invalid HostPath `/data/../etc`: must not contain '..'",
    ),
]


@pytest.mark.parametrize(("volume", "reason"), VOLUMES, ids=str)
def test_pod_waits_for_what_cannot_be_made(volume: Json, reason: str) -> None:
    """A volume that cannot be made keeps the pod waiting, and an event says why (SYNC-10)."""
    assert why_not(volume) == (f"{FAILED}{reason}" if reason else "")


def test_without_an_api_server() -> None:
    """Without an API server its objects are missing, unless they are optional; other volumes are fine."""
    assert why_not({"secret": {"secretName": "s"}}, api=False) == f'{FAILED}secret "s" not found'
    assert why_not({"secret": {"secretName": "s", "optional": True}}, api=False) == ""
    assert why_not({"emptyDir": {}}, api=False) == ""


@in_virtual_time
async def test_volume_that_nobody_mounts() -> None:
    """A volume that no container mounts is neither made nor waited for."""
    bench = VolumeBench()
    await bench.volumes.wait(pod_with({"name": "v", "secret": {"secretName": "x"}}, mounts=[]))

    assert bench.reported() == []
    assert not bench.volumes.is_mounted("u1")


@in_virtual_time
async def test_tries_are_further_and_further_apart() -> None:
    """After half a second, and then twice as long each time, it is tried again; a round waits 123 s."""
    bench = VolumeBench()
    pod = pod_with({"name": "v", "configMap": {"name": "x"}})
    rounds: list[float] = []
    tries: list[int] = []
    for _ in range(2):
        with pytest.raises(VolumesNotReady, match=re.escape(TOO_LATE)):
            await bench.volumes.wait(pod)
        rounds.append(bench.clock.monotonic())
        tries.append(len(bench.reported()))

    assert rounds == [123, 246]
    # At 0, 0.5, 1.5, 3.5, 7.5, 15.5, 31.5 and 63.5 s; at 127.5 s; 249.5 s is for the third round.
    assert tries == [8, 9]


@in_virtual_time
async def test_pod_gets_its_volume_when_it_is_there() -> None:
    """A volume is made as soon as it is tried again after what it shows has come."""
    bench = VolumeBench()

    async def late() -> None:
        await bench.clock.sleep(5)
        bench.api.config_maps["x"] = config_map(k="1")

    pod = pod_with({"name": "v", "configMap": {"name": "x"}})
    await both(bench.volumes.wait(pod), late())

    assert bench.clock.monotonic() == 7.5
    assert memory(bench).look(f"{bench.path('configmap')}/k") == b"1"
    assert bench.reported() == [f'{FAILED}configmap "x" not found'] * 4


@in_virtual_time
async def test_one_missing_volume_holds_up_no_other() -> None:
    """The volumes that can be made are made, and only the missing one is tried again."""
    bench = VolumeBench()
    there, missing = {"name": "a", "configMap": {"name": "c"}}, {"name": "v", "configMap": {"name": "x"}}
    bench.api.config_maps["c"] = config_map(k="1")
    with pytest.raises(VolumesNotReady, match=r"unmounted volumes=\[v\],"):
        await bench.volumes.wait(pod_with(there, missing))

    assert bench.api.asked.count("configmap default/c") == 1
    assert memory(bench).look(f"{bench.path('configmap', 'a')}/k") == b"1"


@in_virtual_time
async def test_content_is_refreshed_each_round() -> None:
    """Each later round brings what a volume shows up to date; keys come and go (as the kubelet's remount)."""
    bench = VolumeBench()
    bench.api.config_maps["c"] = config_map(a="1", b="1")
    pod = pod_with({"name": "v", "configMap": {"name": "c"}}, {"name": "e", "emptyDir": {}})
    await bench.volumes.wait(pod)
    disk, path = memory(bench), bench.path("configmap")
    disk.write(f"{bench.path('empty-dir', 'e')}/own", b"kept")
    first = disk.link_target(f"{path}/..data")
    await bench.clock.sleep(60)
    await bench.volumes.wait(pod)
    unchanged = disk.link_target(f"{path}/..data")
    bench.api.config_maps["c"] = config_map(a="2", c="3")
    await bench.volumes.wait(pod)
    second = disk.link_target(f"{path}/..data")

    assert first == unchanged == "..1767225600000000000"
    assert second == "..1767225660000000000"
    assert disk.names(path) == [second, "..data", "a", "c"]
    assert (disk.look(f"{path}/a"), disk.look(f"{path}/c")) == (b"2", b"3")
    assert disk.read(f"{bench.path('empty-dir', 'e')}/own") == b"kept"


@in_virtual_time
async def test_labels_are_refreshed() -> None:
    """A volume that shows the pod's labels follows them."""
    bench = VolumeBench()
    items = [{"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}}]
    volume = {"name": "v", "downwardAPI": {"items": items}}
    path = f"{bench.path('downward-api')}/labels"
    await bench.volumes.wait(pod_with(volume, labels={"b": "2", "a": 'x"y'}))
    before = memory(bench).look(path)
    await bench.volumes.wait(pod_with(volume, labels={"b": "3"}))

    assert before == b'a="x\\"y"\nb="2"'
    assert memory(bench).look(path) == b'b="3"'


@pytest.mark.parametrize(("code", "reported"), [(404, 'configmap "c" not found'), (0, "no way")])
@in_virtual_time
async def test_failed_refresh_keeps_the_old_content(code: int, reported: str) -> None:
    """A config map that is gone later keeps no pod waiting: its content stays, and an event tells."""
    bench = VolumeBench()
    bench.api.config_maps["c"] = config_map(a="1")
    pod = pod_with({"name": "v", "configMap": {"name": "c"}})
    await bench.volumes.wait(pod)
    bench.api.down = ApiError(code, "", "no way")
    await bench.volumes.wait(pod)

    assert bench.reported() == [f"{FAILED}{reported}"]
    assert memory(bench).look(f"{bench.path('configmap')}/a") == b"1"


@in_virtual_time
async def test_volumes_stay_until_they_are_unmounted() -> None:
    """A pod has its volumes until they are unmounted, and then nothing is left of them, files nor mounts."""
    bench = VolumeBench()
    bench.api.secrets["s"] = secret(a="MQ==")
    pod = pod_with({"name": "v", "secret": {"secretName": "s"}}, {"name": "e", "emptyDir": {}})
    await bench.volumes.wait(pod)
    disk = memory(bench)
    mounted, on = bench.volumes.is_mounted("u1"), disk.mounts("/")
    await bench.volumes.unmount(pod)
    await bench.volumes.unmount(pod)

    assert mounted
    assert on == [bench.path("secret")]
    assert disk.mounts("/") == []
    assert disk.names("/var/lib/kubelet/pods/u1") == []
    assert not bench.volumes.is_mounted("u1")


@in_virtual_time
async def test_new_life_finds_volumes_on_the_disk() -> None:
    """A kubelet that starts knows volumes from before, leaves what is in them, and can clear them away."""
    bench = VolumeBench()
    bench.api.secrets["s"] = secret(a="MQ==")
    pod = pod_with({"name": "v", "secret": {"secretName": "s"}}, {"name": "e", "emptyDir": {}})
    await bench.volumes.wait(pod)
    disk = memory(bench)
    own = f"{bench.path('empty-dir', 'e')}/own"
    disk.write(own, b"kept")
    new = bench.new_life()
    known = new.is_mounted("u1")
    await new.wait(pod)
    kept = disk.read(own), disk.mounts("/")
    bench.new_life().clear("u1")

    assert known
    assert kept == (b"kept", [bench.path("secret")])
    assert disk.mounts("/") == []
    assert not disk.is_folder(bench.path("empty-dir", "e"))


@in_virtual_time
async def test_disk_that_fails_is_reported_and_tried_again() -> None:
    """An error of the disk keeps the pod waiting as a missing object does."""
    bench = VolumeBench()
    with memory(bench).broken("/var/lib/kubelet/pods/u1"), pytest.raises(VolumesNotReady):
        await bench.volumes.wait(pod_with({"name": "v", "emptyDir": {}}))
    reported = bench.reported()[0]
    await bench.volumes.wait(pod_with({"name": "v", "emptyDir": {}}))

    assert reported.startswith(f"{FAILED}[Errno 5] Input/output error")
    assert bench.volumes.is_mounted("u1")
