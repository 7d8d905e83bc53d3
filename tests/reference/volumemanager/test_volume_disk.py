"""The disk in memory and the machine's own do the same; and what only a real one can show."""

import asyncio
import errno
import os
import socket
import stat
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias, cast

import pytest
from real_disk import mounting, plain_disk

from kubelet_fakes.clock import LoopClock, run
from kubelet_fakes.disk import MemoryDisk
from kubelet_reference.server.host.disk import OsDisk
from kubelet_reference.util.ports import Disk

At: TypeAlias = "Callable[[str], str]"


@pytest.fixture(params=["memory", "real"])
def disk(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Disk:
    """Either disk; the real one is guarded at the test's folder."""
    if request.param == "memory":
        made = MemoryDisk()
        made.make_folder(str(tmp_path))
        return made
    return plain_disk(tmp_path, monkeypatch)


@pytest.fixture
def at(tmp_path: Path) -> At:
    """The path of something in the test's folder."""
    return lambda path: f"{tmp_path}/{path}"


def code_of(call: Callable[[], object]) -> int | None:
    """The number of the error that a call raises."""
    with pytest.raises(OSError, match=r".") as caught:
        call()
    return caught.value.errno


def test_files_and_folders(disk: Disk, at: At) -> None:
    """What is made is there, with what was written last, and gone once removed."""
    disk.make_folder(at("a/b"))
    disk.make_folder(at("a/b"), 0o700)
    disk.write(at("a/b/f"), b"1")
    disk.write(at("a/b/f"), b"12345")
    disk.create(at("a/b/f"), 0o600)
    disk.create(at("a/b/g"), 0o600)

    assert disk.names(at("a/b")) == ["f", "g"]
    assert (disk.read(at("a/b/f")), disk.read(at("a/b/g"))) == (b"12345", b"")
    assert (disk.read_end(at("a/b/f"), 2), disk.read_end(at("a/b/f"), 99)) == (b"45", b"12345")
    assert (disk.is_folder(at("a/b")), disk.is_folder(at("a/b/f"))) == (True, False)
    assert [disk.kind(at(path)) for path in ("a", "a/b/f", "x", "a/b/f/x")] == [
        "Directory",
        "File",
        None,
        None,
    ]
    for _ in range(2):
        disk.remove(at("a"))
    assert disk.kind(at("a")) is None
    disk.remove(at("x/y/z"))


def test_links_lead_nowhere(disk: Disk, at: At) -> None:
    """A link in a guarded folder is a thing of its own: replaced, removed, never followed."""
    disk.make_folder(at("a"))
    disk.write(at("a/f"), b"1")
    disk.link(at("l"), "a")
    disk.link(at("m"), "nowhere")
    disk.link(at("m"), "a/f")

    assert (disk.kind(at("l")), disk.link_target(at("m"))) == ("Link", "a/f")
    assert not disk.is_folder(at("l"))
    assert code_of(lambda: disk.read(at("m"))) == errno.ELOOP
    assert code_of(lambda: disk.read_end(at("m"), 1)) == errno.ELOOP
    assert code_of(lambda: disk.read(at("l/f"))) == errno.ENOTDIR
    assert code_of(lambda: disk.write(at("l/f"), b"2")) == errno.ENOTDIR
    assert code_of(lambda: disk.names(at("l"))) == errno.ENOTDIR
    assert code_of(lambda: disk.make_folder(at("l/x"))) == errno.ENOTDIR
    disk.write(at("m"), b"3")
    disk.remove(at("l"))
    assert (disk.kind(at("l")), disk.read(at("a/f")), disk.read(at("m"))) == (None, b"1", b"3")


def test_misuse(disk: Disk, at: At) -> None:
    """Each misuse has the error that the port names, or the system has."""
    disk.make_folder(at("a"))
    disk.write(at("f"), b"")

    assert code_of(lambda: disk.names(at("x"))) == errno.ENOENT
    assert code_of(lambda: disk.read(at("x"))) == errno.ENOENT
    assert code_of(lambda: disk.read(at("a"))) == errno.EISDIR
    assert code_of(lambda: disk.write(at("x/f"), b"")) == errno.ENOENT
    assert code_of(lambda: disk.write(at("a"), b"")) == errno.EISDIR
    assert code_of(lambda: disk.link(at("a"), "f")) == errno.EISDIR
    assert code_of(lambda: disk.link_target(at("f"))) == errno.EINVAL
    assert code_of(lambda: disk.link_target(at("x"))) == errno.ENOENT
    assert code_of(lambda: disk.make_folder(at("f"))) == errno.ENOTDIR
    assert code_of(lambda: disk.make_folder(at("f/x"))) == errno.ENOTDIR
    assert code_of(lambda: disk.unmount(at("a"))) in {errno.EINVAL, errno.EPERM}


def test_modes_whatever_the_mask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Permissions that are asked for are given, whatever the process's mask is."""
    disk = plain_disk(tmp_path, monkeypatch)
    mask = os.umask(0o077)
    try:
        disk.make_folder(str(tmp_path / "d"), 0o777)
        disk.make_folder(str(tmp_path / "d"), 0o700)
        disk.write(str(tmp_path / "f"), b"", 0o666)
        disk.write(str(tmp_path / "g"), b"")
        disk.create(str(tmp_path / "h"), 0o604)
    finally:
        os.umask(mask)

    modes = [oct(stat.S_IMODE((tmp_path / name).stat().st_mode)) for name in "dfgh"]
    assert modes == ["0o777", "0o666", "0o644", "0o604"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["d", "f", "g", "h"]


def test_kinds(tmp_path: Path) -> None:
    """Sockets, devices and pipes are reported; outside the guarded folders a link is what it leads to."""
    disk = OsDisk(LoopClock(), ("/elsewhere",))
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "s"))
    os.mkfifo(tmp_path / "p")
    (tmp_path / "l").symlink_to("s")
    (tmp_path / "gone").symlink_to("nowhere")

    kinds = [disk.kind(str(tmp_path / name)) for name in ("s", "p", "l", "gone")]
    assert [*kinds, disk.kind("/dev/null")] == ["Socket", "Other", "Socket", None, "CharDevice"]
    assert OsDisk(LoopClock(), (str(tmp_path),)).kind(str(tmp_path / "l")) == "Link"


