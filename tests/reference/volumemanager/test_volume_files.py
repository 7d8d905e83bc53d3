"""Volumes on a real disk: where they lie, who may read them, and how they change under a reader."""

import stat
from pathlib import Path
from typing import Any

import msgspec
import pytest
from lightkube.models.core_v1 import ResourceRequirements
from real_disk import mounting, plain_disk
from volume_bench import VolumeBench, config_map, pod_with, secret

from kubelet_fakes.clock import run
from kubelet_fakes.disk import MemoryDisk
from kubelet_reference.server.host.disk import OsDisk
from kubelet_reference.volumemanager.atomic_writer import write_files
from kubelet_reference.volumemanager.payload import ProjectedFile

Json = dict[str, Any]
NOW = 1_767_225_600 * 10**9


@pytest.fixture
def disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> OsDisk:
    """The real disk of a kubelet that may not mount."""
    return plain_disk(tmp_path, monkeypatch)


def mode(path: Path) -> str:
    """Permissions, in octal."""
    return oct(stat.S_IMODE(path.stat().st_mode))


def made(bench: VolumeBench, *volumes: dict[str, Any], **metadata: Any) -> None:
    """Make these volumes for a pod."""
    bench.api.config_maps["c"] = config_map(a="1", b="2")
    bench.api.secrets["s"] = secret(password="aHVudGVyMg==")  # noqa: S106 - no secret at all

    async def work() -> None:
        await bench.volumes.wait(pod_with(*volumes, **metadata))
        assert bench.reported() == []

    run(work())


def test_places_and_modes(disk: OsDisk, tmp_path: Path) -> None:
    """Volumes lie where the kubelet puts them: open folders, files with the modes that were asked for."""
    bench = VolumeBench(disk, str(tmp_path))
    keys = [{"key": "a", "path": "sub/x", "mode": 0o400}, {"key": "b", "path": "y"}]
    made(
        bench,
        {"name": "e", "emptyDir": {}},
        {"name": "c", "configMap": {"name": "c", "items": keys, "defaultMode": 0o440}},
        {"name": "s", "secret": {"secretName": "s"}},
    )
    volumes = tmp_path / "pods/u1/volumes"
    found = {str(path.relative_to(volumes)) for path in volumes.glob("*/*")}

    assert found == {"kubernetes.io~empty-dir/e", "kubernetes.io~configmap/c", "kubernetes.io~secret/s"}
    assert {mode(path) for path in volumes.glob("*/*")} == {"0o777"}
    config = volumes / "kubernetes.io~configmap/c"
    assert (mode(config / "sub/x"), mode(config / "y")) == ("0o400", "0o440")
    assert (config / "sub").readlink() == Path("..data/sub")
    password = volumes / "kubernetes.io~secret/s/password"
    assert (mode(password), password.read_text()) == ("0o644", "hunter2")
    assert mode(config / "..data/") == "0o755"


def test_host_path_types(disk: OsDisk, tmp_path: Path) -> None:
    """A folder or file that is asked for is made, with the kubelet's modes; what is there stays."""
    bench = VolumeBench(disk, str(tmp_path / "root"))
    host = tmp_path / "host"
    (host / "kept").mkdir(parents=True)
    (host / "kept").chmod(0o700)
    made(
        bench,
        {"name": "d", "hostPath": {"path": f"{host}/new/d", "type": "DirectoryOrCreate"}},
        {"name": "f", "hostPath": {"path": f"{host}/f", "type": "FileOrCreate"}},
        {"name": "k", "hostPath": {"path": f"{host}/kept", "type": "DirectoryOrCreate"}},
        {"name": "c", "hostPath": {"path": "/dev/null", "type": "CharDevice"}},
    )

    assert (mode(host / "new/d"), mode(host / "f"), mode(host / "kept")) == ("0o755", "0o644", "0o700")
    bench.volumes.clear("u1")
    assert (host / "new/d").is_dir()


def test_readers_see_all_old_or_all_new(disk: OsDisk, tmp_path: Path) -> None:
    """A reader in the folder of the old files goes on with them; through the links all are new at once."""
    folder = str(tmp_path / "v")
    disk.make_folder(folder)
    write_files(disk, folder, {"a": ProjectedFile(b"1", 0o644), "b": ProjectedFile(b"1", 0o644)}, NOW)
    steps: list[tuple[str, str]] = []

    class Watched:
        """The disk, with what a reader sees after each step."""

        def __getattr__(self, name: str) -> Any:
            call = getattr(disk, name)

            def watched(*arguments: Any) -> Any:
                result = call(*arguments)
                steps.append(tuple((tmp_path / "v" / name).read_text() for name in "ab"))  # type: ignore[arg-type]
                return result

            return watched

    new = {"a": ProjectedFile(b"2", 0o644), "b": ProjectedFile(b"2", 0o644), "c": ProjectedFile(b"2", 0o644)}
    watched: Any = Watched()
    write_files(watched, folder, new, NOW + 1)

    assert set(steps) == {("1", "1"), ("2", "2")}
    assert steps == sorted(steps)
    assert sorted(path.name for path in (tmp_path / "v").iterdir()) == [
        "..1767225600000000001",
        "..data",
        "a",
        "b",
        "c",
    ]


