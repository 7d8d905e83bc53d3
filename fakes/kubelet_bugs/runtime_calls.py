"""Kubelets that call the runtime in another order than it may count on, or leave a call out."""

from __future__ import annotations

from kubelet_bugs.bug import bug
from kubelet_reference.cri_client import CriClient
from kubelet_reference.runtime_state import RuntimeState


@bug("MUT-CRI-41", breaks="CRI-41")
class RemovesAtOnce(CriClient):
    """A sandbox is removed without having been stopped."""

    async def stop_sandbox(self, sandbox_id: str) -> None:
        await self.remove_sandbox(sandbox_id)


@bug("MUT-CRI-42", breaks="CRI-42")
class AsksForNoConfig(RuntimeState):
    """The runtime is never asked how it is configured."""

    async def ask_config(self) -> None:
        """Ask for nothing."""
