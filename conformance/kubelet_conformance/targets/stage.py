"""Where scenarios are played: the one door to kubelets and runtimes, opened by name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from kubelet_conformance.targets.protocols import Target

__all__ = ("Choice", "Stage", "UnknownTargetError", "open_stage")


class UnknownTargetError(LookupError):
    """No kubelet, runtime or version of that name can be chosen; the message says which can."""


@dataclass(frozen=True, slots=True)
class Choice:
    """What a user chose.

    Attributes:
        kubelet: `reference` or `bug:ID`.
        runtime: `fake`.
        kubernetes: the version whose behaviour is wanted, such as "1.32".
        seed: of every choice that chance makes.
    """

    kubelet: str = "reference"
    runtime: str = "fake"
    kubernetes: str = "1.32"
    seed: int = 0


class Stage(Protocol):
    """A pair of kubelet and runtime that scenarios can be played on."""

    def play(
        self, story: Callable[[Target], Awaitable[None]], name: str, settings: Mapping[str, object]
    ) -> bytes:
        """Play one life of a node from the kubelet's start to its end; the trace of it.

        An exception of the story passes through, as `StoryError` with the trace. `settings` are fields of the
        kubelet's configuration.
        """
        ...


def open_stage(choice: Choice) -> Stage:
    """The stage for a choice; raises `UnknownTargetError`."""
    # Late: judging and listing need neither a kubelet nor a runtime.
    from kubelet_conformance.targets.in_process import InProcessStage  # noqa: PLC0415

    return InProcessStage(choice)
