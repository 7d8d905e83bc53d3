"""Rotates the logs of containers: what grew too large is put aside, packed, and in the end removed."""

from __future__ import annotations

import asyncio
import gzip
import logging
import os
import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import grpc
from cri_api.v1 import api_pb2 as cri

from kubelet_reference.cri_errors import wrapped_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from kubelet_reference.ports import Clock
    from kubelet_reference.process.configuration import Configuration

__all__ = ("LogRotation", "excess", "rotated_names")

LOOK_SECONDS = 10.0
"""How often the kubelet looks."""
_PACKED, _PART = ".gz", ".tmp"
_log = logging.getLogger("kubelet_reference.log_rotation")


def rotated_names(names: Iterable[str], log: str) -> list[str]:
    """The parts of a log that were put aside, oldest first: their names end with when that was."""
    return sorted(name for name in names if name.startswith(f"{log}.") and not name.endswith(_PART))


def excess(rotated: Sequence[str], files_max: int) -> Sequence[str]:
    """What has to go, so that with the log itself and the part put aside next there are `files_max`."""
    return rotated[: max(0, len(rotated) - (files_max - 2))]


class LogRotation:
    """Looks at the log of each running container every 10 s; `runtime` has the methods of the RuntimeService.

    Only files below the folder of logs are touched, whatever path a runtime tells.
    """

    def __init__(self, runtime: Any, clock: Clock, configuration: Configuration) -> None:  # noqa: ANN401 - see above
        self._runtime = runtime
        self._clock = clock
        self._timeout = configuration.runtime_request_timeout
        self._bytes_max = configuration.container_log_max_size
        self._files_max = configuration.container_log_max_files
        self._logs = configuration.pod_logs_dir

    async def run(self) -> None:
        """Look again and again, until cancelled."""
        while True:
            await self._clock.sleep(LOOK_SECONDS)
            await self.look()

    async def look(self) -> None:
        """Look once; what fails is told, and tried again the next time."""
        try:
            request = cri.ListContainersRequest(filter=cri.ContainerFilter())
            listed = await self._runtime.ListContainers(request, timeout=self._timeout)
        except grpc.RpcError as error:
            _log.warning("containers could not be listed to rotate their logs: %s", wrapped_text(error))
            return
        for container in listed.containers:
            if container.state != cri.CONTAINER_RUNNING:
                continue
            try:
                await self._look_at(container.id)
            except (grpc.RpcError, OSError) as error:
                _log.warning("log of container %s was not rotated: %s", container.id, wrapped_text(error))

    async def _look_at(self, container_id: str) -> None:
        status = cri.ContainerStatusRequest(container_id=container_id)
        reply = await self._runtime.ContainerStatus(status, timeout=self._timeout)
        path = self._own(reply.status.log_path)
        if path is None:
            return
        if _size(path) < 0:
            # Somebody took it away: the runtime writes into a file that has no name any more.
            await self._reopen(container_id)
        elif _size(path) >= self._bytes_max:
            await self._rotate(container_id, path)

    def _own(self, told: str) -> Path | None:
        """The path, if it is that of a log and no link leads it elsewhere."""
        path = Path(told)
        if not told or path.is_symlink():
            return None
        inside = Path(os.path.realpath(path.parent)).is_relative_to(os.path.realpath(self._logs))
        return path if inside else None

    async def _rotate(self, container_id: str, path: Path) -> None:
        await asyncio.to_thread(_make_room, path, self._files_max)
        folder, log = path.parent, path.name
        moment = datetime.fromtimestamp(self._clock.wall_ns() / 1e9, UTC)
        aside = folder / f"{log}.{moment:%Y%m%d-%H%M%S}"
        _rename(path, aside)
        try:
            await self._reopen(container_id)
        except grpc.RpcError:
            # The runtime goes on writing there: it has to be the log again.
            _rename(aside, path)
            raise

    async def _reopen(self, container_id: str) -> None:
        request = cri.ReopenContainerLogRequest(container_id=container_id)
        await self._runtime.ReopenContainerLog(request, timeout=self._timeout)


def _make_room(log: Path, files_max: int) -> None:
    """Remove parts that are too many, or half packed, and pack the others."""
    names = [each.name for each in log.parent.iterdir()]
    parts = rotated_names(names, log.name)
    gone = excess(parts, files_max)
    for name in (
        *gone,
        *(each for each in names if each.startswith(f"{log.name}.") and each.endswith(_PART)),
    ):
        log.with_name(name).unlink(missing_ok=True)
    for name in parts[len(gone) :]:
        if not name.endswith(_PACKED):
            _pack(log.with_name(name))


def _pack(path: Path) -> None:
    """Pack a file, all at once for whoever looks."""
    part = path.with_name(f"{path.name}{_PART}")
    with path.open("rb") as plain, gzip.open(part, "wb") as packed:
        shutil.copyfileobj(plain, packed)
    part.rename(path.with_name(f"{path.name}{_PACKED}"))
    path.unlink()


def _size(path: Path) -> int:
    """In bytes; -1 where there is nothing."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return -1


def _rename(path: Path, new: Path) -> None:
    path.rename(new)
