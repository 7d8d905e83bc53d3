"""Whether the runtime can be used: by its Status call, and by the PLEG (LOOP-03 to LOOP-05)."""

import contextlib
import logging
from collections.abc import Callable
from dataclasses import dataclass

import grpc
from cri_api.v1 import api_pb2 as cri

from kubelet_reference.cri.checks import NETWORK_READY, RUNTIME_READY
from kubelet_reference.cri.client import CriClient
from kubelet_reference.cri.errors import wrapped_text
from kubelet_reference.util.ports import Clock
from kubelet_reference.util.versions import Behaviour

_log = logging.getLogger("kubelet_reference.runtime_state")

POLL_SECONDS = 5.0
FIRST_POLL_SECONDS = 0.1
"""Between polls until the runtime is ready for the first time."""
DOWN_AFTER_SECONDS = 30.0
"""So long after the last good Status the runtime counts as down."""


@dataclass(eq=False)
class RuntimeState:
    """Polls the runtime's Status, and lists the errors that stop all syncs.

    `health` says what is wrong with the PLEG, None if nothing is.
    """

    runtime: CriClient
    clock: Clock
    behaviour: Behaviour
    health: Callable[[], str | None]

    def __post_init__(self) -> None:
        self._good_at: float | None = None
        self._problem: str | None = "container runtime status check may not have completed yet"
        self._network: str | None = "network state unknown"
        self._name = ""

    async def run(self) -> None:
        """Poll the runtime until cancelled."""
        while True:
            await self.poll()
            await self.clock.sleep(FIRST_POLL_SECONDS if self._good_at is None else POLL_SECONDS)

    async def introduce(self) -> None:
        """Ask the runtime for its name; raises what the runtime answers instead."""
        self._name = (await self.runtime.version()).runtime_name
        if self.behaviour.asks_runtime_config:
            await self.ask_config()

    async def ask_config(self) -> None:
        """Ask for the runtime's own settings, of which none is used here; it need not answer (CRI-42)."""
        with contextlib.suppress(grpc.RpcError):
            await self.runtime.runtime_config()

    @property
    def runtime_name(self) -> str:
        """What the runtime calls itself, "" before it was asked."""
        return self._name

    async def poll(self) -> None:
        """Ask the runtime once, at first for its name; no answer leaves what was known, which grows old."""
        try:
            if not self._name:
                await self.introduce()
            status = await self.runtime.status()
        except grpc.RpcError as error:
            _log.warning("the runtime does not report its status: %s", wrapped_text(error))
            return
        self._network = _unless_true(status, NETWORK_READY, "container runtime network not ready")
        self._problem = _unless_true(status, RUNTIME_READY, "container runtime not ready")
        if self._problem is None:
            self._good_at = self.clock.monotonic()

    def errors(self) -> list[str]:
        """Why nothing may be done to any pod now; empty if the runtime is fit."""
        found: list[str] = []
        if self._good_at is not None and self.clock.monotonic() - self._good_at > DOWN_AFTER_SECONDS:
            found.append("container runtime is down")
        if self._problem is not None:
            found.append(self._problem)
        health = self.health()
        if health is not None:
            found.append(f"PLEG is not healthy: {health}")
        return found

    def network_error(self) -> str | None:
        """Why pods get no network, None if they do; a matter of those pods alone (LOOP-04)."""
        return self._network


def _unless_true(status: cri.RuntimeStatus, wanted: str, problem: str) -> str | None:
    """The problem with what the condition says of it, None if the condition is true."""
    found = next((one for one in status.conditions if one.type == wanted), cri.RuntimeCondition())
    return None if found.status else f"{problem}: {found.reason} {found.message}".rstrip()
