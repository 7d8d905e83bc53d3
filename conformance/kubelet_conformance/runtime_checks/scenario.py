"""What a runtime scenario is: a coroutine that calls a runtime, and the contracts that it exercises."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from kubelet_conformance.contract.catalogue import row
from kubelet_conformance.runtime_checks.runtime import Runtime
from kubelet_conformance.targets.runtime.runtime_target import Need

Body = Callable[[Runtime], Awaitable[None]]


TITLE_PREFIX = "runtime: "
"""The prefix of a runtime scenario's title, which distinguishes it from the scenarios on a node."""


@dataclass(frozen=True, slots=True)
class RuntimeScenario:
    """One runtime scenario.

    Attributes:
        name: that of its function.
        run: runs it on a runtime.
        contracts: the ids of the contracts that it exercises.
        needs: what the runtime must offer; otherwise the scenario is not possible.
        alone: it affects the whole runtime, so no other scenario may call it meanwhile.
    """

    name: str
    run: Body
    contracts: tuple[str, ...]
    needs: tuple[Need, ...] = ()
    alone: bool = False

    @property
    def title(self) -> str:
        """Its name, with a prefix that distinguishes it from scenarios on a node."""
        return f"{TITLE_PREFIX}{self.name}"


def runtime_scenario(
    *contracts: str, needs: tuple[Need, ...] = (), alone: bool = False
) -> Callable[[Body], RuntimeScenario]:
    """A runtime scenario that exercises these contracts; raises `UnknownContract` for an unknown id."""

    def make(body: Body) -> RuntimeScenario:
        ids = tuple(row(each).id for each in contracts)
        name: str = getattr(body, "__name__", "")
        return RuntimeScenario(name, body, ids, needs, alone)

    return make