def test_guarded_folder_may_be_a_link_itself(tmp_path: Path) -> None:
    """An operator may keep the kubelet's folder elsewhere; only what is below it is not trusted."""
    (tmp_path / "real").mkdir()
    (tmp_path / "home").symlink_to("real")
    disk = OsDisk(LoopClock(), (f"{tmp_path}/home/",))
    disk.make_folder(f"{tmp_path}/home")
    disk.make_folder(f"{tmp_path}/home//pods/u1", 0o750)
    disk.write(f"{tmp_path}/home/pods/u1/f", b"1")

    assert (tmp_path / "real/pods/u1/f").read_bytes() == b"1"
    assert disk.names(f"{tmp_path}/home") == ["pods"]
    assert disk.kind(f"{tmp_path}/home") == "Link"
    assert code_of(lambda: disk.read(f"{tmp_path}/home/pods/../pods/u1/f")) == errno.EINVAL


def test_unguarded_paths_follow_links(tmp_path: Path) -> None:
    """A manifest folder, and what is in it, may be a link: it is the operator's."""
    disk = OsDisk(LoopClock())
    disk.make_folder(str(tmp_path / "a/b"))
    disk.write(str(tmp_path / "a/b/f"), b"1")
    (tmp_path / "l").symlink_to("a/b")
    (tmp_path / "m").symlink_to("l/f")

    assert disk.is_folder(str(tmp_path / "l"))
    assert disk.names(str(tmp_path / "l")) == ["f"]
    assert (disk.read(str(tmp_path / "l/f")), disk.read(str(tmp_path / "m"))) == (b"1", b"1")
    disk.make_folder(str(tmp_path / "l/c"))
    assert disk.names(str(tmp_path / "a/b")) == ["c", "f"]
    assert disk.is_folder("/")


