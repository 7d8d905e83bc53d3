"""Kubelets that call the runtime in another order than it may count on, or leave a call out."""

from __future__ import annotations

from dataclasses import replace

from kubelet_bugs.bug import Bug
from kubelet_reference.cri_client import CriClient
from kubelet_reference.parts import Parts
from kubelet_reference.runtime_state import RuntimeState


class _RemovesAtOnce(CriClient):
    """Removes a sandbox instead of stopping it: a removal stops it too."""

    async def stop_sandbox(self, sandbox_id: str) -> None:
        await self.remove_sandbox(sandbox_id)


class _AsksForNoConfig(RuntimeState):
    """Goes by its own settings, and asks for none of the runtime's."""

    async def ask_config(self) -> None:
        """Ask for nothing."""


BUGS = (
    Bug(
        id="MUT-CRI-41",
        title="A sandbox is removed without having been stopped.",
        parts=lambda: replace(Parts(), cri_client=_RemovesAtOnce),
        breaks=("CRI-41",),
    ),
    Bug(
        id="MUT-CRI-42",
        title="The runtime is never asked how it is configured.",
        parts=lambda: replace(Parts(), runtime_state=_AsksForNoConfig),
        breaks=("CRI-42",),
    ),
)
