"""Where scenarios are played: the one door to kubelets and runtimes, opened by name."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from kubelet_conformance.contract.versions import USUAL_VERSION

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence

    from kubelet_conformance.targets.process import KubeletTarget
    from kubelet_conformance.targets.protocols import Target

__all__ = (
    "Act",
    "Choice",
    "Ended",
    "LiveStage",
    "PlayedLife",
    "Stage",
    "TargetError",
    "UnknownTargetError",
    "kubelet_process",
    "open_live_stage",
    "open_stage",
    "resolved",
)


_PROCESS = "reference-process"
_TARGET_FILE = ".toml"


class TargetError(Exception):
    """The target cannot be played on; the message says why and what to do."""


class UnknownTargetError(LookupError):
    """No kubelet, runtime or version of that name can be chosen; the message says which can."""


@dataclass(frozen=True, slots=True)
class Choice:
    """What a user chose.

    Attributes:
        kubelet: `reference` or `bug:ID`; `reference-process` or a target file for one in its own process.
        runtime: `fake`; `containerd` for a private one; `unix:///PATH` for the one at that socket.
        kubernetes: the version whose behaviour is wanted, such as "1.32"; where it is left open each scenario
            is played as one that it is meant for.
        seed: of every choice that chance makes.
        kill_foreign_pods: play on a runtime that has pods of others too, which the kubelet will kill.
    """

    kubelet: str = "reference"
    runtime: str = "fake"
    kubernetes: str = ""
    seed: int = 0
    kill_foreign_pods: bool = False

    @property
    def is_live(self) -> bool:
        """It is played on wall time, all scenarios that can share a node side by side."""
        in_process = self.runtime == "fake" or self.runtime.startswith("bug:")
        return not in_process or self.kubelet == _PROCESS or self.kubelet.endswith(_TARGET_FILE)


class Stage(Protocol):
    """A pair of kubelet and runtime that scenarios can be played on."""

    def play(
        self,
        story: Callable[[Target], Awaitable[None]],
        name: str,
        settings: Mapping[str, object],
        version: str,
    ) -> bytes:
        """Play one life of a node from the kubelet's start to its end, as that version; the trace of it.

        An exception of the story passes through, as `StoryError` with the trace. `settings` are fields of the
        kubelet's configuration.
        """
        ...


@dataclass(frozen=True, slots=True)
class Act:
    """One scenario to be played on wall time.

    Attributes:
        number: tells it from all others of the run.
        name: the scenario's.
        story: what is played on the target.
        settings: fields of the kubelet's configuration, for a node of its own.
        patience: the longest that one wait may take, in seconds.
    """

    number: int
    name: str
    story: Callable[[Target], Awaitable[None]]
    settings: Mapping[str, object]
    patience: float


@dataclass(frozen=True, slots=True)
class Ended:
    """How the story of an act ended: `error` if not well, and `told` with where it came from."""

    error: BaseException | None = None
    told: str = ""


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
        """Play one life of a node: acts that share it, `concurrency` at a time, or one alone.

        What acts that share a node leave behind on it is deleted after each; one alone has its own settings.

        `ended` hears of each act that is over. Raises `TargetError` if the runtime can no longer be used.
        """
        ...

    async def close(self) -> None:
        """Leave nothing behind; again is fine."""
        ...


def kubelet_process(choice: Choice) -> KubeletTarget | None:
    """The kubelet of a choice where it is a process of its own, None for one in this process.

    Raises:
        UnknownTargetError: The target file cannot be used.
    """
    if not (choice.kubelet == _PROCESS or choice.kubelet.endswith(_TARGET_FILE)):
        return None
    from kubelet_conformance.targets.process import read_target, reference_process  # noqa: PLC0415 - see below

    return (
        reference_process(choice.kubernetes)
        if choice.kubelet == _PROCESS
        else read_target(Path(choice.kubelet))
    )


def resolved(choice: Choice) -> Choice:
    """The choice with the version that it leaves open: a target file tells one, a node of many pods has one.

    Raises `UnknownTargetError`.
    """
    if not choice.kubelet.endswith(_TARGET_FILE):
        is_open = choice.is_live and not choice.kubernetes
        return replace(choice, kubernetes=USUAL_VERSION) if is_open else choice
    target = kubelet_process(choice)
    return choice if target is None else replace(choice, kubernetes=target.kubernetes)


def open_live_stage(choice: Choice) -> LiveStage:
    """The stage for a choice that is played on wall time; raises `UnknownTargetError`."""
    # Late: judging and listing need neither a kubelet nor a runtime.
    from kubelet_conformance.targets.live.stage import WallStage  # noqa: PLC0415

    return WallStage(choice)


def open_stage(choice: Choice) -> Stage:
    """The stage for a choice; raises `UnknownTargetError`."""
    # Late: judging and listing need neither a kubelet nor a runtime.
    from kubelet_conformance.targets.in_process import InProcessStage  # noqa: PLC0415

    return InProcessStage(choice)
