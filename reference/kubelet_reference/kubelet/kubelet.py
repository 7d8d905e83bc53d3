"""One run of the kubelet: starts its components as tasks, and ends them all together."""

import asyncio
from typing import NoReturn

from kubelet_reference.kubelet.assembly import Assembly
from kubelet_reference.kubelet.parts import Parts
from kubelet_reference.util.ports import Ports
from kubelet_reference.util.settings import Settings
from kubelet_reference.util.versions import Behaviour


class _StopAskedError(Exception):
    """Raised in the task group, so that all tasks of the kubelet end."""


class Kubelet:
    """One run of a kubelet. Its end leaves containers as they are: the next run finds them running.

    Everything it does happens in tasks of `run`; whichever way that ends, no task is left. A mistake in one
    of them ends all, and is raised by `run` as an `ExceptionGroup`.
    """

    components: Assembly
    """What it is made of, once it runs."""

    def __init__(
        self,
        ports: Ports,
        settings: Settings,
        behaviour: Behaviour | None = None,
        parts: Parts | None = None,
    ) -> None:
        self._ports = ports
        self._settings = settings
        self._behaviour = behaviour or Behaviour.of()
        self._parts = parts or Parts()
        self._stop = asyncio.Event()
        self._ended = asyncio.Event()

    async def run(self) -> None:
        """Work until `stop` is called, or until cancelled, which is a crash."""
        try:
            async with asyncio.TaskGroup() as tasks:
                self.components = Assembly(
                    self._ports, self._settings, self._behaviour, self._parts, tasks.create_task
                )
                for service in self.components.services():
                    tasks.create_task(service)
                await self._end_on_request()
        except* _StopAskedError:
            pass
        finally:
            self._ended.set()

    async def _end_on_request(self) -> NoReturn:
        await self._stop.wait()
        raise _StopAskedError

    async def stop(self) -> None:
        """Ask the kubelet to end, and wait until it has; containers go on running."""
        self._stop.set()
        await self._ended.wait()

    def healthy(self) -> bool:
        """What /healthz says: the sync loop turns, and the PLEG relists (LOOP-19)."""
        if not hasattr(self, "components"):
            return False
        return self.components.loop.is_healthy() and self.components.pleg.healthy() is None

    def metrics_text(self) -> str:
        """What /metrics says."""
        return self.components.metrics.exposition().decode()
