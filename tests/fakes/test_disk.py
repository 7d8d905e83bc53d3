"""The disk in memory behaves as a real one, and reports a folder's changes in order."""

import asyncio
import errno
from collections.abc import AsyncIterator, Callable

import pytest

from kubelet_fakes.clock import run
from kubelet_fakes.disk import MemoryDisk


def filled() -> MemoryDisk:
    """A disk with one file in one folder."""
    disk = MemoryDisk()
    disk.make_folder("/etc/pods")
    disk.write("/etc/pods/a.yaml", b"a")
    return disk


def test_files_and_folders() -> None:
    """What was written is read, names are sorted, and folders are distinguished from files."""
    disk = filled()
    disk.write("/etc/pods//b.yaml", b"")
    disk.make_folder("/etc/pods/more/still/")
    disk.write("/etc/pods/a.yaml", b"new")

    assert disk.read("/etc/pods/a.yaml") == b"new"
    assert disk.names("/etc/pods") == ["a.yaml", "b.yaml", "more"]
    assert disk.names("/") == ["etc"]
    assert [disk.is_folder(path) for path in ("/", "/etc/pods/more", "/etc/pods/a.yaml", "/x")] == [
        True,
        True,
        False,
        False,
    ]


def test_appending_makes_what_is_missing() -> None:
    """What is appended comes after what is there; a missing file is made, and its folder."""
    disk = filled()
    disk.append("/etc/pods/a.yaml", b"b")
    disk.append("/var/log/pods/web/0.log", b"")
    disk.append("/var/log/pods/web/0.log", b"line")

    assert disk.read("/etc/pods/a.yaml") == b"ab"
    assert disk.read("/var/log/pods/web/0.log") == b"line"


def test_removing_takes_everything_below() -> None:
    """A folder goes with all in it; what is not there is fine; the root stays."""
    disk = filled()
    for path in ("/etc", "/etc", "/nowhere/x", "/"):
        disk.remove(path)

    assert disk.names("/") == []
    disk.make_folder("/etc/pods")
    assert disk.names("/etc/pods") == []


#: A misuse, and the error that a real disk has for it.
MISUSES: dict[str, tuple[Callable[[MemoryDisk], object], type[Exception]]] = {
    "names-of-nothing": (lambda disk: disk.names("/x"), FileNotFoundError),
    "read-nothing": (lambda disk: disk.read("/x"), FileNotFoundError),
    "read-in-nothing": (lambda disk: disk.read("/x/y"), FileNotFoundError),
    "write-in-nothing": (lambda disk: disk.write("/x/y", b""), FileNotFoundError),
    "watch-nothing": (lambda disk: disk.changes("/x"), FileNotFoundError),
    "read-folder": (lambda disk: disk.read("/etc"), IsADirectoryError),
    "write-folder": (lambda disk: disk.write("/etc", b""), IsADirectoryError),
    "names-of-file": (lambda disk: disk.names("/etc/pods/a.yaml"), NotADirectoryError),
    "folder-in-file": (lambda disk: disk.make_folder("/etc/pods/a.yaml/b"), NotADirectoryError),
    "write-in-file": (lambda disk: disk.write("/etc/pods/a.yaml/b", b""), NotADirectoryError),
    "relative": (lambda disk: disk.read("etc"), ValueError),
}


@pytest.mark.parametrize(("call", "error"), MISUSES.values(), ids=MISUSES)
def test_errors_are_those_of_a_real_disk(
    call: Callable[[MemoryDisk], object], error: type[Exception]
) -> None:
    """Each misuse raises the error that the system has for it."""
    with pytest.raises(error):
        call(filled())


def test_changes_are_reported_by_name() -> None:
    """Every entry written, made or removed after the call is named, once a time; other folders are silent."""

    async def main() -> list[str]:
        disk = filled()
        changes = disk.changes("/etc/pods")
        disk.write("/etc/pods/b.yaml", b"")
        disk.write("/etc/pods/b.yaml", b"b")
        disk.make_folder("/etc/pods/c")
        disk.write("/etc/pods/c/d.yaml", b"")
        disk.remove("/etc/pods/a.yaml")
        disk.remove("/etc/pods/a.yaml")
        disk.remove("/etc")
        disk.make_folder("/etc/pods")
        disk.write("/etc/pods/e.yaml", b"")
        return [name async for name in changes]

    assert run(main()) == ["b.yaml", "b.yaml", "c", "a.yaml"]


