"""The fake runtime, called directly."""

from collections.abc import Callable
from pathlib import PurePosixPath
from typing import Any

from kubelet_conformance.targets.runtime.commands import FakeCommands
from kubelet_conformance.targets.runtime.runtime_target import DirectRuntime
from kubelet_fakes.clock import LoopClock
from kubelet_fakes.disk import MemoryDisk
from kubelet_fakes.runtime import RuntimeCore, RuntimeSettings
from kubelet_fakes.runtime.service import RuntimeParts

_EPOCH_NS = 1_767_225_600_000_000_000
_IMAGE = "img:1"
_REPOSITORY = "registry.example/two"


class FakeNode:
    """A fake and all that belongs to it; it lives on the loop that runs."""

    def __init__(self, parts: RuntimeParts, start_ns: int = _EPOCH_NS) -> None:
        self.clock = LoopClock(start_ns)
        settings = RuntimeSettings(evented=True, images=(_IMAGE,))
        self.runtime = parts.build(self.clock, settings, epoch_ns=start_ns)
        self.core = self.runtime.core
        self.disk = MemoryDisk()
        self.core.store.logs.files = self.disk
        self.listeners: list[Callable[..., None]] = []
        self.core.store.on_runtime = self._record_event

    def _record_event(self, *event: str | int | None) -> None:
        for listener in self.listeners:
            listener(*event)

    def direct(self, services: Any = None, *, shared: bool = False) -> DirectRuntime:  # noqa: ANN401 - a stub
        """The fake as runtime scenarios call it: in process, unless through these services."""
        return DirectRuntime(
            services=services or self.runtime,
            name=self.core.settings.name,
            version=self.core.settings.version,
            image=_IMAGE,
            commands=FakeCommands(),
            files=_MemoryLogs(self.disk),
            registry=_FakeRegistry(self.core),
            now=self.clock.monotonic,
            sleep=self.clock.sleep,
            starve=self.runtime.oom,
            shared=shared,
            lacks={},
            state_loss=self.runtime,
            restart=self._restart,
            slow=self.runtime.faults.delay,
            listen=self.listeners.append,
        )

    async def _restart(self) -> None:
        self.runtime.restart()


class _MemoryLogs:
    """Logs on a disk that is only memory."""

    folder = "/var/log/pods"

    def __init__(self, disk: MemoryDisk) -> None:
        self._disk = disk

    def read(self, path: str) -> str | None:
        """What a file holds."""
        try:
            return self._disk.read(path).decode()
        except (FileNotFoundError, NotADirectoryError):
            return None

    def move(self, path: str, to: str) -> None:
        """Rename a file."""
        content = self._disk.read(path)
        self._disk.make_folder(str(PurePosixPath(to).parent))
        self._disk.write(to, content)
        self._disk.remove(path)


class _FakeRegistry:
    """The fake's own registry, and an image with two tags."""

    absent = "registry.example/absent:1"
    was_asked = True

    def __init__(self, core: RuntimeCore) -> None:
        self._images = core.images
        self._images.publish(self.absent, there=False)

    async def names(self) -> tuple[str, str]:
        """Two tags of one image; the fake's registry gives every tag an image of its own, so it is here."""
        first, second = f"{_REPOSITORY}:a", f"{_REPOSITORY}:b"
        self._images.add(second, image=self._images.add(first).id)
        return first, second

    def set_away(self, *, away: bool) -> None:
        """Whether the registry answers."""
        self._images.registry_up = not away
