"""Volumes of type hostPath: nothing is made of them but what their type asks for."""

from __future__ import annotations

from lightkube.models.core_v1 import HostPathVolumeSource

from kubelet_reference.ports import Disk
from kubelet_reference.volumes.places import SetUpError

_FOLDER_MODE, _FILE_MODE = 0o755, 0o644
_TYPES = {
    "Directory": ("Directory", "directory"),
    "DirectoryOrCreate": ("Directory", "directory"),
    "File": ("File", "file"),
    "FileOrCreate": ("File", "file"),
    "Socket": ("Socket", "socket file"),
    "CharDevice": ("CharDevice", "character device"),
    "BlockDevice": ("BlockDevice", "block device"),
}
"""What has to lie there, and how that is called, by the type that is asked for."""


def prepare_host_path(disk: Disk, source: HostPathVolumeSource) -> None:
    """See that what lies at the path is of the type that is asked for, and make it where that says so.

    Without a type nothing is looked at. Raises `SetUpError`, and `OSError`.
    """
    path, wanted = source.path, source.type or ""
    if not path.startswith("/") or ".." in path.split("/"):
        raise SetUpError(f"invalid HostPath `{path}`: must be absolute and not contain '..'")
    if not wanted:
        return
    if wanted not in _TYPES:
        raise SetUpError(f"{wanted} is an invalid volume type")
    kind, name = _TYPES[wanted]
    if disk.kind(path) is None and wanted == "DirectoryOrCreate":
        disk.make_folder(path, _FOLDER_MODE)
    elif disk.kind(path) is None and wanted == "FileOrCreate":
        disk.create(path, _FILE_MODE)
    if disk.kind(path) != kind:
        raise SetUpError(f"hostPath type check failed: {path} is not a {name}")
