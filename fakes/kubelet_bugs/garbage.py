"""Bugs of garbage collection: what is left for ever."""

from __future__ import annotations

from kubelet_bugs.bug import Bug
from kubelet_reference.garbage_collection import GarbageCollector
from kubelet_reference.parts import Parts
from kubelet_reference.runtime_side import RuntimeParts

__all__ = ("BUGS",)


class _KeepsSandboxes(GarbageCollector):
    """Does not remove sandboxes."""

    async def collect_sandboxes(self) -> None:
        """Remove nothing."""


BUGS: tuple[Bug, ...] = (
    Bug(
        "CTRD-10865",
        "Dead sandboxes are never removed.",
        lambda: Parts(runtime=RuntimeParts(garbage_collector=_KeepsSandboxes)),
        ("GC-05",),
    ),
)
