"""Runs a history, heals its faults, checks that the node settles, and judges the trace."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from kubelet_conformance.campaigns.histories.convergence import Convergence
from kubelet_conformance.campaigns.histories.history import History
from kubelet_conformance.campaigns.histories.steps import DisturbEvents, LiveHistory, Progress, Step, Want
from kubelet_conformance.contract.applicability import parse_version
from kubelet_conformance.contract.checking import Judged, Trace, judge_file
from kubelet_conformance.contract.deferred_gc import deferred_gc
from kubelet_conformance.contract.definition import Contract
from kubelet_conformance.contract.verdicts import Verdict
from kubelet_conformance.node import Node
from kubelet_conformance.targets.choice import Choice
from kubelet_conformance.targets.controls import EndlessPlayError, ScenarioError, Target
from kubelet_conformance.targets.opening import open_stage

SETTLE_SECONDS = 120.0
"""How long a healed node may take to settle, and how long it is watched."""
RELIST_SECONDS = 300.0
"""How much longer that may take a kubelet that uses container events: what it missed a relist finds."""
EVENTED = "EventedPLEG"
"""The feature gate of a kubelet that uses container events."""
_EVENTED_SINCE = 1, 25
_SIDECARS_SINCE = 1, 29
_INDENT = "    "
_ID = re.compile(r"[A-Z]+-\d+")
_EXEMPT = ("CRI-30",)
"""Not judged where the runtime does not send every event in time."""
NOT_CONVERGED = "the node settles"
"""What a history is said to have broken whose node did not come to rest."""
ENDLESS = "the play ends"
"""What a history is said to have broken in which something repeats itself without end."""
ERROR = "no error"
"""What a history is said to have broken that could not be played or judged to its end."""


@dataclass(frozen=True, slots=True)
class PlayedHistory:
    """The result of a history that was played.

    Attributes:
        history: what was played.
        trace: what was seen.
        judged: the verdicts on that.
        failed: what went wrong in the kubelet or the suite itself; a traceback.
        progress: what happened.
        endless: what repeated itself without end, in words.
    """

    history: History
    trace: bytes
    judged: Judged
    failed: str = ""
    progress: Progress = field(default_factory=Progress)
    endless: str = ""

    def broken(self) -> tuple[str, ...]:
        """What it broke: ids of contracts, `NOT_CONVERGED`, `ENDLESS`, `ERROR`."""
        bad = {Verdict.BROKEN, Verdict.ERROR}
        outcomes = self.judged.outcomes.items()
        ids = [each for each, outcome in outcomes if outcome.verdict in bad]
        return (
            *ids,
            *([NOT_CONVERGED] if self.progress.not_converged else []),
            *([ENDLESS] if self.endless else []),
            *([ERROR] if self.failed else []),
        )


@deferred_gc()
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
    kubernetes = parse_version(choice.kubernetes)
    progress = begun(history, kubernetes)
    stage = open_stage(replace(choice, seed=history.seed))

    async def scenario(target: Target) -> None:
        await live_through(history, Node(target), progress, kubernetes)

    failed, endless = "", ""
    try:
        exempt = exempt_of(history, progress)
        trace = stage.play(scenario, name, settings_of(progress), choice.kubernetes, exempt)
    except ScenarioError as error:
        trace, failed = error.trace, error.report
        if isinstance(error.__cause__, EndlessPlayError):
            failed, endless = "", str(error.__cause__)
    try:
        judged = judge_file(path or name, contracts, content=trace)
    except Exception as error:  # noqa: BLE001 - whatever is wrong with it, the history is reported
        failed = failed or f"its trace cannot be judged: {error}"
        judged = Judged(Trace(path or name, None, None, None, name, 0), {}, ())
    return PlayedHistory(history, trace, judged, failed, progress, endless)


def begun(history: History, kubernetes: tuple[int, int]) -> Progress:
    """The progress of a history that begins, on a kubelet of that version."""
    return Progress(evented=history.evented and kubernetes >= _EVENTED_SINCE)


def settings_of(progress: Progress) -> dict[str, object]:
    """What the configuration of its kubelet sets."""
    return {"feature_gates": {EVENTED: True}} if progress.evented else {}


def exempt_of(history: History, progress: Progress) -> tuple[str, ...]:
    """The contracts of the runtime that the history makes it break: its events are lost, late or reversed."""
    disturbs = (each for each in history.steps if isinstance(each, DisturbEvents))
    return _EXEMPT if progress.evented and any(each.how != "cut" for each in disturbs) else ()


async def live_through(  # noqa: PLR0913 - a history, where it happens, and how long the node is watched
    history: History,
    node: Node,
    progress: Progress,
    kubernetes: tuple[int, int],
    *,
    settle_seconds: float = SETTLE_SECONDS,
    watch_seconds: float = SETTLE_SECONDS,
    mirrors: bool = True,
) -> None:
    """Run the whole history, and check that the node settles.

    A healed node has `settle_seconds` to settle, and is watched for `watch_seconds` after it was healed.
    Static pods have `mirrors` unless there is no API server.
    """
    node.target.patient = True
    live = LiveHistory(node, progress)
    if history.orders:
        node.kubelet.choose_orders(*history.orders)
    for step in history.steps:
        await live.perform(step if kubernetes >= _SIDECARS_SINCE else _without_sidecars(step))
    await live.heal_all()
    healed = node.now
    relists = RELIST_SECONDS if progress.evented else 0
    convergence = Convergence(node, live.wanted, kubernetes, missed=progress.missed, mirrors=mirrors)
    progress.not_converged = tuple(await convergence.comes(settle_seconds + relists))
    if not progress.not_converged:
        watched = watch_seconds + (relists if progress.missed else 0)
        await node.wait(max(0.0, healed + watched - node.now))
        progress.not_converged = tuple(await convergence.stays())
    progress.watched = round(node.now - healed, 6)


def _without_sidecars(step: Step) -> Step:
    """Only a kubelet from 1.29 on takes pods with sidecars (SIDECAR-01)."""
    if not isinstance(step, Want):
        return step
    spec = step.manifest["spec"]
    inits = [each for each in spec.get("initContainers") or () if not each.get("restartPolicy")]
    return Want({**step.manifest, "spec": {**spec, "initContainers": inits}}, step.static)


def as_words(played: PlayedHistory) -> list[str]:
    """The history, a line for each thing that happened, with the time (s)."""
    lines = [f"{one.at:8.2f} s  {one.words}" for one in played.progress.done]
    if played.progress.evented:
        lines.insert(0, "the kubelet uses the runtime's container events")
    choices = played.history.orders
    if any(choices):
        lines.insert(
            0, f"which of several ready things comes first, over and over: {', '.join(map(str, choices))}"
        )
    ends = [f"at the end {each}" for each in played.progress.not_converged]
    return [*lines, *ends, *([played.endless] if played.endless else [])]


def as_scenario(played: PlayedHistory, what: str) -> str:
    """The history as a scenario that provokes the same; `what` it broke is said in its docstring."""
    name = re.sub(r"\W+", "_", what).strip("_").lower()
    used = "\n".join(line for one in played.progress.done for line in one.code)
    words = [each for each in ("container", "pod") if f"{each}(" in used]
    words += ["witness"] if played.progress.evented else []
    orders = ", ".join(map(str, played.history.orders))
    lines = [
        *(["from contextlib import ExitStack", ""] if "faults" in used else []),
        f"from kubelet_conformance.node import {', '.join(['Node', *words])}",
        "",
        "",
        *([f"@witness({_witnessed(played, what)})"] if played.progress.evented else []),
        f"async def test_history_that_breaks_{name}(node: Node) -> None:",
        f'{_INDENT}"""A generated history that broke {what}."""',
        *([f"{_INDENT}node.kubelet.choose_orders({orders})"] if orders else []),
        *([f"{_INDENT}faults = ExitStack()"] if "faults" in used else []),
        *(f"{_INDENT}{line}" for one in played.progress.done for line in one.code),
        f"{_INDENT}await node.wait({played.progress.watched:g})",
    ]
    return "\n".join(lines) + "\n"


def _witnessed(played: PlayedHistory, what: str) -> str:
    """What a scenario must declare to be played on such a kubelet."""
    ids = [f'"{what}"'] if _ID.fullmatch(what) else []
    exempt = exempt_of(played.history, played.progress)
    exempts = [f'exempt=("{each}",)' for each in exempt]
    return ", ".join([*ids, f'feature_gates={{"{EVENTED}": True}}', *exempts])
