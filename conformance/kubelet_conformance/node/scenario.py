"""Declares the contracts that a scenario exercises, and what the scenario needs of its target."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeVar

from kubelet_conformance.contract.applicability import USUAL_VERSION, parse_version

F = TypeVar("F", bound="Callable[..., object]")
_ATTRIBUTE = "kubelet_conformance_scenario"


@dataclass(frozen=True, slots=True)
class Scenario:
    """What is declared of a scenario.

    Attributes:
        witnesses: the ids of the contracts that it exercises; it is judged by all contracts.
        kubernetes: the oldest version it is meant for, as (1, 29); None is any.
        until: the newest version it is meant for; None is any.
        then: the version of its kubelet after every second start, such as (1, 36); None is the same. Another
            that is chosen for a run takes its place.
        exempt: contracts of the runtime that the scenario makes it break; its trace names them, and is not
            judged by them.
        needs: what a real runtime does not have, and the scenario cannot do without.
        settings: fields of the kubelet's configuration that it needs set.
        undisturbed: why what it waits for and asserts is not due once a fault came at one of its calls; empty
            where it is.
    """

    witnesses: tuple[str, ...] = ()
    kubernetes: tuple[int, int] | None = None
    until: tuple[int, int] | None = None
    then: tuple[int, int] | None = None
    exempt: tuple[str, ...] = ()
    needs: str = ""
    settings: tuple[tuple[str, object], ...] = ()
    undisturbed: str = ""

    @property
    def then_kubernetes(self) -> str:
        """The version of `then`, such as "1.36", "" if there is none."""
        return "" if self.then is None else f"{self.then[0]}.{self.then[1]}"

    def is_meant_for(self, kubernetes: str) -> bool:
        """Whether it can be played as that version, such as "1.32"; `ValueError` for no version."""
        return self._clamp(kubernetes) == parse_version(kubernetes)

    def is_meant_for_both(self, then: str) -> bool:
        """Whether a kubelet of version `then` may take turns with one that it is meant for.

        One that names such a version itself is not about newer kubelets than its `until`.
        """
        return replace(self, until=None if self.then else self.until).is_meant_for(then)

    def nearest(self, kubernetes: str = USUAL_VERSION) -> str:
        """The version nearest to that one that it is meant for; `ValueError` for no version."""
        major, minor = self._clamp(kubernetes)
        return f"{major}.{minor}"

    def _clamp(self, kubernetes: str) -> tuple[int, int]:
        asked = parse_version(kubernetes)
        at_least = max(asked, self.kubernetes or asked)
        return min(at_least, self.until or at_least)


def witness(  # noqa: PLR0913 - one keyword for each thing that is declared
    *ids: str,
    kubernetes: tuple[int, int] | None = None,
    until: tuple[int, int] | None = None,
    then: tuple[int, int] | None = None,
    exempt: tuple[str, ...] = (),
    needs: str = "",
    undisturbed: str = "",
    **settings: object,
) -> Callable[[F], F]:
    """Declare the contracts that a scenario exercises; see `Scenario` for the other arguments."""

    def declared(function: F) -> F:
        scenario = Scenario(
            ids, kubernetes, until, then, exempt, needs, tuple(sorted(settings.items())), undisturbed
        )
        setattr(function, _ATTRIBUTE, scenario)
        return function

    return declared


def scenario_of(function: object) -> Scenario:
    """What was declared of a scenario; nothing, if nothing was."""
    found = getattr(function, _ATTRIBUTE, None)
    return found if isinstance(found, Scenario) else Scenario()
