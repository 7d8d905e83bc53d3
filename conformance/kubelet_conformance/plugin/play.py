"""Play one scenario and judge its trace."""

from __future__ import annotations

import base64
import pickle
from typing import TYPE_CHECKING

from kubelet_conformance.contract.checking import judge_file
from kubelet_conformance.node import Node, WaitTimeoutError, scenario_of
from kubelet_conformance.reports.played import Played
from kubelet_conformance.targets.protocols import StoryError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable
    from pathlib import Path

    from kubelet_conformance.contract.frame import Contract
    from kubelet_conformance.targets.protocols import Target
    from kubelet_conformance.targets.stage import Stage

__all__ = ("packed", "play", "unpacked")


def play(
    story: Callable[..., Awaitable[None]], name: str, stage: Stage, contracts: Iterable[Contract], path: Path
) -> Played:
    """Play a scenario, write its trace to `path`, and judge it by `contracts`."""

    async def on(target: Target) -> None:
        await story(node=Node(target))

    vain = failed = ""
    try:
        trace = stage.play(on, name, dict(scenario_of(story).settings))
    except StoryError as error:
        trace = error.trace
        cause = error.__cause__
        if isinstance(cause, WaitTimeoutError):
            vain = str(cause)
        elif isinstance(cause, AssertionError):
            vain = f"expected otherwise: {cause}"
        else:
            failed = error.told
    path.write_bytes(trace)
    return Played(name, judge_file(str(path), contracts), vain, failed)


def packed(played: Played) -> str:
    """As text, which crosses from a worker's process to the controller's."""
    return base64.b64encode(pickle.dumps(played)).decode()


def unpacked(text: str) -> Played:
    """What `packed` made."""
    played = pickle.loads(base64.b64decode(text))  # noqa: S301 - made by a worker of this very run
    if not isinstance(played, Played):
        raise TypeError(f"expected what became of a scenario, got {type(played).__name__}")
    return played
