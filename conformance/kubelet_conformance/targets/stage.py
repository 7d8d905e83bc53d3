"""What a pair of kubelet and runtime lets scenarios do: one life of a node at a time."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from kubelet_conformance.targets.controls import Target
from kubelet_conformance.trace.format.header import Header
from kubelet_conformance.trace.format.records import Record


class Stage(Protocol):
    """A pair of kubelet and runtime that scenarios can be played on."""

    def play(  # noqa: PLR0913 - a scenario, what it is called, and as what it is played
        self,
        scenario: Callable[[Target], Awaitable[None]],
        name: str,
        settings: Mapping[str, object],
        version: str,
        exempt: tuple[str, ...] = (),
        *,
        then: str = "",
    ) -> bytes:
        """Play one life of a node from the kubelet's start to its end, as that version; the trace of it.

        With `then` every second start is that of a kubelet of this version, unless another was chosen.

        An exception of the scenario passes through, as `ScenarioError` with the trace. `settings` are fields
        of the kubelet's configuration; `exempt` are contracts that it makes the runtime break.
        """
        ...


@dataclass(frozen=True, slots=True)
class Act:
    """One scenario to be played on wall time.

    Attributes:
        number: distinguishes it from all others of the run.
        name: the scenario's.
        scenario: the scenario, to be played on the target.
        settings: fields of the kubelet's configuration, for a node of its own.
        wait_seconds_max: the longest that one wait may take, in seconds.
        exempt: contracts that it makes the runtime break; it is then not played beside others.
    """

    number: int
    name: str
    scenario: Callable[[Target], Awaitable[None]]
    settings: Mapping[str, object]
    wait_seconds_max: float
    exempt: tuple[str, ...] = ()


Watch: TypeAlias = Callable[[Header, Callable[[int], str | None]], Callable[[Record], None]]
"""Makes a listener for the records of a life, given its header and what returns whose a record is, by seq."""


@dataclass(frozen=True, slots=True)
class Ended:
    """How an act ended: `error` if not well, `report` with its traceback, and the kubelet's `log` by then."""

    error: BaseException | None = None
    report: str = ""
    log: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PlayedLife:
    """One life of a node: its trace, whose each record is (by `Act.number`, or None), and how the acts ended.

    The first of `owners` is that of the record with seq 1. A kubelet that ends by itself ends the life:
    `died` says how, `died_seq` is the record of it, and `alive` are the acts that were being played; those
    not begun are not in `ended`. It `started` so many seconds after the epoch, at the 0 of its trace.
    """

    trace: bytes
    owners: Sequence[int | None]
    ended: Mapping[int, Ended]
    died: str = ""
    died_seq: int = 0
    alive: frozenset[int] = frozenset()
    started: float = 0.0
