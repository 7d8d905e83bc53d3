"""Sees that a pod has its volumes before its sandbox is made, and that they go after its last container.

Making a volume is tried again with growing delays, each failure reported by an event, for as long as a sync
may wait. In each later sync what volumes show is brought up to date; a failure there keeps the old content
and does not delay the pod. Volumes are removed as they are found on the disk, also those of an earlier
process.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from lightkube.models.core_v1 import Pod, Volume

from kubelet_reference.api import pods
from kubelet_reference.api.events import Reason, Recorder
from kubelet_reference.util.ports import ApiServer, Clock, Disk, ServiceAccountTokens
from kubelet_reference.util.settings import Settings
from kubelet_reference.volumemanager.content import Contents
from kubelet_reference.volumemanager.paths import (
    FOLDERS,
    SHOWS_CONTENT,
    SetUpError,
    plugin_of,
    subpaths_folder,
    used_volumes,
    volumes_folder,
)
from kubelet_reference.volumemanager.set_up import SetUp

PATIENCE_SECONDS = 123.0
"""How long one sync waits for volumes."""
FIRST_DELAY_SECONDS, DELAY_SECONDS_MAX = 0.5, 122.0
"""From one try to make a volume to the next; each delay is twice the one before."""


class VolumesNotReady(Exception):  # noqa: N818 - it is no fault of ours, the pod waits
    """The volumes of the pod could not be made in time; the text says which."""


@dataclass(slots=True)
class _Made:
    """The names of a pod's volumes that this process has made.

    The others may be tried again at `retry_at`, in seconds of the clock; `delay` is the one until then.
    """

    names: set[str] = field(default_factory=set[str])
    retry_at: float = float("-inf")
    delay: float = 0


@dataclass(eq=False)
class Volumes:
    """Which pods have their volumes: those made by this process, and those left on disk by an earlier one.

    `api` is None on a node without an API server, `tokens` where no service account has any.
    """

    api: ApiServer | None
    disk: Disk
    clock: Clock
    recorder: Recorder
    settings: Settings
    tokens: ServiceAccountTokens | None = None

    def __post_init__(self) -> None:
        contents = Contents(self.api, self.tokens, self.settings)
        self._set_up = SetUp(contents, self.disk, self.clock, self.settings)
        self._made: dict[str, _Made] = {}
        """By pod UID."""

    async def wait(self, pod: Pod) -> None:
        """Make the pod's volumes, or bring them up to date; raises `VolumesNotReady` (SYNC-10)."""
        volumes = used_volumes(pod)
        made = self._made.setdefault(pods.uid(pod), _Made())
        for volume in volumes:
            if volume.name in made.names and plugin_of(volume) in SHOWS_CONTENT:
                await self._try(pod, volume)
        missing = [volume for volume in volumes if volume.name not in made.names]
        give_up_at = self.clock.monotonic() + PATIENCE_SECONDS
        while missing:
            await self._pause(made, [volume.name for volume in missing], give_up_at)
            for volume in missing:
                if await self._try(pod, volume):
                    made.names.add(volume.name)
            missing = [volume for volume in missing if volume.name not in made.names]
            made.delay = min(2 * made.delay, DELAY_SECONDS_MAX) or FIRST_DELAY_SECONDS
            made.retry_at = self.clock.monotonic() + made.delay

    async def unmount(self, pod: Pod) -> None:
        """The pod needs its volumes no more; raises `OSError` where one cannot go yet."""
        self.clear(pods.uid(pod))

    def clear(self, uid: str) -> None:
        """Remove the volumes of a pod of which nothing runs; raises `OSError` where one cannot go."""
        clear_volumes(self.disk, self.settings.root_dir, uid)
        self._made.pop(uid, None)

    def is_mounted(self, uid: str) -> bool:
        """Whether the pod has volumes, also those made by an earlier process of this kubelet."""
        made = self._made.get(uid)
        return bool(made and made.names) or bool(volume_paths(self.disk, self.settings.root_dir, uid))

    async def _try(self, pod: Pod, volume: Volume) -> bool:
        """Make one volume; whether it is there. A failure is reported by an event."""
        try:
            await self._set_up.make(pod, volume)
        except SetUpError as error:
            text = f'MountVolume.SetUp failed for volume "{volume.name}" : {error}'
            self.recorder.warning(pod, Reason.FAILED_MOUNT, text)
            return False
        return True

    async def _pause(self, made: _Made, missing: list[str], give_up_at: float) -> None:
        """Wait until volumes may be tried again; raises `VolumesNotReady` if that is too late."""
        now = self.clock.monotonic()
        if made.retry_at <= now:
            return
        await self.clock.sleep(min(made.retry_at, give_up_at) - now)
        if made.retry_at > give_up_at:
            names = " ".join(sorted(missing))
            raise VolumesNotReady(
                f"unmounted volumes=[{names}], unattached volumes=[], failed to process volumes=[]: "
                "context deadline exceeded"
            )


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
        if path.split("/")[-2] not in FOLDERS:
            raise OSError(f"a volume at {path} is none that this kubelet makes")
        _remove(disk, path)
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