def test_reader_waits_for_changes() -> None:
    """Who iterates sleeps until something happens, and stops for good when it leaves."""

    async def first(changes: AsyncIterator[str]) -> str:
        return await anext(changes)

    async def main() -> tuple[bool, str, list[str]]:
        disk = filled()
        changes = disk.changes("/etc/pods")
        reader = asyncio.create_task(first(changes))
        await asyncio.wait([reader], timeout=60)
        waited = not reader.done()
        disk.write("/etc/pods/x", b"")
        name = await reader
        await changes.aclose()  # type: ignore[attr-defined]
        disk.write("/etc/pods/y", b"")
        return waited, name, [each async for each in changes]

    assert run(main()) == (True, "x", [])


def test_broken_paths_fail() -> None:
    """While a path is broken every call at it or below it fails, and nothing beside it."""
    disk = filled()
    with disk.broken("/etc/pods", errno.EACCES):
        for call in (disk.names, disk.read, disk.remove, disk.is_folder):
            with pytest.raises(PermissionError):
                call("/etc/pods/a.yaml" if call is disk.read else "/etc/pods")
        disk.make_folder("/etc/pods2")

    assert disk.read("/etc/pods/a.yaml") == b"a"


def test_listener_hears_what_happened() -> None:
    """A trace hears each write, folder and removal; a folder goes as one."""
    reported: list[tuple[str, str]] = []
    disk = MemoryDisk(lambda op, path: reported.append((op, path)))
    disk.make_folder("/a/b")
    disk.write("/a/b/c", b"")
    disk.make_folder("/a")
    disk.remove("/a")

    assert reported == [("make", "/a"), ("make", "/a/b"), ("write", "/a/b/c"), ("remove", "/a")]


def test_links_are_followed_on_demand() -> None:
    """A container's look follows links, wherever they lead, and no further than a path may be."""
    disk = filled()
    disk.link("/etc/now", "pods")
    disk.link("/etc/pods/b", "../now/./a.yaml")
    disk.link("/etc/round", "round")

    assert disk.look("/etc/now/b") == b"a"
    with pytest.raises(OSError, match="Too many levels") as caught:
        disk.look("/etc/round")
    assert caught.value.errno == errno.ELOOP


def test_part_is_shown_elsewhere() -> None:
    """What lies below a folder can be shown elsewhere, links followed, and nothing from outside of it."""
    disk = filled()
    disk.link("/etc/pods/l", "a.yaml")
    disk.link("/etc/pods/out", "../..")
    disk.link("/etc/pods/top", "/etc")

    assert disk.bind("/etc/pods", "l", "/shown/0") == "/shown/0"
    assert disk.bind("/etc/pods", "new/one", "/shown/1") == "/shown/1"
    assert (disk.kind("/shown/0"), disk.kind("/shown/1")) == ("File", "Directory")
    assert disk.names("/etc/pods/new") == ["one"]
    assert disk.mounts("/shown") == ["/shown/0", "/shown/1"]
    for path in ("out", "top", "../pods", "out/etc"):
        with pytest.raises(OSError, match="cross-device") as caught:
            disk.bind("/etc/pods", path, "/shown/2")
        assert caught.value.errno == errno.EXDEV


def test_memory_is_mounted_on_empty_folders() -> None:
    """Memory goes onto an empty folder, and takes what is in it along when it goes."""
    disk = filled()
    with pytest.raises(OSError, match="not empty"):
        disk.mount_memory("/etc/pods", 1)
    disk.make_folder("/m")

    assert disk.mount_memory("/m", 1)
    disk.make_folder("/m/d")
    with pytest.raises(OSError, match="busy"):
        disk.remove("/m")
    disk.unmount("/m")
    assert disk.names("/m") == []
    with pytest.raises(OSError, match="Invalid argument"):
        disk.unmount("/m")
