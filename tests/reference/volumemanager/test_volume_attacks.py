"""What pods and runtimes say or leave on the disk cannot lead the kubelet out of its own folders.

Each test lays a trap on a real disk. Outside lies one file, and nothing may be read from it, written to it,
or removed there.
"""

import contextlib
import errno
import os
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from cri_api.v1 import api_pb2 as cri
from lightkube.models.core_v1 import Pod
from real_disk import mounting, plain_disk
from volume_bench import VolumeBench, config_map, pod_with

from kubelet_fakes.clock import run
from kubelet_reference.api import names, pods
from kubelet_reference.api.expansion import ConfigError
from kubelet_reference.cri.termination_message import TerminationMessages
from kubelet_reference.server.host.folders import remove_tree
from kubelet_reference.util.paths import UnsafeNameError, is_below
from kubelet_reference.volumemanager import VolumesNotReady, pod_folder

LEADING_OUT = ["../../../outside", "..", ".", "", "a/b", "/outside", "a\0b"]
EMPTY_DIR = "pods/u1/volumes/kubernetes.io~empty-dir/v"


class House:
    """The kubelet's folder, and beside it what is none of a pod's business."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.root = folder / "root"
        self.outside = folder / "outside"
        self.root.mkdir()
        self.outside.mkdir()
        (self.outside / "secret").write_text("treasure")
        self.bench = VolumeBench(plain_disk(self.root, monkeypatch), str(self.root))

    def wait(self, pod: Pod) -> None:
        """Make the pod's volumes."""
        run(self.bench.volumes.wait(pod))

    def volume(self, **mount: Any) -> Pod:
        """A pod with an emptyDir that is there, and how it mounts it."""
        pod = pod_with({"name": "v", "emptyDir": {}}, mounts=[{"name": "v", "mountPath": "/v", **mount}])
        self.wait(pod)
        return pod

    @property
    def inside(self) -> Path:
        """What a container may write to."""
        return self.root / EMPTY_DIR


