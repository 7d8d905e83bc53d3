"""A kubelet in a process beside a fake runtime, and what is recorded of it."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from kubelet_command import Machine, on_machine

from kubelet_conformance.targets.kubelet_target.target import KubeletTarget
from kubelet_conformance.targets.process.node import ProcessNode
from kubelet_conformance.trace.format.recorder import Item, Recorder

Json = dict[str, Any]


class Bench:
    """A record, and a wait for what comes onto it."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.folder = machine.folder / "node"
        self.folder.mkdir()
        self.recorder = Recorder(machine.clock.monotonic)
        self._received = asyncio.Event()
        self.recorder.listeners.append(lambda _: self._received.set())

    def node(self, target: KubeletTarget, **settings: object) -> ProcessNode:
        """A node in a folder of its own."""
        return ProcessNode(target, self.folder, self.machine.socket, self.recorder, "node-1", settings)

    def items(self, kind: str) -> list[Json]:
        """The records of a kind."""
        return [each.fields for each in self.recorder.records if isinstance(each, Item) and each.kind == kind]

    async def until(self, holds: Callable[[], bool]) -> None:
        """Wait until something recorded makes this true."""
        async with asyncio.timeout(40):
            while not holds():
                self._received.clear()
                await self._received.wait()

    def phases(self) -> list[str]:
        """The phases that were seen, in order."""
        return [each["status"].get("phase", "") for each in self.items("status")]


@asynccontextmanager
async def bench_in(folder: Path) -> AsyncGenerator[Bench]:
    """A bench with a runtime of its own."""
    async with on_machine(folder) as machine:
        yield Bench(machine)
