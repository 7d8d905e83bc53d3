"""Scenarios on wall time: tried, planned, played side by side or alone, judged life by life."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from kubelet_conformance.contract.applicability import parse_version
from kubelet_conformance.contract.checking import Judged, Trace
from kubelet_conformance.contract.definition import Contract
from kubelet_conformance.contract.judge import Judge
from kubelet_conformance.contract.verdicts import Evidence
from kubelet_conformance.node import Node, scenario_of
from kubelet_conformance.plugin.live.culprits import Manifest, alive, manifests_before, smallest, written
from kubelet_conformance.plugin.live.dry_run import DryRun, Place, Placement, dry_run, placed
from kubelet_conformance.plugin.live.first_break import FirstBreak
from kubelet_conformance.plugin.live.forecast import Forecast
from kubelet_conformance.plugin.live.lives import Life, blame, shared_out
from kubelet_conformance.plugin.live.log_moments import with_log
from kubelet_conformance.plugin.live.plan import Plan
from kubelet_conformance.plugin.naming import Named
from kubelet_conformance.plugin.options import Options
from kubelet_conformance.plugin.play import TraceNotWrittenError, classify_failure, judge, write_trace
from kubelet_conformance.reports.output import complain
from kubelet_conformance.reports.progress import Steps
from kubelet_conformance.run_record.model import LeftOut
from kubelet_conformance.run_record.played_run import Played
from kubelet_conformance.run_record.record import LOGS
from kubelet_conformance.run_record.worker_pool import Ahead, ProcessDiedError, processors
from kubelet_conformance.targets.choice import TargetError
from kubelet_conformance.targets.controls import KubeletEndedError, NotPossibleError, Target, failure_report
from kubelet_conformance.targets.opening import open_live_stage
from kubelet_conformance.targets.process.machine.priority import NICENESS, coming_first
from kubelet_conformance.targets.stage import Act, Ended, PlayedLife
from kubelet_conformance.trace.format.header import Header
from kubelet_conformance.trace.format.records import Record

_FEW = 20
"""So many scenarios are tried in a moment; for more there are processes, and a look at the runtime first."""
_NICER = 4
"""By so much judging is nicer than the run, as kubelets need not wait for it."""
_MINUTE = 60.0
_PATIENCE_SECONDS = 10.0
_DEATHS_REPLAYED_MAX = 5
"""The manifests of so many are replayed: a kubelet that every pod ends would be started for hours."""


@dataclass(frozen=True, slots=True)
class LiveScenario:
    """A scenario that is to be played; `arguments` are None where they are known only when its turn comes."""

    named: Named
    function: Callable[..., Awaitable[None]]
    arguments: Mapping[str, Any] | None = None


class LiveRun:
    """Plays the scenarios of one run on a real runtime; raises BadInputError for what cannot be chosen.

    Attributes:
        stage: what is played on.
        plan: what is played, and when.
        lives: the verdicts on each life of a node, with the breaks laid at the scenarios' doors.
        left_out: the scenarios that are not applicable.
    """

    _folder: Path

    def __init__(
        self,
        options: Options,
        contracts: Sequence[Contract],
        counts: Callable[[Contract, Evidence], bool],
    ) -> None:
        self.stage = open_live_stage(options.choice)
        self._options = options
        self._contracts = contracts
        self._first_break = FirstBreak(counts)
        self._stop = self._first_break.seen
        """A break that counts was seen, and --fail-fast is given; or the run is interrupted."""
        self._interrupted = False
        self._deaths = 0
        self._judging: Ahead[tuple[Judged, str]] | None = None
        """Judges the traces of lives that have ended, while others are played."""
        self._runner = asyncio.Runner()
        self.plan = Plan(cheapest_first=options.fail_fast)
        self._scenarios: dict[str, LiveScenario] = {}
        self._played: dict[str, Played] = {}
        self._seconds: dict[str, float] = {}
        """How long each scenario took."""
        self._missing: dict[str, str] = {}
        self.lives: list[Judged] = []
        self.left_out: list[LeftOut] = []

    def prepare(self, scenarios: Iterable[LiveScenario], folder: Path, begin: Callable[[str], None]) -> None:
        """Dry-run and place all, and connect to the runtime; traces will go into `folder`.

        Raises:
            TargetError: The runtime cannot be played on.
        """
        self._folder = folder
        self._scenarios = {each.named.name: each for each in scenarios}
        with ExitStack() as stack:
            tried: Callable[[str], DryRun | None] = self._dry_run
            if len(self._scenarios) > _FEW and processors() > 1:
                # Before there are threads of gRPC, of which a copy of this process would have none.
                self._judging = Ahead(self._judged_beside, (), processors())
                tried = stack.enter_context(closing(Ahead(self._dry_run, self._scenarios, processors()))).take
            self._runner.run(self.stage.try_kubelet())
            if len(self._scenarios) > _FEW:
                self._runner.run(self.stage.look())
            images: set[str] = set()
            for name in self._scenarios:
                begin(name)
                images |= self._place(name, tried(name))
        if not self.plan.to_play:
            return
        self._runner.run(self.stage.open(images))
        for note in self._runner.run(self.stage.isolate()):
            complain(note, note=True)
        self.plan.forecast = Forecast(self.stage.nodes, self._options.concurrency, processors())
        if self.stage.limit and len(self.plan.by_node(self.plan.to_play)) > self.stage.nodes:
            complain(f"kubelets side by side: {self.stage.limit}; the run is faster with more", note=True)
        if self._options.quick:
            self.plan.leave_out_what_is_long()

    def _dry_run(self, name: str) -> DryRun | None:
        """What a scenario needs; None where what it takes is not known yet."""
        scenario = self._scenarios[name]
        if scenario.arguments is None:
            return None
        choice, by_files = self._options.choice, self.stage.by_files
        return dry_run(scenario.function, name, choice, scenario.arguments, by_files=by_files)

    def _place(self, name: str, found: DryRun | None) -> set[str]:
        """Place a scenario that was tried so; the images that it takes for that."""
        budget = self._options.budget
        if found is None:
            self.plan.placements[name] = Placement(Place.ALONE, "takes fixtures", budget)
            return set()
        found.refused = found.refused or self.stage.missing(found.uses)
        declared = scenario_of(self._scenarios[name].function)
        placement = self.plan.placements[name] = placed(declared, found, budget, self.stage.controls)
        return set() if placement.place is Place.NOWHERE else found.images

    def play(
        self, name: str, arguments: Mapping[str, Any], progress: Steps | None
    ) -> Played | LeftOut | None:
        """What came of a scenario, None if --quick or --fail-fast keeps it from being played.

        With the first one all are played, save those that take fixtures.
        """
        if self.plan.placements[name].place is Place.NOWHERE:
            return self._leave_out(name, self.plan.placements[name].reason)
        if name in self.plan.long:
            return None
        if name not in self._played and not self._stop.is_set():
            given = self._scenarios[name].arguments
            lives = self._lives_to_play() if given is not None else [Life([self._act(name, arguments)])]
            with suppress(asyncio.CancelledError), coming_first():
                self._runner.run(self._live(lives, progress))
            lives = [life for life in lives if life.error is not None or life.path.name]
            for life in lives:
                self._judge(life)
            for life in lives:
                self._name_suspects(life)
        if self._interrupted:
            raise KeyboardInterrupt
        if name in self._missing:
            return self._leave_out(name, self._missing[name])
        return self._played.get(name)

    def rest(self) -> list[Played]:
        """What came of the scenarios, also of those whose turn has not come; the others are left out."""
        known = {each.name for each in self.left_out}
        for name, placement in self.plan.placements.items():
            if name not in known and (name in self._missing or placement.place is Place.NOWHERE):
                self._leave_out(name, self._missing.get(name, placement.reason))
        return [played for name, played in self._played.items() if name not in self._missing]

    def play_alone(self, acts: Sequence[Act]) -> list[PlayedLife | None]:
        """Play acts beside the plan, each on a node of its own; None for one that could not be played.

        What their kubelets write is kept, by the acts' names (see `log_of`).
        """

        async def alone() -> list[PlayedLife | BaseException]:
            lives = (
                self.stage.play([act], shared=False, stop=self._stop, log=self.log_of(act.name))
                for act in acts
            )
            return await asyncio.gather(*lives, return_exceptions=True)

        played = self._runner.run(alone())
        return [each if isinstance(each, PlayedLife) and each.trace else None for each in played]

    def _leave_out(self, name: str, reason: str) -> LeftOut:
        left_out = LeftOut(name, reason)
        self.left_out.append(left_out)
        return left_out

    def _lives_to_play(self) -> list[Life]:
        """The lives of nodes that are shared, and one for each scenario that needs a node of its own."""
        known = [name for name in self.plan.to_play if self._scenarios[name].arguments is not None]
        return [
            Life([*map(self._act, names)], self.plan.placements[names[0]].place is Place.SHARED, number)
            for number, names in enumerate(self.plan.by_node(known), start=1)
        ]

    async def _live(self, lives: list[Life], progress: Steps | None) -> None:
        """Play lives of nodes, as many at a time as the stage has runtimes for."""

        def ended(name: str) -> None:
            self.plan.end(name)
            if progress is not None:
                progress.advance(self._time_left)

        minutes = asyncio.create_task(self._report_each_minute(progress))
        loop = asyncio.get_running_loop()
        whole: Any = asyncio.current_task()
        loop.add_signal_handler(signal.SIGINT, self._interrupt, whole)
        try:
            async with asyncio.TaskGroup() as tasks:
                for life in tuple(lives):
                    tasks.create_task(self._live_and_go_on(life, lives, ended))
        except* TraceNotWrittenError as group:
            raise TraceNotWrittenError(*group.exceptions[0].args) from None
        finally:
            loop.remove_signal_handler(signal.SIGINT)
            minutes.cancel()
        errors = [life.error for life in lives if isinstance(life.error, TargetError)]
        if errors and not any(life.error is None for life in lives):
            raise errors[0]

    def _interrupt(self, whole: asyncio.Task[Any]) -> None:
        """End what is being played, with its trace; what has not ended in a while, or by then, without."""
        if self._interrupted:
            whole.cancel()
        self._interrupted = True
        self._stop.set()
        asyncio.get_running_loop().call_later(_PATIENCE_SECONDS, whole.cancel)

    async def _report_each_minute(self, progress: Steps | None) -> None:
        while progress is not None:
            await self.stage.clock.sleep(_MINUTE)
            progress.log(self._time_left())

    def _time_left(self) -> str:
        return self.plan.time_left(self.stage.clock.monotonic())

    async def _live_and_go_on(self, life: Life, lives: list[Life], ended: Callable[[str], None]) -> None:
        """Play a life of a node, and where its kubelet ended by itself what is left, on new nodes.

        What was being played then is played again alone, so that it is known which scenario ends the kubelet;
        not where the run ends with this.
        """
        await self._live_one(life, ended)
        if life.died and not life.shared:
            await self._show_manifests(life)
        if not (life.shared and life.died) or self._stop.is_set():
            self._begin_judging(life)
            return
        life.again = [Life([act], urgent=True) for act in life.acts if act.number in life.alive]
        lives += life.again
        rest = [act for act in life.acts if act.number not in life.ended]
        life.acts = [act for act in life.acts if act.number in life.ended and act.number not in life.alive]
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._find_killer(life, lives, ended))
            if rest:
                number = 1 + sum(each.shared for each in lives)
                after = Life(rest, shared=True, number=number, urgent=True)
                lives.append(after)
                tasks.create_task(self._live_and_go_on(after, lives, ended))

    async def _find_killer(self, life: Life, lives: list[Life], ended: Callable[[str], None]) -> None:
        """Play again alone what was being played when a kubelet ended, before its life is judged."""
        async with asyncio.TaskGroup() as tasks:
            for each in life.again:
                tasks.create_task(self._live_and_go_on(each, lives, ended))
        killers = [each.acts[0].name for each in life.again if each.died]
        if killers:
            blame(life.path, life.died_seq, killers[0])
        self._begin_judging(life)

    async def _show_manifests(self, life: Life) -> None:
        """Add the manifests that end the kubelet of a life to how it ended."""
        act = life.acts[0]

        self._deaths += 1
        replays = self._deaths <= _DEATHS_REPLAYED_MAX

        async def ends(manifests: Sequence[Manifest]) -> bool:
            if not replays:
                return False
            replay = replace(act, scenario=written(manifests))
            return bool((await self.stage.play([replay], shared=False, stop=self._stop, urgent=True)).died)

        shown = await smallest(manifests_before(life.path, life.died_seq), ends)
        life.ended = {act.number: Ended(KubeletEndedError(f"{life.died}\n{shown}"))}

    async def _live_one(self, life: Life, ended: Callable[[str], None]) -> None:
        try:
            played = await self.stage.play(
                life.acts,
                shared=life.shared,
                concurrency=self._options.concurrency,
                ended=lambda act: ended(act.name),
                watch=partial(self._watched, life) if self._options.fail_fast else None,
                stop=self._stop,
                log=self.log_of(life.name),
                urgent=life.urgent,
            )
        except Exception as error:  # noqa: BLE001 - whatever ends a life, the others go on
            life.error = error
            life.ended = {act.number: Ended(error, failure_report(error)) for act in life.acts}
            return
        if not played.trace:
            return
        life.path = self._folder / f"{life.name}.jsonl"
        write_trace(life.path, played.trace)
        by_number = {act.number: act.name for act in life.acts}
        life.owners = [None if each is None else by_number.get(each) for each in played.owners]
        life.ended, life.died, life.alive = played.ended, played.died, played.alive
        life.died_seq, life.started = played.died_seq, played.started
        if self._stop.is_set():
            life.acts = [act for act in life.acts if act.number in life.ended]

    def _begin_judging(self, life: Life) -> None:
        """Have the trace of a life judged while others are played."""
        if life.error is not None or not life.path.name:
            return
        if self._options.fail_fast:
            life.judged = whole, _ = self._judged(life.name)
            self._first_break.look_at(shared_out(whole, life.owners, ())[0] if life.shared else whole)
        elif self._judging is not None:
            try:
                self._judging.add(life.name)
            except ProcessDiedError:
                self._end_judging()

    def log_of(self, name: str) -> Path:
        """Where the log of the kubelet of this life is kept, if it is a process."""
        return self._folder.parent / LOGS / f"{name}.log"

    def _judge(self, life: Life) -> None:
        first = "" if life.shared else life.acts[0].name
        if life.error is not None:
            for act in life.acts:
                nothing = Judged(Trace(life.path.name, None, None, None, act.name, 0), {}, ())
                self._take(act, life.ended[act.number], nothing, "")
            return
        whole, wrong = life.judged or self._verdicts(life.name)
        shares = {first: whole}
        if life.shared:
            whole, shares = shared_out(whole, life.owners, [act.name for act in life.acts])
        numbers = {act.name: act.number for act in life.acts if life.shared}
        self.lives.append(with_log(whole, life.path, self.log_of(life.name), life.started, numbers))
        for act in life.acts:
            self._take(act, life.ended[act.number], shares[act.name], wrong)

    def _verdicts(self, name: str) -> tuple[Judged, str]:
        """What was found of a life while others were played, or else is found now."""
        if self._judging is not None:
            try:
                return self._judging.take(name)
            except ProcessDiedError:
                self._end_judging()
        return self._judged(name)

    def _judged(self, name: str) -> tuple[Judged, str]:
        """The verdicts on a life of that name, and what failed in judging."""
        scenario = name if name in self._scenarios else None
        return judge(self._folder / f"{name}.jsonl", self._contracts, scenario)

    def _judged_beside(self, name: str) -> tuple[Judged, str]:
        """The same in a process of its own, for which no kubelet has to wait."""
        os.nice(max(0, NICENESS + _NICER - os.nice(0)))
        return self._judged(name)

    def _end_judging(self) -> None:
        if self._judging is not None:
            self._judging.close()
            self._judging = None

    def _watched(
        self, life: Life, header: Header, owner: Callable[[int], str | None]
    ) -> Callable[[Record], None]:
        judging = Judge(life.name, header, self._contracts, parse_version(header.kubernetes or ""))
        return self._first_break.listener(judging, owner)

    def _name_suspects(self, life: Life) -> None:
        """Name all scenarios that were being played when a kubelet ended that none of them ends alone."""
        if not life.again or any(each.died for each in life.again):
            return
        lived = _names(each for each in life.again if each.path.name)
        lost = _names(each for each in life.again if not each.path.name)
        lines = [
            life.died,
            lived and f"being played then, and none of them ends it alone: {lived}",
            lost and f"being played then, and could not be played again: {lost}",
            f"pods then: {' '.join(alive(manifests_before(life.path, life.died_seq)))}",
        ]
        text = "\n".join(filter(None, lines))
        for each in life.again:
            name = each.acts[0].name
            if name in self._played:
                self._played[name] = replace(self._played[name], died=text)

    def _take(self, act: Act, ended: Ended, judged: Judged, wrong: str) -> None:
        """What came of one scenario of a life that was judged, or why that failed."""
        if isinstance(ended.error, NotPossibleError):
            self._missing[act.name] = f"needs {ended.error}"
        scenario = self._scenarios[act.name]
        unmet = failed = died = ""
        if isinstance(ended.error, KubeletEndedError):
            died = str(ended.error)
        elif ended.error is not None:
            unmet, failed = classify_failure(ended.error, ended.report, scenario.function)
            if unmet and ended.log:
                unmet = "\n".join([unmet, "the kubelet's log ends:", *(f"  {line}" for line in ended.log)])
        self._played[act.name] = Played(
            act.name,
            judged,
            unmet,
            wrong or failed,
            scenario.named.place,
            scenario.named.file,
            died,
            self._seconds.get(act.name, 0.0),
            scenario_of(scenario.function).witnesses,
        )

    def _act(self, name: str, arguments: Mapping[str, Any] | None = None) -> Act:
        scenario = self._scenarios[name]
        given = {**(scenario.arguments or {}), **(arguments or {})}

        async def on(target: Target) -> None:
            began = self.stage.clock.monotonic()
            self.plan.begin(name, began)
            try:
                await scenario.function(**{**given, "node": Node(target)})
            finally:
                self._seconds[name] = self.stage.clock.monotonic() - began

        declared, placement = scenario_of(scenario.function), self.plan.placements[name]
        settings = dict(declared.settings)
        return Act(scenario.named.place, name, on, settings, placement.wait_seconds_max, declared.exempt)

    def close(self) -> None:
        """Leave nothing behind."""
        self._end_judging()
        try:
            self._runner.run(self.stage.close())
        finally:
            self._runner.close()


def _names(lives: Iterable[Life]) -> str:
    return " ".join(sorted(each.acts[0].name for each in lives))
