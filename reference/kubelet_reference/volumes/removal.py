"""Clears away the volumes of a pod, as they are found on the disk, whichever life of a kubelet made them."""

from __future__ import annotations

from collections.abc import Iterator

from kubelet_reference.ports import Disk
from kubelet_reference.volumes.places import FOLDERS, subpaths_folder, volumes_folder


def volume_paths(disk: Disk, root_dir: str, uid: str) -> list[str]:
    """Where volumes of the pod lie, hostPath volumes not counted."""
    return list(_below(disk, volumes_folder(root_dir, uid), 2))


def clear_volumes(disk: Disk, root_dir: str, uid: str) -> None:
    """Unmount and remove the pod's volumes; nothing is left of them, or it is an `OSError`.

    What is shown of volumes elsewhere goes first. Only our own mounts are taken away: where a pod has mounted
    something into a volume, that volume stays, and so do folders that this kubelet did not make.
    """
    shown = subpaths_folder(root_dir, uid)
    for path in _below(disk, shown, 3):
        _remove(disk, path)
    disk.remove(shown)
    for path in volume_paths(disk, root_dir, uid):
        if path.split("/")[-2] in FOLDERS:
            _remove(disk, path)
        else:
            raise OSError(f"a volume at {path} is none that this kubelet makes")
    disk.remove(volumes_folder(root_dir, uid))


def _remove(disk: Disk, path: str) -> None:
    for mount in disk.mounts(path):
        if mount == path:
            disk.unmount(path)
    disk.remove(path)


def _below(disk: Disk, folder: str, depth: int) -> Iterator[str]:
    """Everything so many levels below a folder that may not be there."""
    if not depth:
        yield folder
    elif disk.is_folder(folder):
        for name in disk.names(folder):
            yield from _below(disk, f"{folder}/{name}", depth - 1)
