"""The one door to kubelets and runtimes, opened by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kubelet_conformance.targets.choice import Choice
from kubelet_conformance.targets.stage import Stage

if TYPE_CHECKING:
    # Late: judging and listing need neither a kubelet nor a runtime.
    from kubelet_conformance.targets.live.stage import WallStage


def open_live_stage(choice: Choice) -> WallStage:
    """The stage for a choice that is played on wall time; raises `UnknownTargetError`."""
    # Late: judging and listing need neither a kubelet nor a runtime.
    from kubelet_conformance.targets.live.stage import WallStage  # noqa: PLC0415

    return WallStage(choice)


def open_stage(choice: Choice) -> Stage:
    """The stage for a choice; raises `UnknownTargetError`."""
    # Late: judging and listing need neither a kubelet nor a runtime.
    from kubelet_conformance.targets.in_process.stage import InProcessStage  # noqa: PLC0415

    return InProcessStage(choice)
