"""All scenarios of one pytest run: what came of each, and the report at the end."""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from kubelet_conformance.contract.applicability import USUAL_VERSION, parse_version
from kubelet_conformance.contract.baseline import Baseline
from kubelet_conformance.contract.checking import Check, Judged, Trace
from kubelet_conformance.contract.definition import Contract
from kubelet_conformance.contract.verdicts import Evidence, Outcome, Verdict
from kubelet_conformance.contracts import every_contract
from kubelet_conformance.plugin.live.live_run import LiveRun
from kubelet_conformance.plugin.naming import Named
from kubelet_conformance.plugin.options import Options
from kubelet_conformance.plugin.play import play
from kubelet_conformance.plugin.trace_judge import breaks_text
from kubelet_conformance.reports.baseline_file import baseline_text
from kubelet_conformance.run_record.files import write_whole
from kubelet_conformance.run_record.model import ContractResult, NotPlayed, Target
from kubelet_conformance.run_record.played_run import ENDS, Played, PlayedRun, scenario_result
from kubelet_conformance.run_record.record import Record
from kubelet_conformance.run_record.results import Scoring, contract_result
from kubelet_conformance.run_record.writer import RecordWriter
from kubelet_conformance.targets.kubelet_target.choosing import resolved
from kubelet_conformance.targets.opening import open_stage


