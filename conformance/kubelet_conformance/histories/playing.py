"""Play a history, heal the node, see whether it settles, and judge all of it."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass, replace

from kubelet_conformance.contract.checking import Judged, Trace, judge_file
from kubelet_conformance.contract.collecting import seldom_collected
from kubelet_conformance.contract.frame import Contract
from kubelet_conformance.contract.verdicts import Verdict
from kubelet_conformance.contract.versions import parse_version
from kubelet_conformance.histories.history import History, Step, Want
from kubelet_conformance.histories.manifests import without_sidecars
from kubelet_conformance.histories.performing import Deed, Performance
from kubelet_conformance.histories.settled import unsettled
from kubelet_conformance.node import Node
from kubelet_conformance.targets.choice import Choice
from kubelet_conformance.targets.opening import open_stage
from kubelet_conformance.targets.protocols import StoryError, Target

SETTLE_SECONDS = 120.0
"""How long a healed node may take to settle, and how long it is watched."""
RELIST_SECONDS = 300.0
"""How much longer that may take a kubelet that hears container events: what it missed a relist finds."""
EVENTED = "EventedPLEG"
"""The feature gate of a kubelet that hears container events."""
_EVENTED_SINCE = 1, 25
_SIDECARS_SINCE = 1, 29
_STAY_SECONDS = 20.0
"""For how long at most something that ends and begins again may be between two states; what is killed because
its postStart hook fails has its grace besides.
"""
UNSETTLED = "the node settles"
"""What a history is said to have broken whose node did not come to rest."""
ERROR = "no error"
"""What a history is said to have broken that could not be played or judged to its end."""


@dataclass(frozen=True, slots=True)
class PlayedHistory:
    """What came of a history.

    Attributes:
        history: what was played.
        deeds: what its steps came to.
        trace: what was seen.
        judged: the verdicts on that.
        restless: what had not come to rest long after the node was healed, in words.
        failed: what went wrong in the kubelet or the suite itself; a traceback.
        watched: for how long the node was watched after it was healed, in seconds.
        evented: the kubelet heard container events.
        missed: some of these may have been lost or late.
    """

    history: History
    deeds: tuple[Deed, ...]
    trace: bytes
    judged: Judged
    restless: tuple[str, ...] = ()
    failed: str = ""
    watched: float = 0
    evented: bool = False
    missed: bool = False

    def broken(self) -> tuple[str, ...]:
        """What it broke: ids of contracts, `UNSETTLED`, `ERROR`."""
        bad = {Verdict.BROKEN, Verdict.ERROR}
        outcomes = self.judged.outcomes.items()
        ids = [each for each, outcome in outcomes if outcome.verdict in bad]
        return (
            *ids,
            *([UNSETTLED] if self.restless else []),
            *([ERROR] if self.failed else []),
        )


@seldom_collected()
def play(
    history: History,
    choice: Choice,
    contracts: Sequence[Contract],
    name: str = "history",
    path: str = "",
) -> PlayedHistory:
    """Play a history on this choice of a kubelet and a runtime, and judge its trace by `contracts`.

    `name` is what the trace is called in its header, `path` in evidence.
    """
    is_heard = history.evented and parse_version(choice.kubernetes) >= _EVENTED_SINCE
    gates = {"feature_gates": {EVENTED: True}} if is_heard else {}
    stage = open_stage(replace(choice, seed=history.seed))
    told = _Told()

    async def story(target: Target) -> None:
        await _live(Node(target), history, told, parse_version(choice.kubernetes), evented=is_heard)

    failed = ""
    try:
        trace = stage.play(story, name, gates, choice.kubernetes)
    except StoryError as error:
        trace, failed = error.trace, error.told
    deeds = tuple(told.performance.deeds) if told.performance else ()
    try:
        judged = judge_file(path or name, contracts, file=io.BytesIO(trace), patient=True)
    except Exception as error:  # noqa: BLE001 - whatever is wrong with it, the history is told
        failed = failed or f"its trace cannot be judged: {error}"
        judged = Judged(Trace(path or name, None, None, None, name, 0), {}, ())
    restless, missed = tuple(told.restless), told.performance is not None and told.performance.missed
    return PlayedHistory(
        history, deeds, trace, judged, restless, failed, told.watched, evented=is_heard, missed=missed
    )


@dataclass(slots=True)
class _Told:
    """What is known of a history beside its trace, even if it does not come to its end."""

    performance: Performance | None = None
    restless: Sequence[str] = ()
    watched: float = 0


async def _live(
    node: Node, history: History, told: _Told, kubernetes: tuple[int, int], *, evented: bool
) -> None:
    """The whole history, and what must come of it."""
    node.kubelet.choose_orders(*history.orders)
    performance = told.performance = Performance(node, evented=evented)
    for step in history.steps:
        await performance.perform(step if kubernetes >= _SIDECARS_SINCE else _without_sidecars(step))
    performance.heal_all()
    healed = node.now
    within = SETTLE_SECONDS + (RELIST_SECONDS if evented else 0)
    told.restless = await _settle(node, performance, within, kubernetes)
    if not told.restless:
        watched = within if performance.missed else SETTLE_SECONDS
        await node.wait(max(0.0, healed + watched - node.now))
        told.restless = await _stays(node, performance, kubernetes)
    told.watched = round(node.now - healed, 6)


def _without_sidecars(step: Step) -> Step:
    return Want(without_sidecars(step.manifest), step.static) if isinstance(step, Want) else step


async def _settle(
    node: Node, performance: Performance, within: float, kubernetes: tuple[int, int]
) -> Sequence[str]:
    """Wait until all has come to rest; what has not."""

    def found() -> Sequence[str]:
        missed = performance.missed
        return unsettled(node, performance.wanted, missed=missed, starting=True, kubernetes=kubernetes)

    return () if await node.reaches(lambda: not found(), within) else found()


async def _stays(node: Node, performance: Performance, kubernetes: tuple[int, int]) -> Sequence[str]:
    """Look again for a while; what has not been at rest at any moment, or not done with its start."""
    left = await _never_at_rest(node, performance, kubernetes, _STAY_SECONDS, starting=True)
    if left:
        return left
    graces = (one.manifest["spec"].get("terminationGracePeriodSeconds") or 0 for one in performance.wanted)
    within = _STAY_SECONDS + max(graces, default=0)
    return await _never_at_rest(node, performance, kubernetes, within, starting=False)


async def _never_at_rest(
    node: Node, performance: Performance, kubernetes: tuple[int, int], within: float, *, starting: bool
) -> Sequence[str]:
    """What is at rest at no moment of these seconds.

    Of several that end and begin again each has its moment, and there may be none for all of them.
    """

    def found() -> dict[str, str]:
        missed = performance.missed
        words = unsettled(node, performance.wanted, missed=missed, starting=starting, kubernetes=kubernetes)
        return {one.partition(" is ")[0]: one for one in words}

    left = found()

    def was_at_rest() -> bool:
        nonlocal left
        left = {whom: one for whom, one in found().items() if whom in left}
        return not left

    await node.reaches(was_at_rest, within)
    return tuple(left.values())
