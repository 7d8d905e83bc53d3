"""A sweep on wall time: each play on a node of its own, many side by side."""

from collections.abc import Callable, Mapping
from functools import wraps

from kubelet_conformance.campaigns.sweep.campaign import Sweep
from kubelet_conformance.campaigns.sweep.kinds import Blow
from kubelet_conformance.campaigns.sweep.plan import Plan
from kubelet_conformance.campaigns.sweep.play import (
    JUDGED,
    Function,
    SweepBreak,
    Swept,
    Undisturbed,
    broken_contracts,
    disturbed,
    play_name,
    trace_name,
    without_waits,
)
from kubelet_conformance.contract.checking import Check
from kubelet_conformance.node import Node
from kubelet_conformance.plugin.live.live_run import LiveScenario
from kubelet_conformance.plugin.naming import Named
from kubelet_conformance.plugin.session import Session
from kubelet_conformance.reports.output import complain
from kubelet_conformance.reports.progress import Steps
from kubelet_conformance.run_record.model import LeftOut
from kubelet_conformance.run_record.played_run import Played
from kubelet_conformance.run_record.record import TRACE
from kubelet_conformance.targets.choice import Choice

_NODE_SECONDS = 10.0
"""What a node and its kubelet take to come up, about."""


class LiveSweep(Sweep):
    """Plays scenarios with faults on the kubelet of a session, which is a process of its own.

    Faults come at the calls that the reference makes as this version. A play that takes longer than the
    budget is none of the sweep: a lost reply is awaited for minutes.
    """

    def __init__(self, session: Session, scenarios: Mapping[str, Function], plan: Plan, check: Check) -> None:
        if session.live is None:
            raise ValueError("the kubelet of the session is in this process")
        choice = session.options.choice
        reference = Choice(kubernetes=choice.kubernetes, seed=choice.seed)
        super().__init__(reference, session.contracts, scenarios, plan, check, session.folder)
        self._live = session.live
        self._budget = session.options.budget
        self._swept: dict[str, Swept] = {}
        self._missed = 0

    @property
    def left_out(self) -> tuple[LeftOut, ...]:
        """The plays that are not applicable to the kubelet."""
        return tuple(self._live.left_out)

    def prepare(self, begin: Callable[[str], None]) -> None:
        """Play each scenario as it is on the reference, which shows at which calls faults may come."""
        super().prepare(begin)
        self.every = [play for play in self.every if _seconds(*play) <= self._budget]

    def seconds(self, plays: int) -> float:
        """About how long so many plays take."""
        each = sum(_seconds(*play) + _NODE_SECONDS for play in self.every) / max(1, len(self.every))
        return plays * each / self._live.stage.nodes

    def run(self, begin: Callable[[str], None]) -> None:
        """Play what the plan says, and call `begin` with each play that is tried on virtual time first."""
        plays = {
            trace_name(play_name(base.scenario, blow)).removesuffix(TRACE): (base, blow)
            for base, blow in self.plays
        }
        self._swept = {name: Swept(base.scenario, str(blow)) for name, (base, blow) in plays.items()}
        scenarios = [self._scenario(place, name, *play) for place, (name, play) in enumerate(plays.items())]
        self._live.prepare(scenarios, self.traces, begin)
        plan = self._live.plan
        plan.noun = "play", "plays"
        progress = Steps(len(plan.to_play), "plays")
        if plan.to_play:
            progress.announce(plan.estimate)
        try:
            for name in plays:
                self._live.play(name, {}, progress)
        finally:
            progress.clear()
            for played in self._live.rest():
                self._take(played)
            for judged in self._live.lives:
                self.check.add(without_waits(judged))
        if self._missed:
            complain(f"plays whose fault came at no call of the kubelet: {self._missed}", note=True)

    def _scenario(self, place: int, name: str, base: Undisturbed, blow: Blow) -> LiveScenario:
        function = self.scenarios[base.scenario]

        @wraps(function)
        async def plays(*, node: Node) -> None:
            swept = self._swept[name] = Swept(base.scenario, str(blow))
            await disturbed(
                function,
                node.target,
                base,
                blow,
                swept,
                played_as=self.choice.kubernetes,
                mirrors=not self._live.stage.by_files,
            )

        return LiveScenario(Named(name, place, ""), plays, {})

    def _take(self, played: Played) -> None:
        """What came of one play."""
        swept = self._swept[played.scenario]
        swept.judged, swept.died = without_waits(played.judged), played.died
        if played.failed:
            swept.breaks.append(SweepBreak(JUDGED, "the trace can be judged", played.failed))
        swept.breaks += broken_contracts(played.judged, self.contracts)
        self.played += 1
        self._missed += not swept.applied
        if swept.breaks:
            self.found.append(swept)


def _seconds(base: Undisturbed, blow: Blow) -> float:
    """How long a play takes, but for what the kubelet makes of the fault."""
    return base.seconds + blow.seconds
