"""The one door to kubelets and runtimes, opened by name."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from kubelet_conformance.contract.versions import USUAL_VERSION
from kubelet_conformance.targets.choice import Choice
from kubelet_conformance.targets.process import KubeletTarget, read_target, reference_process
from kubelet_conformance.targets.stage import LiveStage, Stage


def kubelet_process(choice: Choice) -> KubeletTarget | None:
    """The kubelet of a choice where it is a process of its own, None for one in this process.

    Raises:
        UnknownTargetError: The target file cannot be used.
    """
    if not choice.is_process:
        return None
    return (
        read_target(Path(choice.kubelet)) if choice.has_target_file else reference_process(choice.kubernetes)
    )


def resolved(choice: Choice) -> Choice:
    """The choice with the version that it leaves open: a target file tells one, a node of many pods has one.

    Raises `UnknownTargetError`.
    """
    if not choice.has_target_file:
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