@pytest.fixture
def house(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[House]:
    """The house; afterwards nothing is missing outside, nothing new, nothing changed."""
    made = House(tmp_path, monkeypatch)
    yield made
    assert {path.name: path.read_text() for path in made.outside.iterdir()} == {"secret": "treasure"}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["outside", "root"]


@pytest.mark.parametrize("name", LEADING_OUT)
def test_uid_is_the_name_of_a_folder(house: House, name: str) -> None:
    """A pod's UID that leads elsewhere gets it no folder, no volumes and no hosts file."""
    pod = pod_with({"name": "v", "emptyDir": {}}, uid=name)
    with pytest.raises(UnsafeNameError, match="cannot be the name of a file"):
        pod_folder(str(house.root), name)
    with pytest.raises(VolumesNotReady):
        house.wait(pod)
    with pytest.raises(UnsafeNameError):
        house.bench.mounts(pod)

    assert list(house.root.iterdir()) == []


@pytest.mark.parametrize("name", LEADING_OUT)
def test_volume_name_is_the_name_of_a_folder(house: House, name: str) -> None:
    """A volume whose name leads elsewhere is not made."""
    with pytest.raises(VolumesNotReady):
        house.wait(pod_with({"name": name, "emptyDir": {}}))

    assert "cannot be the name of a file" in house.bench.reported()[0]


@pytest.mark.parametrize("name", LEADING_OUT)
def test_container_name_is_the_name_of_a_folder(house: House, name: str) -> None:
    """A container whose name leads elsewhere gets no parts of volumes, no last words and no log."""
    pod = house.volume(subPath="a")
    container = pods.containers(pod)[0]
    container.name, container.terminationMessagePath = name, "/dev/termination-log"
    files = house.bench.files
    with pytest.raises(UnsafeNameError):
        files.mounts(pod, container, (), {})
    container.volumeMounts = None
    with pytest.raises(UnsafeNameError):
        files.mounts(pod, container, (), {})
    with pytest.raises(UnsafeNameError):
        files.make_container_log_directory(pod, name)

    assert files.restarts_in_logs(pod, name) == 0


@pytest.mark.parametrize("part", ["name", "namespace", "uid"])
def test_log_folder_is_one_folder(house: House, part: str) -> None:
    """The folder of a pod's logs is made of three names, and none of them may lead out of where logs lie."""
    pod = house.volume()
    assert pod.metadata is not None
    setattr(pod.metadata, part, "../../outside/x")

    with pytest.raises(UnsafeNameError, match="cannot be the folder of a pod's logs"):
        house.bench.files.make_log_directory(pod)


@pytest.mark.parametrize("path", ["../../../../../../outside/x", "/outside/x", "..data/x", "a/../../x"])
def test_items_stay_in_their_volume(house: House, path: str) -> None:
    """A key is shown nowhere but in its volume."""
    house.bench.api.config_maps["c"] = config_map(k="1")
    source = {"name": "c", "items": [{"key": "k", "path": path}]}
    with pytest.raises(VolumesNotReady):
        house.wait(pod_with({"name": "v", "configMap": source}))

    assert "invalid path" in house.bench.reported()[0]


def test_keys_stay_in_their_volume(house: House) -> None:
    """An API server that lets a key be a path does not lead the kubelet out."""
    house.bench.api.config_maps["c"] = config_map(**{"../../../../../../outside/x": "1"})
    with pytest.raises(VolumesNotReady):
        house.wait(pod_with({"name": "v", "configMap": {"name": "c"}}))

    assert "must not contain '..'" in house.bench.reported()[0]


TRAPS: dict[str, dict[str, str]] = {
    "absolute": {"part": "/"},
    "upwards": {"part": "../" * 9},
    "to-a-file": {"part": "../../../../../../outside/secret"},
    "on-the-way": {"x": "../" * 9, "part": "x/tmp"},
    "through-a-folder": {"part": "d/../../w"},
    "loop": {"part": "loop", "loop": "part"},
}
"""Links that a container makes in its volume: where each of them leads."""


@pytest.mark.parametrize("links", TRAPS.values(), ids=TRAPS)
def test_links_in_a_volume_are_no_way_out(house: House, links: dict[str, str]) -> None:
    """A link that a container left in its volume, used as a part of it, shows nothing outside."""
    pod = house.volume(subPath="part")
    (house.inside / "d").mkdir()
    for name, target in links.items():
        (house.inside / name).symlink_to(target)
    with pytest.raises(ConfigError) as caught:
        house.bench.mounts(pod)

    # Not more: why it fails could tell of the host's files.
    assert str(caught.value) == 'failed to prepare subPath for volumeMount "v" of container "c1"'


def test_parts_are_made_within(house: House) -> None:
    """No folder is made through a link that leads out."""
    pod = house.volume(subPath="part/new")
    (house.inside / "part").symlink_to(house.outside)

    with pytest.raises(ConfigError):
        house.bench.mounts(pod)


def test_links_within_a_volume_are_fine(house: House) -> None:
    """A link that stays in its volume is followed, up and down."""
    pod = house.volume(subPath="part/f")
    (house.inside / "d/e").mkdir(parents=True)
    (house.inside / "d/f").write_text("1")
    (house.inside / "d/e/up").symlink_to("..")
    (house.inside / "part").symlink_to("d/e/up")
    [mount] = house.bench.mounts(pod)

    assert mount.host_path == str(house.inside / "d/f")


def test_removal_follows_no_link(house: House) -> None:
    """Links to other places are removed with a volume, and what they lead to is not."""
    pod = house.volume()
    (house.inside / "d").symlink_to(house.outside)
    (house.inside / "f").symlink_to(house.outside / "secret")
    (house.inside / "more").mkdir()
    (house.inside / "more/up").symlink_to("../" * 9)
    run(house.bench.volumes.unmount(pod))

    assert not house.inside.exists()


def test_volume_as_deep_as_can_be(house: House) -> None:
    """A volume with thousands of folders in each other is removed with few of them open at a time."""
    pod = house.volume()
    folder = os.open(house.inside, os.O_RDONLY)
    for _ in range(3000):
        os.mkdir("d", dir_fd=folder)
        inner = os.open("d", os.O_RDONLY, dir_fd=folder)
        os.close(folder)
        folder = inner
    os.close(os.open("f", os.O_WRONLY | os.O_CREAT, dir_fd=folder))
    os.close(folder)
    run(house.bench.volumes.unmount(pod))

    assert not house.inside.exists()


def test_folders_that_move_while_they_are_removed(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder that is moved away while its content is removed does not lead the removal along."""
    tree = house.root / "tree"
    (tree / "a/b").mkdir(parents=True)
    (tree / "a/b/f").write_text("")
    unlink = os.unlink

    def moving(name: str, *, dir_fd: int) -> None:
        unlink(name, dir_fd=dir_fd)
        if name == "f":
            (tree / "a/b").rename(house.outside / "b")

    folder = os.open(house.root, os.O_RDONLY)
    with monkeypatch.context() as patch:
        patch.setattr(os, "unlink", moving)
        with pytest.raises(OSError, match="Stale") as caught:
            remove_tree(folder, "tree")
    os.close(folder)
    (house.outside / "b").rmdir()

    assert caught.value.errno == errno.ESTALE


@pytest.mark.parametrize(
    "where", ["pods", "pods/u1", "pods/u1/volumes", "pods/u1/volumes/kubernetes.io~empty-dir"]
)
def test_folders_of_the_kubelet_that_are_links(house: House, where: str) -> None:
    """Where a folder of the kubelet's own was made a link, nothing is made, written or removed through it."""
    link = house.root / where
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(house.outside)
    pod = pod_with({"name": "v", "emptyDir": {}})
    with pytest.raises(VolumesNotReady):
        house.wait(pod)
    with contextlib.suppress(NotADirectoryError):
        house.bench.files.mounts(pod, pods.containers(pod)[0], ("10.0.0.1",), {})
    with contextlib.suppress(NotADirectoryError):
        house.bench.volumes.clear("u1")
    with contextlib.suppress(NotADirectoryError):
        house.bench.disk.remove(f"{house.root}/pods/u1")


def test_hosts_file_that_is_a_link(house: House) -> None:
    """A hosts file that was replaced by a link is replaced itself."""
    pod = pod_with()
    (house.root / "pods/u1").mkdir(parents=True)
    hosts = house.root / "pods/u1/etc-hosts"
    hosts.symlink_to(house.outside / "secret")
    (house.root / "pods/u1/.part").symlink_to(house.outside / "secret")
    house.bench.files.mounts(pod, pods.containers(pod)[0], ("10.0.0.1",), {})

    assert not hosts.is_symlink()
    assert "10.0.0.1\tweb" in hosts.read_text()
    assert oct(hosts.stat().st_mode)[-3:] == "644"


def words(house: House, host_path: str | Path, *, log: str | Path = "") -> str:
    """The last words of a container whose runtime says that they lie there."""
    status = cri.ContainerStatus(
        state=cri.CONTAINER_EXITED,
        exit_code=1,
        mounts=[cri.Mount(container_path="/dev/termination-log", host_path=str(host_path))],
        annotations={
            names.TERMINATION_MESSAGE_PATH: "/dev/termination-log",
            names.TERMINATION_MESSAGE_POLICY: "FallbackToLogsOnError",
        },
        log_path=str(log),
    )
    return TerminationMessages(house.bench.disk, house.bench.settings).message(status)


def test_last_words_that_are_a_link(house: House) -> None:
    """A termination log that was replaced by a link, a pipe or a folder is not read."""
    folder = house.root / "pods/u1/containers/c1"
    folder.mkdir(parents=True)
    (folder / "link").symlink_to(house.outside / "secret")
    (folder / "folder").mkdir()
    os.mkfifo(folder / "pipe")

    for name in ("link", "folder", "pipe"):
        assert words(house, folder / name).startswith(f"Error on reading termination log {folder / name}: ")
        assert "treasure" not in words(house, folder / name)
    assert words(house, folder / "gone") == ""


def test_last_words_are_cut(house: House) -> None:
    """Of a large termination log the last 4096 bytes are read, however large it is."""
    folder = house.root / "pods/u1/containers/c1"
    folder.mkdir(parents=True)
    with (folder / "log").open("wb") as file:
        file.truncate(1 << 40)
        file.seek(0, os.SEEK_END)
        file.write(b"bye" * 2000)

    assert words(house, folder / "log") == ("bye" * 2000)[-4096:]


@pytest.mark.parametrize(
    "way", ["{outside}/secret", "{root}/pods/../../outside/secret", "{root}/x", "secret", ""]
)
def test_last_words_elsewhere(house: House, way: str) -> None:
    """A runtime that says that the last words lie elsewhere is not believed."""
    path = way.format(outside=house.outside, root=house.root)

    assert words(house, path) == ""


def test_logs_elsewhere(house: House) -> None:
    """A runtime that says that a log lies elsewhere has it neither read nor removed."""
    logs = house.root / "logs"
    (logs / "p").mkdir(parents=True)
    (logs / "p/link.log").symlink_to(house.outside / "secret")
    files = house.bench.files
    for path in (
        house.outside / "secret",
        f"{logs}/../../outside/secret",
        f"{logs}/p/link.log",
        "relative/0.log",
    ):
        assert words(house, house.root / "pods/u1/containers/c1/gone", log=path) == ""
        files.remove_log(str(path))

    assert list((logs / "p").iterdir()) == []


def test_log_of_a_link_to_a_folder(house: House) -> None:
    """A log folder that is a link has nothing in it removed."""
    logs = house.root / "logs"
    logs.mkdir()
    (logs / "p").symlink_to(house.outside)

    with pytest.raises(NotADirectoryError):
        house.bench.files.remove_log(f"{logs}/p/secret")
    house.bench.files.remove(f"{logs}/p")
    assert list(logs.iterdir()) == []


def test_data_link_that_leads_out(house: House) -> None:
    """A volume's own link that somebody turned elsewhere is put right."""
    house.bench.api.config_maps["c"] = config_map(secret="treasure")  # noqa: S106 - as outside
    pod = pod_with({"name": "v", "configMap": {"name": "c"}})
    volume = house.root / "pods/u1/volumes/kubernetes.io~configmap/v"
    volume.mkdir(parents=True)
    (volume / "..data").symlink_to(house.outside)
    (volume / "..old").symlink_to(house.outside)
    house.wait(pod)

    assert (volume / "..data").readlink().name.startswith("..17")
    assert not (volume / "..old").is_symlink()


def none_is_shown(_: str) -> list[str]:
    """A list of mounts that is empty."""
    return []


def test_what_is_mounted_is_not_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What somebody mounted into a volume keeps it where it is, whole, until that is unmounted."""
    (tmp_path / "root").mkdir()
    with mounting(tmp_path / "root") as disk:
        bench = VolumeBench(disk, str(tmp_path / "root"))
        pod = pod_with({"name": "v", "emptyDir": {}})
        run(bench.volumes.wait(pod))
        volume = tmp_path / "root" / EMPTY_DIR
        (volume / "own").write_text("1")
        (volume / "inner").mkdir()
        (tmp_path / "outside").mkdir()
        (tmp_path / "outside/secret").write_text("treasure")
        disk.bind(str(tmp_path / "outside"), "", str(volume / "inner"))
        with pytest.raises(OSError, match="something is mounted there"):
            bench.volumes.clear("u1")
        with pytest.raises(OSError, match="something is mounted there"):
            disk.remove(str(tmp_path / "root/pods/u1"))
        kept = (volume / "own").read_text(), (volume / "inner/secret").read_text()
        # Even one that the list of mounts does not show is not entered.
        with monkeypatch.context() as patch:
            patch.setattr(disk, "mounts", none_is_shown)
            with pytest.raises(OSError, match="busy"):
                disk.remove(str(volume))
        disk.unmount(str(volume / "inner"))
        bench.volumes.clear("u1")

        assert kept == ("1", "treasure")
        assert (tmp_path / "outside/secret").read_text() == "treasure"
        assert not volume.exists()


@pytest.mark.parametrize(
    ("path", "below"),
    [("/a/b", True), ("/a//b/", True), ("/a", False), ("/ab", False), ("/a/../a/b", False), ("a/b", False)],
)
def test_below(path: str, below: bool) -> None:  # noqa: FBT001 - pytest gives it
    """A path is below a folder if it goes there straight."""
    assert is_below(path, "/a/") is below
