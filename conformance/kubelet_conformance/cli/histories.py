"""`run --histories`: play generated histories on a target and judge them."""

import shlex
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import click

from kubelet_conformance.campaigns.histories.campaign import Campaign, HistoriesRequest
from kubelet_conformance.campaigns.histories.history import kept_in, read
from kubelet_conformance.campaigns.histories.play import NOT_CONVERGED
from kubelet_conformance.campaigns.histories.search import CHUNK
from kubelet_conformance.campaigns.live_histories import LiveCampaign
from kubelet_conformance.cli.selection import known_deviations, refuse_real_runtime
from kubelet_conformance.contract.applicability import USUAL_VERSION, is_required
from kubelet_conformance.contract.checking import Check
from kubelet_conformance.contract.definition import Contract
from kubelet_conformance.plugin.options import Options
from kubelet_conformance.plugin.session import Session
from kubelet_conformance.reports.output import complain
from kubelet_conformance.reports.progress import Steps
from kubelet_conformance.run_record.conclusion import Exit, gravest
from kubelet_conformance.run_record.model import Kind, Target
from kubelet_conformance.run_record.played_run import Played, PlayedRun
from kubelet_conformance.run_record.results import Scoring
from kubelet_conformance.run_record.writer import RecordWriter
from kubelet_conformance.targets.choice import Choice
from kubelet_conformance.targets.kubelet_target.choosing import resolved
from kubelet_conformance.targets.opening import open_stage


@dataclass(frozen=True, slots=True)
class _Commands:
    """The commands of a run of histories."""

    options: Options
    request: HistoriesRequest
    files: dict[str, str]

    def command(self) -> tuple[str, ...]:
        """The command of the whole run, word by word."""
        request = self.request
        given = [f"--histories={request.total}"] if request.total else []
        given += ["--guided"] if request.guided else []
        if request.shards > 1:
            given.append(f"--shard={request.shard}/{request.shards}")
        given += [f"--history={kept.path}" for kept in request.kept if not request.total]
        return ("kubelet-conformance", "run", *self.options.ids, *given, *self._chosen())

    def again(self, contract: str, played: Iterable[Played]) -> str:
        """The command that plays these histories again and judges them by this contract, or by all."""
        files = [f"--history={self.files[each.scenario]}" for each in played if each.scenario in self.files]
        ids = [contract] if contract else []
        return shlex.join(["kubelet-conformance", "run", *ids, *files, *self._chosen(seed=not files)])

    def _chosen(self, *, seed: bool = True) -> list[str]:
        """The options that choose the target, where they are not as usual."""
        usual = Choice(kubernetes=USUAL_VERSION)
        names = ("kubelet", "then_kubelet", "runtime", "kubernetes", *(["seed"] if seed else []))
        given = {name: getattr(self.options.choice, name) for name in names}
        unusual = {name: value for name, value in given.items() if value != getattr(usual, name)}
        return [f"--{name.replace('_', '-')}={value}" for name, value in unusual.items()]


def play_histories(given: dict[str, Any]) -> int:
    """Play what these options of `run` ask for, deliver the report, and say how it ended."""
    options = _options(given)
    request = _wish(given)
    folder = Path(given["histories_folder"])
    progress = Steps(request.count, "histories played")
    session: Session | None = None
    try:
        with closing(RecordWriter(options.record)) as writer:
            if options.choice.is_live:
                session = Session(options, str(writer.traces), reports=False)
            campaign = (
                _in_process(options, writer.traces, folder, progress)
                if session is None
                else LiveCampaign(session, _counting(options), folder)
            )
            writer.begin(_played(options, request, campaign).result())
            interrupted = _is_interrupted(campaign, request)
            progress.clear()
            if interrupted:
                complain("interrupted")
            run = replace(_played(options, request, campaign), interrupted=interrupted)
            record = writer.finish(run.result())
            if writer.problem:
                complain(writer.problem)
            return gravest(options.delivery.deliver(record, writer), Exit(record.run.exit_code))
    except OSError as error:
        raise click.ClickException(f"{error.filename}: cannot be written: {error.strerror}") from None
    finally:
        progress.clear()
        if session is not None:
            session.close()


def _is_interrupted(campaign: Campaign | LiveCampaign, request: HistoriesRequest) -> bool:
    """Play all; whether that was interrupted after something was played."""
    try:
        campaign.run(request)
    except KeyboardInterrupt:
        if not campaign.played:
            raise
        return True
    return False


def _played(options: Options, request: HistoriesRequest, campaign: Campaign | LiveCampaign) -> PlayedRun:
    """What was played by now."""
    choice = options.choice
    return PlayedRun(
        campaign.check,
        tuple(each.played for each in campaign.found),
        Target(
            kubelet=choice.kubelet, runtime=choice.runtime, kubernetes=choice.kubernetes, seed=choice.seed
        ),
        _Commands(options, request, {each.played.scenario: each.file for each in campaign.found}),
        Kind.HISTORIES,
        Scoring(options.strict, options.require_exercised),
        left_out=campaign.left_out,
        shard=options.part,
        histories=campaign.played,
        repeated=campaign.repeated,
        found=tuple(campaign.found),
    )


def _in_process(options: Options, traces: Path, folder: Path, progress: Steps) -> Campaign:
    """Histories on virtual time."""
    open_stage(options.choice)
    contracts = options.contracts()
    check = Check(contracts, known_deviations(options.baseline))
    return Campaign(options.choice, contracts, _counting(options), check, traces, folder, progress.begin)


def _counting(options: Options) -> Callable[[str], bool]:
    """Whether it is a find that something was broken."""
    return partial(_counts, options, {each.id: each for each in options.contracts()})


def _counts(options: Options, contracts: dict[str, Contract], what: str) -> bool:
    """Whether it is a find that this was broken: the id of a contract, or what else a history may break."""
    contract = contracts.get(what)
    if contract is None:
        return not (what == NOT_CONVERGED and options.ids)
    levels = {"MUST", "SHOULD"} if options.strict else {"MUST"}
    return contract.level in levels and is_required(what, options.choice.kubernetes)


def _options(given: dict[str, Any]) -> Options:
    options = replace(Options.given(given), scenarios=())
    refuse_real_runtime(options.choice, "histories make")
    choice = resolved(options.choice)
    return replace(options, choice=replace(choice, kubernetes=choice.kubernetes or USUAL_VERSION))


def _wish(given: dict[str, Any]) -> HistoriesRequest:
    named: Sequence[str] = given["history"]
    try:
        kept = read(map(Path, named)) if named else kept_in(Path(given["histories_folder"]))
    except OSError as error:
        raise click.ClickException(f"{error.filename}: cannot be read: {error.strerror}") from None
    part, parts = given["shard"] or (1, 1)
    most = -(-(given["histories"] or 0) // CHUNK)
    if most and parts > most:
        raise click.UsageError(
            f"--shard {part}/{parts}: {CHUNK} histories are drawn together, so {given['histories']} of them "
            f"make {most} parts at most"
        )
    # Kept histories are played once, in the first part.
    return HistoriesRequest(
        given["histories"] or 0,
        given["seed"],
        part,
        parts,
        kept if part == 1 or named else (),
        given["guided"],
    )
