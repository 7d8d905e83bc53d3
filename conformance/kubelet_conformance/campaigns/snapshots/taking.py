"""Play a scenario and write down what the kubelet did."""

import inspect
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from kubelet_conformance.campaigns.comparison.sides import play_live
from kubelet_conformance.node import Node, WaitTimeoutError, scenario_of
from kubelet_conformance.reports.trace_text.behaviour import behaviour, in_scenes
from kubelet_conformance.reports.trace_text.steps import Step
from kubelet_conformance.run_record.temporary_folder import TemporaryFolder
from kubelet_conformance.scenarios import every_scenario
from kubelet_conformance.targets.choice import Choice
from kubelet_conformance.targets.controls import ScenarioError, Target
from kubelet_conformance.targets.opening import open_stage
from kubelet_conformance.trace.format.errors import TraceError


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The result of a scenario.

    Attributes:
        scenario: its name, such as `sandbox.killed_sandbox_is_replaced`.
        text: what it is about, on which target it was played, and what the kubelet did.
        incomplete: it did not run to its end: a wait timed out, or it failed.
    """

    scenario: str
    text: str
    incomplete: bool = False

    @property
    def file(self) -> PurePosixPath:
        """The file for it: a folder an area, a file a scenario."""
        area, _, name = self.scenario.partition(".")
        return PurePosixPath(area, f"{name}.txt")


def scenarios_for(kubernetes: str) -> tuple[str, ...]:
    """The names of the scenarios that are meant for that version, such as "1.32"; empty is for all."""
    every = {name: scenario_of(function) for name, function in every_scenario().items()}
    return tuple(name for name, each in every.items() if not kubernetes or each.is_meant_for(kubernetes))


def take(scenario: str, choice: Choice) -> Snapshot:
    """Play the scenario of that name once; the same choice gives the same snapshot, byte for byte.

    Raises UnknownTargetError for a target that cannot be chosen, KeyError for an unknown scenario.
    """
    function = every_scenario()[scenario]
    declared = scenario_of(function)
    choice = replace(choice, kubernetes=choice.kubernetes or declared.nearest())

    async def on(target: Target) -> None:
        await function(node=Node(target))

    reason = ""
    try:
        stage, then = open_stage(choice), declared.then_kubernetes
        trace = stage.play(on, scenario, dict(declared.settings), choice.kubernetes, then=then)
    except ScenarioError as error:
        trace, reason = error.trace, _why(error)
    return written(scenario, choice, trace, reason)


def written(scenario: str, choice: Choice, trace: bytes, reason: str = "") -> Snapshot:
    """What a trace of the scenario shows; `choice` names its version, `reason` says why it did not end."""
    return _written(scenario, _target(choice), _seen(trace), reason)


def take_live(scenarios: Iterable[str], choice: Choice) -> Iterator[Snapshot]:
    """What a kubelet in its own process did in those of the scenarios that it can play.

    Raises TargetError for one that cannot be played on.
    """
    with TemporaryFolder() as folder:
        for name, life in play_live(choice, scenarios, Path(folder)).items():
            target = replace(choice, kubernetes=life.kubernetes)
            timed_out = [each.whom for each in life.steps if each.what == "awaited" and each.detail != "came"]
            seen = in_scenes([*life.steps, Step(life.ends, "end", "")])
            yield _written(name, _target(target), seen, f"timed out: {timed_out[0]}" if timed_out else "")


def _written(scenario: str, target: str, seen: str, reason: str) -> Snapshot:
    head = filter(None, (scenario, inspect.getdoc(every_scenario()[scenario]), target))
    parts = ["\n".join(head), seen]
    if reason:
        parts.append(f"The scenario did not come to its end: {reason}")
    return Snapshot(scenario, "\n\n".join(part.rstrip() for part in parts) + "\n", bool(reason))


def _target(choice: Choice) -> str:
    return f"Kubelet {choice.kubelet} on runtime {choice.runtime}, Kubernetes {choice.kubernetes}."


def _why(error: ScenarioError) -> str:
    cause = error.__cause__
    kind = "" if isinstance(cause, WaitTimeoutError) else f"{type(cause).__name__}: "
    return kind + next(iter(str(cause).splitlines()), "")


def _seen(trace: bytes) -> str:
    with TemporaryFolder() as folder:
        path = Path(folder, "trace.jsonl")
        path.write_bytes(trace)
        try:
            return behaviour(str(path))
        except TraceError as error:
            return f"The trace cannot be read: {error.problem}"