def test_crash_on_the_way_is_repaired(tmp_path: Path) -> None:
    """Wherever a kubelet dies while it writes, readers see one whole state; the next writing clears up."""
    old, new = {"a": ProjectedFile(b"1", 0), "b": ProjectedFile(b"1", 0)}, {"a": ProjectedFile(b"2", 0)}
    folder = str(tmp_path)
    calls = 0
    while True:
        disk = MemoryDisk()
        disk.make_folder(folder)
        write_files(disk, folder, old, NOW)
        dying: Any = Dying(disk, calls)
        try:
            write_files(dying, folder, new, NOW + 1)
        except KeyboardInterrupt:
            seen = disk.look(f"{folder}/a")
            assert seen in {b"1", b"2"}
            write_files(disk, folder, new, NOW + 2)
            assert (disk.look(f"{folder}/a"), len(disk.names(folder))) == (b"2", 3)
            calls += 1
        else:
            break

    assert calls == 5


class Dying:
    """A disk whose user dies before it has changed more than so many things."""

    def __init__(self, disk: MemoryDisk, changes: int) -> None:
        self._disk = disk
        self._left = changes

    def __getattr__(self, name: str) -> Any:
        call = getattr(self._disk, name)
        if name not in {"make_folder", "write", "link", "remove"}:
            return call
        if not self._left:
            raise KeyboardInterrupt
        self._left -= 1
        return call


def test_disk_full_leaves_the_old_files(disk: OsDisk, tmp_path: Path) -> None:
    """A writing that fails leaves what was there, and no remains."""
    write_files(disk, str(tmp_path), {"a": ProjectedFile(b"1", 0o644)}, NOW)
    conflict = {"a": ProjectedFile(b"2", 0o644), "a/b": ProjectedFile(b"2", 0o644)}
    with pytest.raises(OSError, match="Not a directory"):
        write_files(disk, str(tmp_path), conflict, NOW + 1)

    assert (tmp_path / "a").read_text() == "1"
    assert len(list(tmp_path.iterdir())) == 3


def test_without_root_memory_is_a_folder(
    disk: OsDisk, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A kubelet that may not mount makes plain folders instead of memory, and says so."""
    bench = VolumeBench(disk, str(tmp_path))
    made(bench, {"name": "m", "emptyDir": {"medium": "Memory"}})

    path = tmp_path / "pods/u1/volumes/kubernetes.io~empty-dir/m"
    assert mode(path) == "0o777"
    assert caplog.messages == [f"{path} is no memory but a plain folder: only root may mount"]
    bench.volumes.clear("u1")
    assert list((tmp_path / "pods/u1").iterdir()) == []


SIZES: list[tuple[dict[str, Any], dict[str, Any], int]] = [
    ({"medium": "Memory", "sizeLimit": "2Mi"}, {}, 2 << 20),
    ({"medium": "Memory"}, {"limits": {"memory": "8Mi"}}, 8 << 20),
    ({"medium": "Memory", "sizeLimit": "9Mi"}, {"limits": {"memory": "8Mi"}}, 8 << 20),
    ({"medium": "Memory"}, {}, 32 << 30),
]


@pytest.mark.parametrize(("source", "resources", "size"), SIZES, ids=str)
def test_size_of_memory(source: dict[str, Any], resources: dict[str, Any], size: int) -> None:
    """Memory is as large as its limit, the pod's or the node's, whichever is least."""
    sizes: list[int] = []

    class Measured(MemoryDisk):
        def mount_memory(self, path: str, size: int) -> bool:
            sizes.append(size)
            return super().mount_memory(path, size)

    async def work() -> None:
        pod = pod_with({"name": "v", "emptyDir": source})
        container = pod.spec.containers[0] if pod.spec else None
        assert container is not None
        container.resources = msgspec.convert(resources, ResourceRequirements)
        await VolumeBench(Measured()).volumes.wait(pod)

    run(work())

    assert sizes == [size]


def test_memory_is_mounted(tmp_path: Path) -> None:
    """As root, memory and what shows secrets or the pod are mounts, which a new life finds and ends."""
    with mounting(tmp_path) as disk:
        bench = VolumeBench(disk, str(tmp_path))
        bench.api.secrets["s"] = secret(a="MQ==")
        volumes: tuple[Json, ...] = (
            {"name": "m", "emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}},
            {"name": "s", "secret": {"secretName": "s"}},
            {"name": "d", "downwardAPI": {"items": []}},
            {"name": "p", "projected": {"sources": []}},
            {"name": "e", "emptyDir": {}},
        )
        made(bench, *volumes)
        root = tmp_path / "pods/u1/volumes"
        (root / "kubernetes.io~empty-dir/m/own").write_text("kept")
        mounted = disk.mounts(str(tmp_path))
        bench.new_life()
        made(bench, *volumes)

        kinds = ["downward-api/d", "empty-dir/m", "projected/p", "secret/s"]
        assert mounted == disk.mounts(str(tmp_path)) == [f"{root}/kubernetes.io~{kind}" for kind in kinds]
        assert (root / "kubernetes.io~empty-dir/m/own").read_text() == "kept"
        assert (root / "kubernetes.io~secret/s/password").read_text() == "hunter2"
        bench.new_life().clear("u1")
        assert disk.mounts(str(tmp_path)) == []
        assert list((tmp_path / "pods/u1").iterdir()) == []
