"""Writes the files of a volume so that a reader sees all of the old ones or all of the new.

    <volume>/key              -> ..data/key          what containers open
    <volume>/..data           -> ..1767225600000     replaced at once; named after the time
    <volume>/..1767225600000/key                     the files themselves

A kubelet that dies on the way leaves the old files in place, and the next writing clears its remains away.
"""

import posixpath
from collections.abc import Iterable, Iterator, Mapping
from itertools import accumulate

from kubelet_reference.util.ports import Disk
from kubelet_reference.volumemanager.paths import FOLDER_MODE
from kubelet_reference.volumemanager.payload import Payload, checked_path

_DATA = "..data"


def write_files(disk: Disk, volume: str, payload: Payload, now_ns: int) -> None:
    """Let the folder `volume` show these files and no others; nothing is written if it does so already.

    Raises `SetUpError` for a path that is not fit, before anything is written, and `OSError`.
    """
    files = {checked_path(path): file for path, file in payload.items()}
    shown = _shown(disk, volume)
    if shown is None or _contents(disk, f"{volume}/{shown}") != {
        path: file.content for path, file in files.items()
    }:
        shown = _written(disk, volume, files, f"..{now_ns}")
    tops = {path.partition("/")[0] for path in files}
    _show(disk, volume, tops, shown)
    _clear(disk, volume, tops, shown)


def _shown(disk: Disk, volume: str) -> str | None:
    """The folder with the files that are shown now, None if there is none."""
    if disk.kind(f"{volume}/{_DATA}") != "Link":
        return None
    name = disk.link_target(f"{volume}/{_DATA}")
    return name if "/" not in name and disk.is_folder(f"{volume}/{name}") else None


def _contents(disk: Disk, folder: str, prefix: str = "") -> Mapping[str, bytes]:
    """Every file below a folder by its path in it."""
    found: dict[str, bytes] = {}
    for name in disk.names(folder):
        path = f"{folder}/{name}"
        if disk.is_folder(path):
            found.update(_contents(disk, path, f"{prefix}{name}/"))
        else:
            found[f"{prefix}{name}"] = disk.read(path)
    return found


def _written(disk: Disk, volume: str, files: Payload, name: str) -> str:
    """Write the files into a new folder that is not visible yet, and return its name."""
    folder = f"{volume}/{name}"
    try:
        disk.make_folder(folder, FOLDER_MODE)
        for path, file in files.items():
            for above in _folders_above(path):
                disk.make_folder(f"{folder}/{above}", FOLDER_MODE)
            disk.write(f"{folder}/{path}", file.content, file.mode)
    except OSError:
        disk.remove(folder)
        raise
    return name


def _show(disk: Disk, volume: str, tops: Iterable[str], name: str) -> None:
    """Lead readers to the folder: a link for each name, then the one that all of them lead through."""
    for top in sorted(tops):
        _link(disk, f"{volume}/{top}", f"{_DATA}/{top}")
    _link(disk, f"{volume}/{_DATA}", name)


def _link(disk: Disk, path: str, target: str) -> None:
    if disk.kind(path) != "Link" or disk.link_target(path) != target:
        disk.link(path, target)


def _clear(disk: Disk, volume: str, tops: set[str], name: str) -> None:
    """Remove links to files that are no more, and older folders."""
    for other in disk.names(volume):
        if other not in {_DATA, name, *tops}:
            disk.remove(f"{volume}/{other}")


def _folders_above(path: str) -> Iterator[str]:
    """The folders on the way to a file, the outermost first."""
    return accumulate(path.split("/")[:-1], posixpath.join)
