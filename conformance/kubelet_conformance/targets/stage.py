"""What a pair of kubelet and runtime lets scenarios do: one life of a node at a time."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from kubelet_conformance.targets.controls import Target


class Stage(Protocol):
    """A pair of kubelet and runtime that scenarios can be played on."""

    def play(
        self,
        scenario: Callable[[Target], Awaitable[None]],
        name: str,
        settings: Mapping[str, object],
        version: str,
    ) -> bytes:
        """Play one life of a node from the kubelet's start to its end, as that version; the trace of it.

        An exception of the scenario passes through, as `ScenarioError` with the trace. `settings` are fields
        of the kubelet's configuration.
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
    """

    number: int
    name: str
    scenario: Callable[[Target], Awaitable[None]]
    settings: Mapping[str, object]
    wait_seconds_max: float


@dataclass(frozen=True, slots=True)
class Ended:
    """How an act ended: `error` if not well, and `report` with its traceback."""

    error: BaseException | None = None
    report: str = ""


@dataclass(frozen=True, slots=True)
class PlayedLife:
    """One life of a node: its trace, whose each record is (by `Act.number`, or None), and how the acts ended.

    The first of `owners` is that of the record with seq 1.
    """

    trace: bytes
    owners: Sequence[int | None]
    ended: Mapping[int, Ended]


class LiveStage(Protocol):
    """A pair of kubelet and runtime on wall time. All of it is awaited on one loop."""

    @property
    def runtime(self) -> str:
        """The runtime's own name and version, once it is open."""
        ...

    @property
    def controls(self) -> frozenset[str]:
        """What `RuntimeControl` methods it has beyond those that every real runtime can be made to do."""
        ...

    @property
    def baselines(self) -> Sequence[str]:
        """Files of what this kubelet and this runtime are known to do otherwise, once it is open."""
        ...

    async def look(self) -> None:
        """See that the runtime is there, where it has to be by itself; raises `TargetError`."""
        ...

    async def open(self, images: Iterable[str]) -> None:
        """Connect and see that the scenarios can be played, which use these images; raises `TargetError`."""
        ...

    async def play(
        self,
        acts: Sequence[Act],
        *,
        shared: bool,
        concurrency: int = 1,
        ended: Callable[[Act], None] | None = None,
    ) -> PlayedLife:
        """Play one life of a node: acts that share it, at most `concurrency` in parallel, or one alone.

        What acts that share a node leave behind on it is deleted after each; one alone has its own settings.

        Calls `ended` with each act that is over. Raises `TargetError` if the runtime can no longer be used.
        """
        ...

    async def close(self) -> None:
        """Leave nothing behind; again is fine."""
        ...
