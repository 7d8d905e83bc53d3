"""What containers are given of volumes: paths, read only or not, and parts of volumes."""

from pathlib import Path
from typing import Any, cast

import pytest
from cri_api.v1 import api_pb2 as cri
from on_loop import in_virtual_time
from real_disk import mounting, plain_disk
from volume_bench import ROOT, VolumeBench, config_map, pod_with

from kubelet_fakes.clock import run
from kubelet_fakes.disk import MemoryDisk
from kubelet_reference.api.expansion import ConfigError

Json = dict[str, Any]
POD = f"{ROOT}/pods/u1"
SOURCES: list[tuple[Json, str, bool]] = [
    ({"emptyDir": {}}, f"{POD}/volumes/kubernetes.io~empty-dir/v", False),
    ({}, f"{POD}/volumes/kubernetes.io~empty-dir/v", False),
    ({"hostPath": {"path": "/data"}}, "/data", False),
    ({"configMap": {"name": "c"}}, f"{POD}/volumes/kubernetes.io~configmap/v", True),
    ({"secret": {"secretName": "s"}}, f"{POD}/volumes/kubernetes.io~secret/v", True),
    ({"downwardAPI": {}}, f"{POD}/volumes/kubernetes.io~downward-api/v", True),
    ({"projected": {}}, f"{POD}/volumes/kubernetes.io~projected/v", True),
]


@pytest.mark.parametrize(("source", "path", "readonly"), SOURCES, ids=str)
def test_path_and_writing(source: Json, path: str, readonly: bool) -> None:  # noqa: FBT001 - pytest gives it
    """A mount shows the volume's folder; what shows objects can be read only."""
    [mount] = VolumeBench().mounts(pod_with({"name": "v", **source}))

    assert (mount.container_path, mount.host_path, mount.readonly) == ("/v", path, readonly)


def test_options_of_a_mount() -> None:
    """Read-only mounts and propagation are passed on, and a relative place is meant from the top."""
    options: list[Json] = [
        {"name": "v", "mountPath": "in", "readOnly": True},
        {"name": "v", "mountPath": "/h", "mountPropagation": "HostToContainer"},
        {"name": "v", "mountPath": "/b", "mountPropagation": "Bidirectional"},
        {"name": "v", "mountPath": "/n", "mountPropagation": "None"},
    ]
    mounts = VolumeBench().mounts(pod_with({"name": "v", "emptyDir": {}}, mounts=options))

    assert [mount.container_path for mount in mounts] == ["/in", "/h", "/b", "/n"]
    assert [mount.readonly for mount in mounts] == [True, False, False, False]
    assert [mount.propagation for mount in mounts] == [
        cri.PROPAGATION_PRIVATE,
        cri.PROPAGATION_HOST_TO_CONTAINER,
        cri.PROPAGATION_BIDIRECTIONAL,
        cri.PROPAGATION_PRIVATE,
    ]


REFUSED: list[tuple[Json, str]] = [
    ({"name": "x"}, 'cannot find volume "x" to mount into container "c1"'),
    ({"subPath": "/etc"}, "error SubPath `/etc` must not be an absolute path"),
    ({"subPath": "a/../../b"}, "unable to provision SubPath `a/../../b`: must not contain '..'"),
    ({"subPathExpr": "$(A)/$(B)-$(C)-$$(D)"}, "missing value for A, C"),
    ({"subPathExpr": "logs/$(B)"}, "unable to provision SubPath `logs/..`: must not contain '..'"),
]


@pytest.mark.parametrize(("mount", "reason"), REFUSED, ids=str)
def test_refused_mounts(mount: Json, reason: str) -> None:
    """A mount of no volume, or of a part that could lead out of it, is reported in the kubelet's words."""
    pod = pod_with({"name": "v", "emptyDir": {}}, mounts=[{"name": "v", "mountPath": "/v", **mount}])
    with pytest.raises(ConfigError) as caught:
        VolumeBench().mounts(pod, {"B": ".."})

    assert str(caught.value) == reason


