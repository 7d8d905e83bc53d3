"""What a runtime scenario is: a coroutine that calls a runtime, and the contracts that it exercises."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from kubelet_conformance.contract.catalogue import row
from kubelet_conformance.runtime_checks.runtime import Runtime
from kubelet_conformance.targets.runtime.runtime_target import Need

Tell = Callable[[Runtime], Awaitable[None]]


STORY = "runtime: "
"""The prefix of a runtime scenario's title, which tells it apart from the scenarios on a node."""


@dataclass(frozen=True, slots=True)
class Story:
    """One runtime scenario.

    Attributes:
        name: that of its function.
        tell: plays it on a runtime.
        contracts: the ids of the contracts that it exercises.
        needs: what the runtime must offer; otherwise the scenario is not possible.
        alone: it affects the whole runtime, so no other scenario may call it meanwhile.
    """

    name: str
    tell: Tell
    contracts: tuple[str, ...]
    needs: tuple[Need, ...] = ()
    alone: bool = False

    @property
    def title(self) -> str:
        """Its name, with a prefix that distinguishes it from scenarios on a node."""
        return f"{STORY}{self.name}"


def story(*contracts: str, needs: tuple[Need, ...] = (), alone: bool = False) -> Callable[[Tell], Story]:
    """A runtime scenario that exercises these contracts; raises `UnknownContract` for an unknown id."""

    def make(tell: Tell) -> Story:
        ids = tuple(row(each).id for each in contracts)
        name: str = getattr(tell, "__name__", "")
        return Story(name, tell, ids, needs, alone)

    return make
