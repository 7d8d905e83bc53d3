"""Plays a scenario with one fault, waits for the node to settle, and judges what happened."""

import re
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from kubelet_conformance.campaigns.sweep.injection import Injection
from kubelet_conformance.campaigns.sweep.kinds import Blow
from kubelet_conformance.campaigns.sweep.points import Point, points_of
from kubelet_conformance.campaigns.sweep.settling import not_settled
from kubelet_conformance.contract.checking import Judged, judge_file
from kubelet_conformance.contract.deferred_gc import deferred_gc
from kubelet_conformance.contract.definition import Contract
from kubelet_conformance.contract.verdicts import Outcome, Verdict
from kubelet_conformance.node import Node, Scenario, scenario_of
from kubelet_conformance.plugin.play import classify_failure
from kubelet_conformance.reports.trace_text.expectations import in_one_sentence
from kubelet_conformance.run_record.record import TRACE
from kubelet_conformance.targets.controls import KubeletEndedError, NotPossibleError, ScenarioError, Target
from kubelet_conformance.targets.process.kubelet_paths import has_api_server
from kubelet_conformance.targets.stage import Stage

Function = Callable[..., Awaitable[None]]
_WAIT_SECONDS = 600.0
"""What a fault and the longest back-off after it may add to a wait."""
_HERE = Path()
SETTLES, SCENARIO, ENDS, JUDGED = "settling", "scenario", "kubelet", "judging"
_BESIDE_CONTRACTS = frozenset({SETTLES, SCENARIO, ENDS, JUDGED})
"""What may break beside contracts, by what is broken."""


@dataclass(frozen=True, slots=True)
class Undisturbed:
    """A scenario as it is: the points at which a fault may come, and what had not settled in the end.

    `failed` says why it has no end, if that is so; `seconds` is how long it takes. Where kubelets of two
    versions `take_turns`, the next one to start is another.
    """

    scenario: str
    points: tuple[Point, ...]
    not_settled: frozenset[str] = frozenset()
    failed: str = ""
    seconds: float = 0.0
    take_turns: bool = False


@dataclass(frozen=True, slots=True)
class SweepBreak:
    """What broke in one play: the id of a contract, or which of our own expectations; and how."""

    what: str
    expected: str
    happened: str


@dataclass(slots=True)
class Swept:
    """What came of one play with a fault.

    Attributes:
        scenario: the scenario's name.
        blow: the fault.
        breaks: what broke.
        trace: what was recorded, if something broke.
        judged: what the contracts say of it; None where it cannot be judged.
        died: how a kubelet that is a process ended, if it did by itself: a contract has its break.
        applied: the call came at which the fault was meant.
    """

    scenario: str
    blow: str
    breaks: list[SweepBreak] = field(default_factory=list[SweepBreak])
    trace: bytes = b""
    judged: Judged | None = None
    died: str = ""
    applied: bool = False

    @property
    def name(self) -> str:
        """What this play is called in a record."""
        return play_name(self.scenario, self.blow)

    @property
    def unmet(self) -> list[SweepBreak]:
        """What it broke beside contracts; that a scenario did not come to its end a broken one explains."""
        beside = [each for each in self.breaks if each.what in _BESIDE_CONTRACTS]
        explained = {SCENARIO} if len(beside) < len(self.breaks) else set[str]()
        return [each for each in beside if each.what not in explained]


def play_name(scenario: str, blow: object) -> str:
    """What a play of a scenario with a fault is called."""
    return f"{scenario} {blow}"


def trace_name(play: str) -> str:
    """The file of its trace."""
    return f"{play.replace('/', '-').replace(' ', '_')}{TRACE}"


@deferred_gc()
def undisturbed(function: Function, name: str, stage: Stage, version: str = "") -> Undisturbed:
    """Play a scenario as it is, and let the node settle."""
    declared = scenario_of(function)
    played_as = version or declared.nearest()
    points: list[Point] = []
    left: list[str] = []
    seconds = 0.0

    async def on(target: Target) -> None:
        nonlocal seconds
        node = Node(target)
        await function(node=node)
        seconds = target.now()
        points.extend(points_of(target.recorder.records))
        left.extend(await not_settled(node, played_as, mirrors=has_api_server(dict(declared.settings))))

    try:
        _on_stage(on, name, stage, declared, played_as)
    except ScenarioError as error:
        return Undisturbed(name, tuple(points), failed=str(error.__cause__))
    turns = bool(declared.then_kubernetes)
    return Undisturbed(name, tuple(points), frozenset(left), seconds=seconds, take_turns=turns)


