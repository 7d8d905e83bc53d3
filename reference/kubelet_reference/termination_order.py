"""The order in which the containers of a pod end: sidecars outlive the app containers (SIDECAR-12).

Each sidecar waits for its turn: for every app container, and for the sidecar after it. What does not run when
the pod is killed holds up nobody (SIDECAR-16). Regular init containers wait for nothing and hold up nobody.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from contextlib import suppress

from lightkube.models.core_v1 import Pod

from kubelet_reference import pods


class TerminationOrder:
    """Who waits for whom in one kill of a pod; `running` names the containers that run when it begins."""

    def __init__(self, pod: Pod, running: Iterable[str]) -> None:
        self._ended = {name: asyncio.Event() for name in running}
        self._ahead = self.ahead(pod)

    def ahead(self, pod: Pod) -> dict[str, list[str]]:
        """For each sidecar the containers that have to end before it."""
        apps, names = [one.name for one in pods.containers(pod)], [one.name for one in pods.sidecars(pod)]
        return {name: [*apps, *names[index + 1 : index + 2]] for index, name in enumerate(names)}

    async def wait_for_turn(self, name: str, seconds: float) -> None:
        """Wait until all that come before this container have ended, `seconds` at most (SIDECAR-14)."""
        waits = [self._ended[one] for one in self._ahead.get(name, ()) if one in self._ended]
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                for one in waits:
                    await one.wait()

    def ended(self, name: str) -> None:
        """The container has ended: whoever waits for it may go on."""
        if name in self._ended:
            self._ended[name].set()
