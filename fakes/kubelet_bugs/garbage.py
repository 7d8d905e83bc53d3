"""Bugs of garbage collection: what is left for ever."""

from __future__ import annotations

from kubelet_bugs.bug import Bug
from kubelet_reference.garbage_collection import GarbageCollector
from kubelet_reference.parts import Parts
from kubelet_reference.runtime_side import RuntimeParts

__all__ = ("BUGS",)


class _KeepsTheDeleted(GarbageCollector):
    """Keeps of a deleted pod what it keeps of a living one."""

    def may_go_entirely(self, uid: str) -> bool:
        return not uid


class _KeepsSandboxes(GarbageCollector):
    """Does not remove sandboxes."""

    async def collect_sandboxes(self) -> None:
        """Remove nothing."""


BUGS: tuple[Bug, ...] = (
    Bug(
        "CTRD-7988",
        "The dead containers of a deleted pod stay, and its sandbox with them.",
        lambda: Parts(runtime=RuntimeParts(garbage_collector=_KeepsTheDeleted)),
        ("GC-02",),
        ("CTRD-12390",),
    ),
    Bug(
        "CTRD-10865",
        "Dead sandboxes are never removed.",
        lambda: Parts(runtime=RuntimeParts(garbage_collector=_KeepsSandboxes)),
        ("GC-02",),
    ),
)