def test_nothing_is_waited_for(tmp_path: Path) -> None:
    """A pipe in the place of a file is an error, and nobody waits for its other end."""
    os.mkfifo(tmp_path / "p")
    disk = OsDisk(LoopClock(), (str(tmp_path),))

    assert code_of(lambda: disk.read(str(tmp_path / "p"))) == errno.EINVAL


def test_reader_sees_old_or_new(tmp_path: Path) -> None:
    """A file is replaced whole: who has the old one open reads it to its end."""
    disk = OsDisk(LoopClock(), (str(tmp_path),))
    disk.write(str(tmp_path / "f"), b"old")
    with (tmp_path / "f").open("rb") as reader:
        disk.write(str(tmp_path / "f"), b"new")

        assert reader.read() == b"old"
    assert (tmp_path / "f").read_bytes() == b"new"


def test_disk_notices_changes_within_a_second(tmp_path: Path) -> None:
    """A file that is written, rewritten, moved in or removed is named."""
    (tmp_path / "old").write_bytes(b"1")
    (tmp_path / "dangling").symlink_to("nowhere")
    found: list[tuple[float, str]] = []

    async def note(clock: LoopClock) -> None:
        async for name in OsDisk(clock).changes(str(tmp_path)):
            found.append((clock.monotonic(), name))  # noqa: PERF401 - the moment counts

    async def work() -> None:
        clock = LoopClock()
        noting = asyncio.ensure_future(note(clock))
        await clock.sleep(0.5)
        (tmp_path / "new").write_bytes(b"1")
        await clock.sleep(1)
        (tmp_path / "old").unlink()
        (tmp_path / "new").write_bytes(b"12")
        await clock.sleep(1)
        noting.cancel()

    run(work())

    assert found == [(1, "new"), (2, "new"), (2, "old")]


def test_mounts_in_memory(tmp_path: Path) -> None:
    """The disk in memory keeps mounts as the system does: found, in the way of removals, then empty."""
    disk = MemoryDisk()
    folder = f"{tmp_path}/m"
    disk.make_folder(folder)
    disk.mount_memory(folder, 4096)
    disk.write(f"{folder}/f", b"1")

    assert disk.mounts("/") == disk.mounts(folder) == [folder]
    assert disk.mounts(f"{tmp_path}/n") == []
    assert code_of(lambda: disk.remove(str(tmp_path))) == errno.EBUSY
    disk.unmount(folder)
    assert (disk.mounts("/"), disk.names(folder)) == ([], [])


def test_real_mounts(tmp_path: Path) -> None:
    """Memory is mounted with its size, found, in the way of removals, and gone with all that was in it."""
    with mounting(tmp_path) as disk:
        folder = tmp_path / "a b" / "m"
        disk.make_folder(str(folder), 0o777)
        assert disk.mount_memory(str(folder), 1 << 20)
        (folder / "f").write_bytes(b"1")
        disk.make_folder(str(folder / "inner"))
        disk.mount_memory(str(folder / "inner"), 4096)

        assert disk.mounts(str(tmp_path)) == [str(folder / "inner"), str(folder)]
        size = os.statvfs(folder)
        assert size.f_blocks * size.f_frsize == 1 << 20
        assert stat.S_IMODE(folder.stat().st_mode) & 0o777 == 0o777
        assert code_of(lambda: disk.remove(str(tmp_path / "a b"))) == errno.EBUSY
        assert code_of(lambda: disk.unmount(str(folder))) == errno.EBUSY
        assert (folder / "f").exists()
        disk.unmount(str(folder / "inner"))
        disk.unmount(str(folder))
        assert cast("Disk", disk).mounts(str(tmp_path)) == []
        disk.remove(str(tmp_path / "a b"))
        assert list(tmp_path.iterdir()) == []
