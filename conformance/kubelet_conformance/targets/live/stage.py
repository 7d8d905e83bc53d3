"""The stage on wall time: opened once, played on by one node after another, closed without a trace."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import grpc.aio

from kubelet_conformance.targets.in_process import parts_of
from kubelet_conformance.targets.live import own_containerd, own_fake
from kubelet_conformance.targets.live.endpoint import connected, path_of
from kubelet_conformance.targets.live.life import Life, Surroundings
from kubelet_conformance.targets.live.residents import check_images, check_neighbours, remove_ours
from kubelet_conformance.targets.stage import TargetError, UnknownTargetError, kubelet_process
from kubelet_reference.parts import Parts
from kubelet_reference.versions import Behaviour

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Iterable, Sequence

    from kubelet_conformance.targets.live.endpoint import Endpoint
    from kubelet_conformance.targets.stage import Act, Choice, PlayedLife

__all__ = ("WallStage",)

_FAKE, _CONTAINERD = "fake", "containerd"
_CONTROLS = {_FAKE: own_fake.CONTROLS, _CONTAINERD: own_containerd.CONTROLS}


class WallStage:
    """Plays on the runtime at a socket, on a private containerd, or on fakes of its own; see `LiveStage`."""

    def __init__(self, choice: Choice) -> None:
        try:
            self._behaviour = Behaviour.of(choice.kubernetes)
        except ValueError as error:
            raise UnknownTargetError(str(error)) from None
        self._process = kubelet_process(choice)
        self._parts = parts_of(choice.kubelet) if self._process is None else Parts()
        if choice.runtime not in _CONTROLS:
            path_of(choice.runtime)
        self._choice = choice
        self._opened = AsyncExitStack()
        self._around: Surroundings | None = None
        self._runtime = choice.runtime

    @property
    def runtime(self) -> str:
        """The runtime's own name and version, once it is open."""
        return self._runtime

    @property
    def controls(self) -> frozenset[str]:
        """What can be done to the runtime beyond the CRI."""
        return _CONTROLS.get(self._choice.runtime, frozenset())

    async def open(self, images: Iterable[str]) -> None:
        """Connect, and see that scenarios with these images can be played; raises `TargetError`."""
        if self._choice.runtime == _FAKE:
            return
        private = None
        if self._choice.runtime == _CONTAINERD:
            private = await self._opened.enter_async_context(own_containerd.own_containerd())
        path = path_of(self._choice.runtime) if private is None else private.socket
        endpoint = await self._opened.enter_async_context(connected(path))
        try:
            if not self._choice.kill_foreign_pods:
                await check_neighbours(endpoint)
            if private is None:
                await check_images(endpoint, images)
        except grpc.aio.AioRpcError as error:
            raise TargetError(f"{path}: {error.code().name}: {error.details()}") from None
        self._runtime = f"{endpoint.name} {endpoint.version}"
        self._around = replace(self._surroundings(endpoint), private=private)
        await _sweep(self._around)

    def _surroundings(self, endpoint: Endpoint) -> Surroundings:
        return Surroundings(self._choice, self._behaviour, self._parts, endpoint, self._process)

    async def play(
        self,
        acts: Sequence[Act],
        *,
        shared: bool,
        concurrency: int = 1,
        ended: Callable[[Act], None] | None = None,
    ) -> PlayedLife:
        """Play one life of a node; see `LiveStage`."""
        async with _private_folder() as folder, self._runtime_of_a_life(folder) as around:
            life = Life(around, acts, folder, shared=shared)
            try:
                return await life.play(concurrency, ended or _nobody)
            finally:
                await _sweep(around)

    @asynccontextmanager
    async def _runtime_of_a_life(self, folder: Path) -> AsyncGenerator[Surroundings]:
        """The runtime: always the same, or for the fake a new one each time."""
        if self._around is not None:
            yield self._around
            return
        async with (
            own_fake.own_fake(folder / "fake" / "cri.sock") as fake,
            connected(fake.socket) as endpoint,
        ):
            yield replace(self._surroundings(endpoint), fake=fake)

    async def close(self) -> None:
        """Leave nothing behind."""
        await self._opened.aclose()


async def _sweep(around: Surroundings) -> None:
    """Remove what scenarios left at the runtime, whoever wants to end this run."""
    work = asyncio.ensure_future(_removed(around))
    try:
        await asyncio.shield(work)
    except asyncio.CancelledError:
        await work
        raise


async def _removed(around: Surroundings) -> None:
    try:
        left = await remove_ours(around.endpoint.services)
        if around.private is not None:
            await around.private.restore(around.endpoint.services)
    except grpc.aio.AioRpcError as error:
        left = [f"{error.code().name}: {error.details()}"]
    if left:
        raise TargetError(
            f"{around.endpoint.path}: what scenarios made cannot be removed: {'; '.join(left)}"
        )


@asynccontextmanager
async def _private_folder() -> AsyncGenerator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="kubelet-conformance-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _nobody(_: Act) -> None:
    """Nobody wants to hear."""