class Session:
    """Plays scenarios and gathers their verdicts; raises BadInputError for what cannot be chosen.

    `folder` is where the traces go, if that has been settled; `reports` says whether this process makes the
    report, and so the record.
    """

    def __init__(self, options: Options, folder: str | None = None, *, reports: bool = True) -> None:
        self.options = options = replace(options, choice=resolved(options.choice))
        self.contracts = options.contracts()
        self._read: dict[tuple[str, ...], Baseline] = {}
        if options.baseline is not None:
            self._known([options.baseline])
        self._stage = None if options.choice.is_live else open_stage(options.choice)
        self.live = LiveRun(options, self.contracts, self._counts) if self._stage is None else None
        if self.live is not None and options.baseline is None:
            # A mistake in the target's own is said before anything is played.
            self._known(self.live.stage.baselines)
        self.played: list[Played] = []
        self.interrupted = False
        self._record: Record | None = None
        self.exercised: dict[str, tuple[str, ...]] = {}
        """The contracts that each scenario of the run is to exercise."""
        self.writer = RecordWriter(options.record) if reports else None
        self.folder = Path(folder or (self.writer.traces if self.writer is not None else "."))

    def _known(self, paths: Sequence[str]) -> Baseline | None:
        """The deviations in these files, which are read once; raises BaselineError."""
        if paths and tuple(paths) not in self._read:
            read = [Baseline.read(path, every_contract()) for path in paths]
            deviations = [each for one in read for each in one.deviations]
            self._read[tuple(paths)] = Baseline(", ".join(paths), deviations)
        return self._read.get(tuple(paths))

    def check(self, contracts: Iterable[Contract] | None = None) -> Check:
        """Verdicts to come, on all contracts if not on these.

        The baseline is the one that was named, or comes along for the target.
        """
        paths = [] if self.live is None else self.live.stage.baselines
        known = self._known(paths if self.options.baseline is None else [self.options.baseline])
        judged = self.contracts if contracts is None else contracts
        return Check(judged, None if known is None else Baseline(known.path, known.deviations))

    def play(
        self, function: Callable[..., Awaitable[None]], named: Named, arguments: Mapping[str, Any]
    ) -> Played:
        """Play one scenario here; the process that makes the report adds it to `played`."""
        if self._stage is None:
            raise RuntimeError("on a real runtime scenarios are played by LiveRun")
        path, version = self.folder / f"{named.name}.jsonl", self.options.choice.kubernetes
        played = play(function, named.name, self._stage, self.contracts, path, version, arguments)
        return replace(played, place=named.place, file=named.file)

    def failure(self, played: Played) -> str:
        """Why a scenario failed: what it broke that counts and is not known, and how it ended; or nothing."""
        wrong = self._wrong(played.judged)
        broken = f"broken: {' '.join(wrong)}" if wrong else ""
        if wrong and self.options.invocation is not None:
            # Pytest shows it; the report of `run` has it anyway.
            broken = "\n".join([broken, *breaks_text(wrong, played.judged.outcomes)])
        died = "" if played.died and self.check().knows(ENDS, played.judged) else played.died
        return "\n".join(part for part in (broken, died, played.unmet, played.failed) if part)

    def ends_run(self, played: Played) -> bool:
        """Whether nothing is to be played after this scenario."""
        return self.options.fail_fast and bool(played.died or self._wrong(played.judged))

    def _counts(self, contract: Contract, evidence: Evidence) -> bool:
        """Whether a break makes the run fail: it is required, and no baseline knows it."""
        version = parse_version(self.options.choice.kubernetes)
        trace = Trace(evidence.trace, version, None, None, evidence.scenario, 0)
        broken = {(evidence.clause, evidence.scenario)}
        outcome = Outcome(Verdict.BROKEN, 1, 1, [evidence], broken_clauses=broken)
        return bool(self._wrong(Judged(trace, {contract.id: outcome}, ())))

    def _wrong(self, judged: Judged) -> list[str]:
        """The ids of the contracts that were broken, where that counts, and of those whose judge failed."""
        bad = {Verdict.BROKEN, Verdict.ERROR}
        if not any(outcome.verdict in bad for outcome in judged.outcomes.values()):
            return []
        strict = self.options.strict
        return [
            result.id
            for result in _results(self._check_of(judged))
            if result.verdict is Verdict.ERROR or result.fails(strict=strict, require_exercised=False)
        ]

    def _check_of(self, judged: Judged) -> Check:
        """The verdicts on one trace, of the contracts that it exercised or whose judge failed."""
        every = judged.outcomes.items()
        said = {each: found for each, found in every if found.activations or found.verdict is Verdict.ERROR}
        check = self.check(each for each in self.contracts if each.id in said)
        check.add(replace(judged, outcomes=said))
        return check

    def interrupt(self) -> None:
        """Nothing more is played: the report has what was."""
        self.interrupted = True
        if self.live is not None:
            self.played = self.live.rest()
            return
        judged = {Path(each.judged.trace.path) for each in self.played}
        for trace in set(self.folder.glob("*.jsonl")) - judged:
            # It was not this scenario's turn yet, or its process was ended while it wrote.
            trace.unlink()

    def _not_played(self) -> NotPlayed | None:
        """What the options kept from being played."""
        options, left_out = self.options, () if self.live is None else self.live.left_out
        over = {*(each.scenario for each in self.played), *(each.name for each in left_out)}
        rest = [name for name in self.exercised if name not in over]
        if not rest or not (options.quick or options.fail_fast or self.interrupted):
            return None
        exercised = {each for name in over for each in self.exercised.get(name, ())}
        missed = {each for name in rest for each in self.exercised[name]} - exercised
        option = "--quick" if self.live is not None and self.live.plan.long else "--fail-fast"
        option = "the interrupt" if self.interrupted else option
        contracts = (each.id for each in self.contracts if each.id in missed)
        return NotPlayed(option, tuple(rest), tuple(contracts))

    def _run(self) -> PlayedRun:
        """What is known of the whole by now; the same in whatever order it was played."""
        options, choice = self.options, self.options.choice
        scenarios = sorted(self.played, key=lambda played: played.place)
        check = self.check()
        not_played = self._not_played()
        check.is_partial = bool(options.ids or options.scenarios or options.shard or not_played)
        lives = [played.judged for played in scenarios] if self.live is None else self.live.lives
        for judged in lives:
            check.add(judged)
        return PlayedRun(
            check,
            tuple(scenarios),
            Target(
                kubelet=choice.kubelet,
                then_kubelet=choice.then_kubelet,
                runtime=choice.runtime if self.live is None else self.live.stage.runtime,
                kubernetes=choice.kubernetes or USUAL_VERSION,
                gates=choice.gates,
                config=choice.config,
                seed=choice.seed,
            ),
            options,
            scoring=Scoring(options.strict, options.require_exercised),
            chosen=options.scenarios,
            shard=options.part,
            left_out=() if self.live is None else tuple(self.live.left_out),
            not_played=not_played,
            interrupted=self.interrupted,
        )

    def begin(self) -> None:
        """Begin the record, before the first scenario; raises RecordError."""
        if self.writer is not None:
            self.writer.begin(self._run().result())

    def take(self, played: Played) -> None:
        """A scenario is over."""
        self.played.append(played)
        # What is played on wall time is taken when all is over: the whole is written then.
        if self.live is None and self.writer is not None and self.writer.grows:
            check = self._check_of(played.judged)
            self.writer.add(scenario_result(played, check), _results(check))

    def finish(self) -> Record:
        """The record of the whole, once all is played."""
        if self._record is None:
            if self.writer is None:
                raise RuntimeError("the process that makes the report writes the record")
            self._record = self.writer.finish(self._run().result())
        return self._record

    def write_baseline(self) -> None:
        """Write what was broken as a baseline, if one is wanted; raises OSError."""
        if self.options.write_baseline is not None:
            run = self._run()
            write_whole(Path(self.options.write_baseline), baseline_text(run.check, run.target.words))

    def close(self) -> None:
        """Leave nothing behind: no node, and no traces that are not to be kept."""
        if self.live is not None:
            self.live.close()
        if self.writer is not None:
            self.writer.close()


def _results(check: Check) -> list[ContractResult]:
    return [contract_result(each) for each in check.results.values()]
