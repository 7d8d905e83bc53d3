"""What a story is: a coroutine that calls a runtime, and the contracts that it puts to the test."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from kubelet_conformance.contract.catalogue import row
from kubelet_conformance.runtime_checks.runtime import Runtime
from kubelet_conformance.targets.runtime.runtime_target import Need

Tell = Callable[[Runtime], Awaitable[None]]


STORY = "runtime: "
"""What the title of a story begins with, where it stands beside names of scenarios."""


@dataclass(frozen=True, slots=True)
class Story:
    """One story.

    Attributes:
        name: that of its function.
        tell: tells it to a runtime.
        contracts: the ids of the contracts that it puts to the test.
        needs: what it cannot do without.
        alone: it touches the whole runtime, so that nobody else may call it meanwhile.
    """

    name: str
    tell: Tell
    contracts: tuple[str, ...]
    needs: tuple[Need, ...] = ()
    alone: bool = False

    @property
    def title(self) -> str:
        """Its name, told from those of scenarios."""
        return f"{STORY}{self.name}"


def story(*contracts: str, needs: tuple[Need, ...] = (), alone: bool = False) -> Callable[[Tell], Story]:
    """A story that puts these contracts to the test; raises `UnknownContract` for an id that is none."""

    def make(tell: Tell) -> Story:
        ids = tuple(row(each).id for each in contracts)
        name: str = getattr(tell, "__name__", "")
        return Story(name, tell, ids, needs, alone)

    return make
