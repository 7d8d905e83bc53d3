"""What the kubelet needs to know of its machine: what is left of memory and disk, and that it goes down."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Amount:
    """What is left of something, and what there is of it in all: bytes, inodes or processes."""

    available: int
    capacity: int


@dataclass(frozen=True, slots=True)
class PodUsage:
    """What a pod uses: `memory`, `ephemeral-storage`, `inodes` and `pids` as a whole, by name.

    `containers` are the bytes of ephemeral storage of each container, `volumes` those of each emptyDir.
    """

    amounts: Mapping[str, int] = field(default_factory=dict[str, int])
    containers: Mapping[str, int] = field(default_factory=dict[str, int])
    volumes: Mapping[str, int] = field(default_factory=dict[str, int])


class NodeStats(Protocol):
    """Reads the signals of the machine, and what its pods use; what cannot be read is left out."""

    async def read(self) -> Mapping[str, Amount]:
        """The signals by name, such as `memory.available`."""
        ...

    async def usage(self) -> Mapping[str, PodUsage]:
        """What each pod uses now, by UID."""
        ...


class ShutdownSignal(Protocol):
    """Tells of the shutdown of the machine, and holds it up."""

    async def announced(self) -> None:
        """Return when the machine is about to go down; at once if that was told before."""
        ...

    def let_go(self) -> None:
        """Nothing holds the shutdown up any more."""
        ...
