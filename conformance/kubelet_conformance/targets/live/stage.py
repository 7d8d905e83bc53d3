"""The stage on wall time: opened once, played on by one node after another, closed without a trace."""

from __future__ import annotations

import asyncio
import tempfile
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import grpc.aio

from kubelet_conformance.targets.in_process import parts_of
from kubelet_conformance.targets.live.endpoint import connected, path_of
from kubelet_conformance.targets.live.life import Life, Surroundings
from kubelet_conformance.targets.live.own_containerd import CONTROLS, own_containerd
from kubelet_conformance.targets.live.residents import check_images, check_neighbours, remove_ours
from kubelet_conformance.targets.process.clearing import clear
from kubelet_conformance.targets.stage import TargetError, UnknownTargetError
from kubelet_reference.versions import Behaviour

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Iterable, Sequence

    from kubelet_conformance.targets.stage import Act, Choice, PlayedLife

__all__ = ("WallStage",)

_PRIVATE = "containerd"
"""The name of a runtime of our own, started for the run."""


class WallStage:
    """Plays on the runtime at a socket; see `LiveStage`."""

    def __init__(self, choice: Choice) -> None:
        try:
            self._behaviour = Behaviour.of(choice.kubernetes)
        except ValueError as error:
            raise UnknownTargetError(str(error)) from None
        self._parts = parts_of(choice.kubelet)
        self._path = None if choice.runtime == _PRIVATE else path_of(choice.runtime)
        self._choice = choice
        self._opened = AsyncExitStack()
        self._around: Surroundings | None = None

    @property
    def runtime(self) -> str:
        """The runtime's own name and version, once it is open."""
        endpoint = self._surroundings().endpoint
        return f"{endpoint.name} {endpoint.version}"

    async def open(self, images: Iterable[str]) -> None:
        """Connect, and see that scenarios with these images can be played; raises `TargetError`."""
        private = None
        path = self._path
        if path is None:
            private = await self._opened.enter_async_context(own_containerd())
            path = private.socket
        endpoint = await self._opened.enter_async_context(connected(path))
        try:
            if not self._choice.kill_foreign_pods:
                await check_neighbours(endpoint)
            if private is None:
                await check_images(endpoint, images)
        except grpc.aio.AioRpcError as error:
            raise TargetError(f"{path}: {error.code().name}: {error.details()}") from None
        self._around = Surroundings(self._choice, self._behaviour, self._parts, endpoint, private)
        await self._sweep()

    @property
    def controls(self) -> frozenset[str]:
        """What can be done to the runtime beyond the CRI."""
        return frozenset() if self._path is not None else CONTROLS

    async def play(
        self,
        acts: Sequence[Act],
        *,
        shared: bool,
        concurrency: int = 1,
        ended: Callable[[Act], None] | None = None,
    ) -> PlayedLife:
        """Play one life of a node; see `LiveStage`."""
        async with self._private_folder() as folder:
            life = Life(self._surroundings(), acts, folder, shared=shared)
            try:
                return await life.play(concurrency, ended or _nobody)
            finally:
                await asyncio.shield(self._sweep())

    async def _sweep(self) -> None:
        """Remove what scenarios left at the runtime."""
        around = self._surroundings()
        try:
            left = await remove_ours(around.endpoint.services)
            if around.private is not None:
                await around.private.restore(around.endpoint.services)
        except grpc.aio.AioRpcError as error:
            left = [f"{error.code().name}: {error.details()}"]
        if left:
            raise TargetError(f"{around.endpoint.path}: what scenarios made cannot be removed: {'; '.join(left)}")

    @asynccontextmanager
    async def _private_folder(self) -> AsyncGenerator[Path]:
        folder = Path(tempfile.mkdtemp(prefix="kubelet-conformance-"))
        try:
            yield folder
        finally:
            # A kubelet that was killed leaves volumes mounted, and what they show is not ours to remove.
            left = clear(folder)
            if left:
                raise TargetError("; ".join(left))
            folder.rmdir()

    def _surroundings(self) -> Surroundings:
        if self._around is None:
            raise RuntimeError("the stage is not open")
        return self._around

    async def close(self) -> None:
        """Leave nothing behind."""
        await self._opened.aclose()


def _nobody(_: Act) -> None:
    """Nobody wants to hear."""
