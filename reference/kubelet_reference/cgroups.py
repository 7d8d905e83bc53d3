"""The cgroups of pods, one for each: made before anything of the pod runs, removed when all of it is gone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class Cgroups(Protocol):
    """The kernel's cgroups below the kubelet's own, by the UIDs of pods; errors are `OSError`."""

    def uids(self) -> Sequence[str]:
        """The pods that have one."""
        ...

    def exists(self, uid: str) -> bool:
        """Whether the pod has one."""
        ...

    def make(self, uid: str) -> None:
        """Make the pod's; one that is there is fine."""
        ...

    def remove(self, uid: str) -> None:
        """Remove the pod's, and end what still runs in it; one that is gone is fine."""
        ...

    def reduce(self, uid: str) -> None:
        """Leave the pod's as little CPU as there is."""
        ...
