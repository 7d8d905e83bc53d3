"""Rotation of containers' logs: a log that is too long is renamed, compressed, and in the end removed.

Every ten seconds the log of each running container is looked at. One of `container_log_max_size` bytes or
more is renamed to `<log>.<time>`, and the runtime is asked to open a new one (ReopenContainerLog); where that
fails the old name is given back, for the runtime goes on writing into that file. Of the files put aside
those beyond `container_log_max_files` minus 2 go first, the rest is packed with gzip: one file is being
written, and one was just put aside. A log that is missing is asked for anew.

Source: pkg/kubelet/logs/container_log_manager.go; KubeletConfiguration.
"""

import gzip
import logging
import posixpath
from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

import grpc
from lightkube.models.core_v1 import Pod

from kubelet_reference.cri.errors import error_text
from kubelet_reference.kuberuntime.container.container_config import log_path
from kubelet_reference.kuberuntime.sandbox_config import log_directory
from kubelet_reference.pleg.cache import PodCache
from kubelet_reference.util.ports import Clock, Disk
from kubelet_reference.util.settings import Settings

PERIOD_SECONDS = 10.0
"""How long to wait between two rounds (containerLogMonitorInterval)."""
_PACKED, _UNFINISHED = ".gz", ".tmp"
_NS = 1_000_000_000
_LOG = logging.getLogger(__name__)


@dataclass(eq=False)
class LogRotation:
    """Rotates the logs of this kubelet's pods; `pods` gives them."""

    reopen_log: Callable[[str], Awaitable[None]]
    disk: Disk
    clock: Clock
    settings: Settings
    cache: PodCache
    pods: Callable[[], Iterable[Pod]]

    async def run(self) -> None:
        """Look after the logs for good."""
        while True:
            await self.clock.sleep(PERIOD_SECONDS)
            await self.rotate_all()

    async def rotate_all(self) -> None:
        """Look at every log once; one that cannot be rotated keeps no other from it."""
        for container_id, path in list(self._running()):
            try:
                await self._look_after(container_id, path)
            except OSError as error:
                _LOG.warning("the log %s was not rotated: %s", path, error)
            except grpc.RpcError as error:
                _LOG.warning("the log %s was not opened anew: %s", path, error_text(error))

    def _running(self) -> Iterator[tuple[str, str]]:
        """The containers that run, each by its id with the path of its log."""
        for pod in self.pods():
            uid = pod.metadata.uid if pod.metadata else None
            for record in self.cache.get(uid or "").running:
                name = log_path(record.name, record.restart_count)
                yield record.id, f"{log_directory(pod, self.settings)}/{name}"

    async def _look_after(self, container_id: str, path: str) -> None:
        size = self.disk.size(path)
        if size is None:
            await self.reopen_log(container_id)
        elif size >= self.settings.container_log_max_size:
            await self._rotate(container_id, path)

    async def _rotate(self, container_id: str, path: str) -> None:
        kept = self._without_excess(path)
        for old in kept:
            if not old.endswith(_PACKED):
                self._pack(old)
        aside = f"{path}.{self._stamp()}"
        self.disk.rename(path, aside)
        try:
            await self.reopen_log(container_id)
        except grpc.RpcError:
            self.disk.rename(aside, path)
            raise

    def _without_excess(self, path: str) -> list[str]:
        """The files put aside, oldest first, after what is half made and what is too many was removed."""
        folder, name = posixpath.split(path)
        found = [f"{folder}/{one}" for one in self.disk.names(folder) if one.startswith(f"{name}.")]
        whole = [one for one in found if not one.endswith(_UNFINISHED)]
        excess = max(0, len(whole) - (self.settings.container_log_max_files - 2))
        for one in (*(one for one in found if one not in whole), *whole[:excess]):
            self.disk.remove(one)
        return whole[excess:]

    def _pack(self, path: str) -> None:
        """Put the packed file in the place of the plain one; half a file never has its name."""
        self.disk.write(f"{path}{_UNFINISHED}", gzip.compress(self.disk.read(path), mtime=0))
        self.disk.rename(f"{path}{_UNFINISHED}", f"{path}{_PACKED}")
        self.disk.remove(path)

    def _stamp(self) -> str:
        """The time as file names have it: their order is that of their making."""
        return datetime.fromtimestamp(self.clock.wall_ns() / _NS, UTC).strftime("%Y%m%d-%H%M%S")
