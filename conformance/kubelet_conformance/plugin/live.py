"""Scenarios on wall time: rehearsed, planned, played side by side on one node or alone, judged life by life."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from kubelet_conformance.node import Node, scenario_of
from kubelet_conformance.plugin.options import OptionsError
from kubelet_conformance.plugin.plan import Place, Plan, plan
from kubelet_conformance.plugin.play import how_it_ended, judge
from kubelet_conformance.plugin.rehearsal import rehearse
from kubelet_conformance.plugin.shares import shared_out
from kubelet_conformance.reports.played import LeftOut, Played
from kubelet_conformance.targets.protocols import NotPossibleError
from kubelet_conformance.targets.stage import Act, TargetError, UnknownTargetError, open_live_stage

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    from kubelet_conformance.contract.checking import Judged
    from kubelet_conformance.contract.frame import Contract
    from kubelet_conformance.plugin.naming import Named
    from kubelet_conformance.plugin.options import Options
    from kubelet_conformance.targets.protocols import Target
    from kubelet_conformance.targets.stage import Ended

__all__ = ("LiveRun", "Story")

_SHARED = "node"
"""The name of the trace of the node that scenarios share."""


@dataclass(frozen=True, slots=True)
class Story:
    """A scenario that is to be played; `arguments` are None where they are known only when its turn comes."""

    named: Named
    function: Callable[..., Awaitable[None]]
    arguments: Mapping[str, Any] | None = None


class LiveRun:
    """Plays the scenarios of one run on a real runtime; raises OptionsError for what cannot be chosen.

    Attributes:
        lives: the verdicts on each life of a node, with the breaks laid at the scenarios' doors.
        left_out: the scenarios that are not applicable.
    """

    def __init__(self, options: Options, contracts: Sequence[Contract], folder: Path) -> None:
        try:
            self._stage = open_live_stage(options.choice)
        except UnknownTargetError as error:
            raise OptionsError(str(error)) from None
        self._options = options
        self._contracts = contracts
        self._folder = folder
        self._runner = asyncio.Runner()
        self._plans: dict[str, Plan] = {}
        self._stories: dict[str, Story] = {}
        self._played: dict[str, Played] = {}
        self._missing: dict[str, str] = {}
        self.lives: list[Judged] = []
        self.left_out: list[LeftOut] = []

    def prepare(self, stories: Iterable[Story], begin: Callable[[str], None]) -> None:
        """Rehearse all, plan them, and connect to the runtime; raises OptionsError where that cannot be."""
        choice = replace(self._options.choice, kubelet="reference", runtime="fake")
        images: set[str] = set()
        for story in stories:
            name = story.named.name
            begin(name)
            self._stories[name] = story
            declared = scenario_of(story.function)
            if story.arguments is None:
                budget = self._options.budget
                self._plans[name] = Plan(Place.ALONE, "takes fixtures", budget)
                continue
            found = rehearse(story.function, name, choice, story.arguments)
            self._plans[name] = plan(declared, found, self._options.budget, self._stage.controls)
            if self._plans[name].place is not Place.NOWHERE:
                images |= found.images
        if all(each.place is Place.NOWHERE for each in self._plans.values()):
            return
        try:
            self._runner.run(self._stage.open(images))
        except TargetError as error:
            raise OptionsError(str(error)) from None

    def play(self, name: str, arguments: Mapping[str, Any], ended: Callable[[str], None]) -> Played | LeftOut:
        """What came of a scenario: its node's whole life is awaited, with all who share it."""
        place = self._plans[name].place
        if place is Place.NOWHERE:
            return self._leave_out(name, self._plans[name].reason)
        if name not in self._played:
            beside = [each for each, plan in self._plans.items() if plan.place is Place.SHARED]
            names = beside if place is Place.SHARED else [name]
            self._live(names, arguments if place is Place.ALONE else None, ended)
        if name in self._missing:
            return self._leave_out(name, self._missing[name])
        return self._played[name]

    def _leave_out(self, name: str, reason: str) -> LeftOut:
        left_out = LeftOut(name, reason)
        self.left_out.append(left_out)
        return left_out

    def _live(self, names: list[str], arguments: Mapping[str, Any] | None, ended: Callable[[str], None]) -> None:
        """Play one life of a node, and judge it."""
        shared = arguments is None
        acts = [self._act(each, arguments) for each in names]
        # The longest first, so that none is begun when the others are nearly done.
        acts.sort(key=lambda act: -act.patience)
        life = self._runner.run(
            self._stage.play(
                acts,
                shared=shared,
                concurrency=self._options.concurrency,
                ended=lambda act: ended(act.name),
            )
        )
        path = self._folder / f"{_SHARED if shared else names[0]}.jsonl"
        path.write_bytes(life.trace)
        lies = () if shared else scenario_of(self._stories[names[0]].function).lies
        contracts = [each for each in self._contracts if each.id not in lies]
        whole, wrong = judge(path, contracts, None if shared else names[0])
        shares = {names[0]: whole}
        if shared:
            by_number = {act.number: act.name for act in acts}
            owners = [None if each is None else by_number.get(each) for each in life.owners]
            whole, shares = shared_out(whole, owners, names)
        self.lives.append(whole)
        for act in acts:
            self._take(act, life.ended[act.number], shares[act.name], wrong)

    def _take(self, act: Act, ended: Ended, judged: Judged, wrong: str) -> None:
        """What came of one scenario of a life that was judged, or why that failed."""
        if isinstance(ended.error, NotPossibleError):
            self._missing[act.name] = f"needs {ended.error}"
        story = self._stories[act.name]
        vain = failed = ""
        if ended.error is not None:
            vain, failed = how_it_ended(ended.error, ended.told, story.function)
        self._played[act.name] = Played(
            act.name, judged, vain, wrong or failed, story.named.place, story.named.file
        )

    def _act(self, name: str, arguments: Mapping[str, Any] | None) -> Act:
        story = self._stories[name]
        given = story.arguments if arguments is None else arguments

        async def on(target: Target) -> None:
            await story.function(**{**(given or {}), "node": Node(target)})

        settings = dict(scenario_of(story.function).settings)
        return Act(story.named.place, name, on, settings, self._plans[name].patience)

    @property
    def runtime(self) -> str:
        """The runtime's own name and version."""
        return self._stage.runtime

    def close(self) -> None:
        """Leave nothing behind."""
        try:
            self._runner.run(self._stage.close())
        finally:
            self._runner.close()
