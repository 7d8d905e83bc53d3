"""Makes one volume, or brings it up to date: doing it again is fine, and goes on where a crash ended it.

Of a hostPath volume nothing is made but what its type asks for.
"""

import logging

from lightkube.models.core_v1 import EmptyDirVolumeSource, HostPathVolumeSource, Pod, Volume

from kubelet_reference.api import pods
from kubelet_reference.api.quantities import whole
from kubelet_reference.api.resources import MEMORY, amount, limits
from kubelet_reference.util.ports import Clock, Disk
from kubelet_reference.util.settings import Settings
from kubelet_reference.volumemanager.atomic_writer import write_files
from kubelet_reference.volumemanager.content import Contents
from kubelet_reference.volumemanager.paths import (
    FOLDER_MODE,
    ON_TMPFS,
    Plugin,
    SetUpError,
    plugin_of,
    volume_path,
)

_MODE = 0o777
_MEMORY = "Memory"

_log = logging.getLogger("kubelet_reference.volumes")


class SetUp:
    """Makes volumes on the disk."""

    def __init__(self, contents: Contents, disk: Disk, clock: Clock, settings: Settings) -> None:
        self._disk = disk
        self._clock = clock
        self._settings = settings
        self._contents = contents

    async def make(self, pod: Pod, volume: Volume) -> None:
        """Make the volume; raises `SetUpError`."""
        try:
            await self._make(pod, volume)
        except OSError as error:
            raise SetUpError(str(error)) from error

    async def _make(self, pod: Pod, volume: Volume) -> None:
        plugin = plugin_of(volume)
        path = volume_path(self._settings.root_dir, pod, volume)
        if plugin is Plugin.HOST_PATH and volume.hostPath is not None:
            prepare_host_path(self._disk, volume.hostPath)
        elif plugin is Plugin.EMPTY_DIR:
            self._empty_dir(pod, path, volume.emptyDir)
        else:
            # What is shown is fetched first: where it is missing nothing is made.
            files = await self._contents.files(pod, volume)
            self._folder(pod, path, None, in_memory=plugin in ON_TMPFS)
            write_files(self._disk, path, files, self._clock.wall_ns())

    def _empty_dir(self, pod: Pod, path: str, source: EmptyDirVolumeSource | None) -> None:
        medium, limit = (source.medium, source.sizeLimit) if source else (None, None)
        if medium not in {None, "", _MEMORY}:
            raise SetUpError(
                f"unknown storage medium {medium!r}: this kubelet has the node's disk and Memory"
            )
        self._folder(pod, path, limit, in_memory=medium == _MEMORY)

    def _folder(self, pod: Pod, path: str, limit: str | None, *, in_memory: bool) -> None:
        """A folder with mode 0777, in memory if the spec says so and the kubelet may mount it."""
        self._disk.make_folder(path, _MODE)
        if not in_memory or path in self._disk.mounts(path):
            return
        if not self._disk.mount_memory(path, self._memory(pod, limit)):
            _log.warning("%s is no memory but a plain folder: only root may mount", path)

    def _memory(self, pod: Pod, limit: str | None) -> int:
        """The size of a volume in memory, in bytes: the least of the node's, the pod's and its own limit."""
        of_containers = [amount(limits(one), MEMORY) for one in pods.containers(pod)]
        wishes = [whole(str(limit))] if limit else []
        if all(of_containers):
            wishes.append(int(sum(of_containers)))
        return min([self._settings.memory_bytes, *filter(None, wishes)])


_FILE_MODE = 0o644


def prepare_host_path(disk: Disk, source: HostPathVolumeSource) -> None:
    """Check that what is at the path has the requested type, and create it where the type says so.

    Without a type nothing is looked at. Raises `SetUpError`, and `OSError`.
    """
    path, wanted = source.path, source.type or ""
    if ".." in path.split("/"):
        raise SetUpError(f"invalid HostPath `{path}`: must not contain '..'")
    if not wanted:
        return
    kind = wanted.removesuffix("OrCreate")
    if disk.kind(path) is None and wanted == "DirectoryOrCreate":
        disk.make_folder(path, FOLDER_MODE)
    elif disk.kind(path) is None and wanted == "FileOrCreate":
        disk.create(path, _FILE_MODE)
    if disk.kind(path) != kind:
        raise SetUpError(f"hostPath type check failed: {path} is not a {kind.lower()}")
