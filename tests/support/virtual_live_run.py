"""A run on wall time, played on virtual time: what campaigns make of it."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from kubelet_conformance.contract.checking import Check, judge_file
from kubelet_conformance.contracts import every_contract
from kubelet_conformance.node import Node
from kubelet_conformance.plugin.live.live_run import LiveScenario
from kubelet_conformance.plugin.live.plan import Plan
from kubelet_conformance.plugin.session import Session
from kubelet_conformance.run_record.model import LeftOut
from kubelet_conformance.run_record.played_run import Played
from kubelet_conformance.targets.choice import Choice
from kubelet_conformance.targets.controls import Target
from kubelet_conformance.targets.opening import open_stage
from kubelet_conformance.targets.stage import Act, PlayedLife

VERSION = "1.32"
CONTRACTS = list(every_contract().values())


class VirtualLiveRun:
    """Plays as `LiveRun` does, on virtual time, on a kubelet with a bug."""

    def __init__(self, kubelet: str, folder: Path) -> None:
        self.stage = SimpleNamespace(by_files=False, nodes=2)
        self.plan = Plan()
        self.lives: list[Any] = []
        self.left_out: list[LeftOut] = []
        self.played_alone: list[str] = []
        self._stage = open_stage(Choice(kubelet))
        self._played: list[Played] = []
        self._folder = folder
        self._scenarios: dict[str, LiveScenario] = {}

    def prepare(self, scenarios: Iterable[LiveScenario], folder: Path, begin: Callable[[str], None]) -> None:
        """Take in the scenarios."""
        assert folder == self._folder
        for each in scenarios:
            begin(each.named.name)
            self._scenarios[each.named.name] = each

    def play(self, name: str, _arguments: object, _progress: object) -> Played:
        """Play one and judge it."""

        async def on(target: Target) -> None:
            await self._scenarios[name].function(node=Node(target))

        trace = self._stage.play(on, name, {}, VERSION)
        judged = judge_file(name, CONTRACTS, content=trace)
        self.lives.append(judged)
        self._played.append(Played(name, judged))
        return self._played[-1]

    def rest(self) -> list[Played]:
        """What was played."""
        return self._played

    def play_alone(self, acts: Sequence[Act]) -> list[PlayedLife | None]:
        """Play each on a node of its own."""
        self.played_alone += [act.name for act in acts]
        for act in acts:
            self.log_of(act.name).touch()
        return [
            PlayedLife(self._stage.play(act.scenario, act.name, act.settings, VERSION), (), {})
            for act in acts
        ]

    def log_of(self, name: str) -> Path:
        """Where its log is kept."""
        return self._folder / f"{name}.log"

    def session(self, folder: Path) -> Session:
        """A session with this run."""
        session = SimpleNamespace(
            live=self,
            contracts=CONTRACTS,
            folder=folder,
            options=SimpleNamespace(choice=Choice(kubernetes=VERSION), budget=120.0),
            check=lambda: Check(CONTRACTS),
        )
        return cast("Session", session)