@deferred_gc()
def play(  # noqa: PLR0913, PLR0917 - a scenario, a fault, a stage and judges
    function: Function,
    base: Undisturbed,
    blow: Blow,
    stage: Stage,
    contracts: Sequence[Contract],
    version: str = "",
    traces: Path = _HERE,
) -> Swept:
    """Play a scenario with that fault, and judge its trace, which is to lie in the folder `traces`."""
    declared = scenario_of(function)
    played_as = version or declared.nearest()
    swept = Swept(base.scenario, str(blow))

    async def on(target: Target) -> None:
        await disturbed(function, target, base, blow, swept, played_as=played_as)

    try:
        swept.trace = _on_stage(on, swept.name, stage, declared, played_as)
    except ScenarioError as error:
        swept.trace = error.trace
        expected = "the play comes to its end, and the kubelet does not end by itself"
        swept.breaks.append(SweepBreak(ENDS, expected, str(error.__cause__)))
    swept.breaks += _judged(swept, contracts, traces)
    if not swept.breaks:
        swept.trace = b""
    return swept


def _on_stage(
    on: Callable[[Target], Awaitable[None]], name: str, stage: Stage, declared: Scenario, played_as: str
) -> bytes:
    """The trace of a life with what the scenario declares."""
    settings, then = dict(declared.settings), declared.then_kubernetes
    return stage.play(on, name, settings, played_as, declared.exempt, then=then)


async def disturbed(  # noqa: PLR0913 - see `play`
    function: Function,
    target: Target,
    base: Undisturbed,
    blow: Blow,
    swept: Swept,
    *,
    played_as: str,
    mirrors: bool = True,
) -> None:
    """Run the scenario with the fault and wait for what comes after it; `swept` gets what broke.

    Static pods have `mirrors` unless there is no API server.
    """
    declared = scenario_of(function)
    target.is_disturbed, target.patient, target.wait_seconds_min = True, True, _WAIT_SECONDS
    node = Node(target)
    injection = Injection(node, blow)
    try:
        await function(node=node)
    except (KubeletEndedError, NotPossibleError):
        raise
    except Exception as error:  # noqa: BLE001 - whatever the fault has done to it, the rest is looked at
        if not declared.undisturbed:
            unmet = "".join(classify_failure(error, "", function)).strip()
            expected = "the scenario comes to its end"
            swept.breaks.append(SweepBreak(SCENARIO, expected, unmet.partition("\nthe trace ends")[0]))
    await injection.close()
    swept.applied = injection.applied
    mirrors = mirrors and has_api_server(dict(declared.settings))
    left = await not_settled(node, played_as, base.not_settled, late_call=blow.late_call, mirrors=mirrors)
    if left:
        expected = "what is desired runs or has ended, and nothing else is there"
        swept.breaks.append(SweepBreak(SETTLES, expected, "; ".join(left)))


def _judged(swept: Swept, contracts: Sequence[Contract], traces: Path) -> Iterator[SweepBreak]:
    file = str(traces / trace_name(swept.name))
    try:
        judged = judge_file(file, contracts, content=swept.trace)
    except Exception as error:  # noqa: BLE001 - the others are played and judged all the same
        yield SweepBreak(JUDGED, "the trace can be judged", repr(error))
        return
    swept.judged = without_waits(judged)
    yield from broken_contracts(judged, contracts)


def without_waits(judged: Judged) -> Judged:
    """The same verdicts: what a scenario waits for need not come after a fault."""
    return replace(judged, waits=())


def broken_contracts(judged: Judged, contracts: Iterable[Contract]) -> Iterator[SweepBreak]:
    """What the contracts say is broken."""
    by_id = {contract.id: contract for contract in contracts}
    for contract, outcome in judged.outcomes.items():
        if outcome.verdict in {Verdict.BROKEN, Verdict.ERROR}:
            yield SweepBreak(contract, by_id[contract].rule, _happened(outcome))


def _happened(outcome: Outcome) -> str:
    texts = dict.fromkeys(re.sub(r"\s+", " ", in_one_sentence(each)) for each in outcome.evidence)
    return "; ".join(texts) or outcome.reason