@in_virtual_time
async def test_parts_of_volumes() -> None:
    """A part is shown at a place of its own, by volume, container and number of the mount; it is made."""
    bench = VolumeBench()
    options = [
        {"name": "e", "mountPath": "/all"},
        {"name": "e", "mountPath": "/part", "subPath": "a/b"},
        {"name": "e", "mountPath": "/own", "subPathExpr": "$(NAME)"},
        {"name": "c", "mountPath": "/key", "subPath": "k"},
    ]
    pod = pod_with({"name": "e", "emptyDir": {}}, {"name": "c", "configMap": {"name": "c"}}, mounts=options)
    bench.api.config_maps["c"] = config_map(k="1")
    await bench.volumes.wait(pod)
    paths = [mount.host_path for mount in bench.mounts(pod, {"NAME": "web"})]
    disk = cast("MemoryDisk", bench.disk)

    assert paths[0] == bench.path("empty-dir", "e")
    shown = [f"{POD}/volume-subpaths/{place}" for place in ("e/c1/1", "e/c1/2", "c/c1/3")]
    assert paths[1:] == shown
    assert disk.names(paths[0]) == ["a", "web"]
    assert disk.mounts(POD) == sorted(shown)
    assert [mount.host_path for mount in bench.mounts(pod, {"NAME": "web"})] == paths
    await bench.volumes.unmount(pod)
    assert (disk.mounts("/"), disk.names(POD)) == ([], [])


def test_part_of_what_is_not_there() -> None:
    """A volume that is not there has no parts, and the pod learns no more than that."""
    pod = pod_with({"name": "v", "emptyDir": {}}, mounts=[{"name": "v", "mountPath": "/v", "subPath": "a"}])
    with pytest.raises(ConfigError) as caught:
        VolumeBench().mounts(pod)

    assert str(caught.value) == 'failed to prepare subPath for volumeMount "v" of container "c1"'


def test_real_parts(tmp_path: Path) -> None:
    """As root a part is a mount; it follows a key that changes, and ends with the volume."""
    with mounting(tmp_path) as disk:
        bench = VolumeBench(disk, str(tmp_path))
        options = [
            {"name": "c", "mountPath": "/key", "subPath": "k"},
            {"name": "e", "mountPath": "/part", "subPath": "a/b"},
        ]
        pod = pod_with(
            {"name": "e", "emptyDir": {}}, {"name": "c", "configMap": {"name": "c"}}, mounts=options
        )
        shown = [f"{tmp_path}/pods/u1/volume-subpaths/{place}" for place in ("c/c1/0", "e/c1/1")]

        async def work() -> None:
            bench.api.config_maps["c"] = config_map(k="1")
            await bench.volumes.wait(pod)
            assert [mount.host_path for mount in bench.mounts(pod)] == shown
            assert (tmp_path / shown[0]).read_text() == "1"
            (tmp_path / shown[1] / "f").write_text("2")
            inside = tmp_path / "pods/u1/volumes/kubernetes.io~empty-dir/e/a/b"
            assert (inside / "f").read_text() == "2"
            assert oct(inside.stat().st_mode)[-3:] == "777"
            bench.api.config_maps["c"] = config_map(k="3")
            await bench.volumes.wait(pod)
            assert (tmp_path / shown[0]).read_text() == "1"
            assert [mount.host_path for mount in bench.mounts(pod)] == shown
            assert (tmp_path / shown[0]).read_text() == "3"
            assert disk.mounts(str(tmp_path)) == shown
            bench.new_life().clear("u1")

        run(work())

        assert disk.mounts(str(tmp_path)) == []
        assert list((tmp_path / "pods/u1").iterdir()) == []


def test_parts_without_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A kubelet that may not mount gives the way to the thing itself, links on it already followed."""
    bench = VolumeBench(plain_disk(tmp_path, monkeypatch), str(tmp_path))
    mount = {"name": "c", "mountPath": "/key", "subPath": "k"}
    pod = pod_with({"name": "c", "configMap": {"name": "c"}}, mounts=[mount])
    bench.api.config_maps["c"] = config_map(k="1")
    run(bench.volumes.wait(pod))
    [found] = bench.mounts(pod)

    volume = tmp_path / "pods/u1/volumes/kubernetes.io~configmap/c"
    assert found.host_path == f"{volume / (volume / '..data').readlink()}/k"
