"""What a record says of its run: the types of run.json, from which every report is rendered.

`run.schema.json` beside this module is the published form. Paths of traces are relative to the record.
"""

from collections import Counter
from enum import StrEnum

from msgspec import Struct

from kubelet_conformance.contract.applicability import parse_version
from kubelet_conformance.contract.catalogue import rows
from kubelet_conformance.contract.verdicts import Verdict

SCHEMA = 3
"""The version of the form; a change that can break a reader raises it."""


class Kind(StrEnum):
    """What made a record: the command, or what `run` was asked to play."""

    RUN = "run"
    HISTORIES = "histories"
    SWEEP = "sweep"
    RUNTIME = "runtime"
    CHECK = "check"


class Ended(StrEnum):
    """How a run ended."""

    COMPLETE = "complete"
    INTERRUPTED = "interrupted"
    UNFINISHED = "unfinished"
    """It is not over, or its process was ended: the record has what was over by then."""

    @property
    def words(self) -> str:
        """How it ended, as text in reports."""
        return "not finished" if self is Ended.UNFINISHED else self.value


class Target(Struct, frozen=True, kw_only=True):
    """What was judged; empty for traces, which say themselves what they are of.

    Attributes:
        kubelet: the kubelet that was played on, as it was named; empty where the runtime was called directly.
        then_kubelet: the kubelet of another version that takes turns with it, if one does.
        runtime: the runtime, with its version where it reports one.
        kubernetes: the version whose behaviour was asked for.
        gates: the feature gates that were set for the whole run.
        config: the file with further configuration of the kubelet.
        seed: the seed of all chance.
        address: where the runtime was called directly.
        known: the baseline that comes along for this target, if it has one.
    """

    kubelet: str = ""
    then_kubelet: str = ""
    runtime: str = ""
    kubernetes: str = ""
    gates: tuple[str, ...] = ()
    config: str = ""
    seed: int = 0
    address: str = ""
    known: str = ""

    @property
    def words(self) -> str:
        """The target in words."""
        if self.address:
            known = f", less the known deviations of {self.known}" if self.known else ""
            return f"runtime {self.runtime}, called at {self.address}{known}"
        if not self.kubelet:
            return "recorded traces"
        kubelet = f"{self.kubelet}, in turns with {self.then_kubelet}" if self.then_kubelet else self.kubelet
        return f"kubelet {kubelet} (Kubernetes {self.kubernetes}) and runtime {self.runtime}"


class Proof(Struct, frozen=True, kw_only=True):
    """One break of a contract: where it is seen in a trace, and what went wrong.

    Attributes:
        seq: the records that prove it.
        pod: the pod that it is about, as NAMESPACE/NAME; empty where it is about the node as a whole.
        due: in how many seconds something was expected that did not come; None for every other break.
        t: when it was broken, or certain to be, in seconds of the trace.
        deviation: the baseline's reason, where a baseline knows this break.
        log: what the kubelet wrote in its log at that moment.
        again: the command that plays it again; empty where only traces were judged.
    """

    trace: str
    seq: tuple[int, ...]
    text: str
    clause: str = "main"
    scenario: str | None = None
    pod: str = ""
    due: float | None = None
    t: float = 0.0
    deviation: str | None = None
    log: tuple[str, ...] = ()
    again: str = ""


class ContractResult(Struct, frozen=True, kw_only=True):
    """The verdict on one contract over all traces.

    Attributes:
        activations: how often its precondition came true.
        breaks: how often it was broken; `evidence` is bounded.
        inconclusive: how often it seemed broken, and a stall of the machine may be why.
        scored: false where it is broken, but newer than the requirements of the releases that break it.
        follows_from: where each of its breaks may follow from what the runtime did wrong before: what that
            breaks.
        clauses: the names of its clauses.
        sentences: what a clause demands, by its name, where that is not the whole rule.
        reasons: why it is not applicable somewhere, or what failed in judging it.
        versions: the verdict by Kubernetes version.
    """

    id: str
    area: str
    level: str
    verdict: Verdict
    activations: int
    breaks: int = 0
    inconclusive: int = 0
    scored: bool = True
    follows_from: tuple[str, ...] = ()
    evidence: tuple[Proof, ...] = ()
    rule: str = ""
    source: str = ""
    clauses: tuple[str, ...] = ()
    sentences: dict[str, str] = {}
    reasons: tuple[str, ...] = ()
    versions: dict[str, Verdict] = {}

    def sentence(self, clause: str) -> str:
        """What this clause demands."""
        return self.sentences.get(clause, self.rule)

    @property
    def binds_runtime(self) -> bool:
        """Whether it is the runtime that it binds, by the catalogue."""
        return self.id in rows() and rows()[self.id].addressee == "runtime"

    def fails(self, *, strict: bool, require_exercised: bool) -> bool:
        """Whether its verdict makes the run fail."""
        if self.verdict is Verdict.NOT_EXERCISED:
            return require_exercised
        levels = {"MUST", "SHOULD"} if strict else {"MUST"}
        return self.verdict is Verdict.BROKEN and self.level in levels and self.scored


class TraceResult(Struct, frozen=True, kw_only=True):
    """One trace that was judged.

    Attributes:
        kubernetes: the version that it was judged by; `kubernetes_in_header` is what it states itself.
        seconds: how long it lasts, in its own time.
        truncated_after_line: its last whole line, where it is truncated and was judged up to there.
        stalls: how often the machine stalled, and `stalled_seconds` how long in all.
    """

    path: str
    kubernetes: str | None = None
    kubernetes_in_header: str | None = None
    runtime: str | None = None
    scenario: str | None = None
    records: int = 0
    seconds: float = 0.0
    truncated_after_line: int | None = None
    stalls: int = 0
    stalled_seconds: float = 0.0

    @property
    def overridden(self) -> bool:
        """Whether it was judged by another version than it states."""
        stated, judged_by = self.kubernetes_in_header, self.kubernetes
        return (
            stated is not None and judged_by is not None and parse_version(stated) != parse_version(judged_by)
        )


class ScenarioResult(Struct, frozen=True, kw_only=True):
    """What came of one scenario.

    Attributes:
        trace: the trace of its node, which others may share.
        records: how many records of that are its own.
        seconds: the time that it took to play it, and to judge it where its trace is its own.
        exercised: the contracts whose precondition came true in its trace, or in its part of a shared one.
        witnesses: the contracts that it declares to exercise.
        broken: the contracts that it broke.
        unmet: the wait that timed out, or the line of the scenario that failed; empty if none.
        endless: whether that is a play that repeated itself without end.
        failed: what went wrong in the suite itself; the first line says it, a traceback follows.
        died: how the kubelet ended, and what it wrote last, if it did by itself.
        died_as_known: whether the baseline knows that.
    """

    name: str
    trace: str
    records: int = 0
    seconds: float = 0.0
    exercised: tuple[str, ...] = ()
    witnesses: tuple[str, ...] = ()
    broken: tuple[str, ...] = ()
    unmet: str = ""
    endless: bool = False
    failed: str = ""
    died: str = ""
    died_as_known: bool = False


class LeftOut(Struct, frozen=True):
    """A scenario that is not applicable to the target: `reason` is what it needs and there is not."""

    name: str
    reason: str


class NotPlayed(Struct, frozen=True):
    """The scenarios that were not played because of an option, and the contracts that only they exercise."""

    option: str
    scenarios: tuple[str, ...]
    contracts: tuple[str, ...]


class Unreadable(Struct, frozen=True):
    """An input that could not be judged."""

    path: str
    line: int | None
    problem: str
    remedy: str

    def __str__(self) -> str:
        where = self.path if self.line is None else f"{self.path}:{self.line}"
        return f"{where}: {self.problem}; {self.remedy}"


class BaselineEntry(Struct, frozen=True):
    """One entry of a baseline, and the line of the file where it stands."""

    id: str
    clause: str | None
    scenario: str | None
    reason: str
    line: int | None

    def __str__(self) -> str:
        narrowed = ("clause", self.clause), ("scenario", self.scenario)
        return ", ".join([self.id, *(f"{key} {value}" for key, value in narrowed if value is not None)])


class BaselineResult(Struct, frozen=True):
    """The baseline: its entries that were exercised and never broken, and those that were broken."""

    path: str
    stale: tuple[BaselineEntry, ...] = ()
    matched: tuple[BaselineEntry, ...] = ()


class TimedOut(Struct, frozen=True):
    """A wait of a scenario that timed out, and that no broken contract explains."""

    trace: str
    seq: int
    contract: str
    awaited: str


class Found(Struct, frozen=True, kw_only=True):
    """A history that broke something.

    Attributes:
        broke: the id of a contract, or what else it broke.
        name: what its trace and its scenario are called.
        file: where it is kept.
        words: the history in words, a line each.
        scenario: the same as a scenario, ready to be pasted.
        again: the command that plays it again.
    """

    broke: str
    name: str
    file: str
    words: tuple[str, ...]
    scenario: str
    again: str


class Histories(Struct, frozen=True):
    """How many histories were played, how many were drawn again and not played, and what was found."""

    played: int
    repeated: int = 0
    found: tuple[Found, ...] = ()


class Run(Struct, frozen=True, kw_only=True):
    """A whole run.

    Attributes:
        suite: the version of this suite.
        command: the command that does the same again, word by word.
        started: when it began, as RFC 3339; `seconds` is how long it took.
        exit_code: what it ended with.
        strict: whether a broken SHOULD fails it.
        require_exercised: whether a contract that was not exercised fails it.
        chosen: the scenarios that were asked for; empty for all.
        shard: the part that this is of a run in several, such as 2/5; empty for a whole one.
        traces: the traces that were judged, in the order of judging.
        waits: waits that timed out, and that no broken contract explains.
        not_applicable: the scenarios that the target cannot be put through.
        not_played: what an option kept from being played.
        plays: how many plays with a fault a sweep has made; its scenarios are those in which something broke.
    """

    schema: int = SCHEMA
    suite: str = ""
    kind: Kind
    ended: Ended = Ended.COMPLETE
    command: tuple[str, ...] = ()
    started: str = ""
    seconds: float = 0.0
    exit_code: int = 0
    target: Target
    strict: bool = False
    require_exercised: bool = False
    chosen: tuple[str, ...] = ()
    shard: str = ""
    totals: dict[Verdict, int]
    contracts: tuple[ContractResult, ...]
    scenarios: tuple[ScenarioResult, ...] = ()
    traces: tuple[TraceResult, ...] = ()
    not_applicable: tuple[LeftOut, ...] = ()
    not_played: NotPlayed | None = None
    histories: Histories | None = None
    plays: int = 0
    unreadable: tuple[Unreadable, ...] = ()
    baseline: BaselineResult | None = None
    waits: tuple[TimedOut, ...] = ()

    def having(self, verdict: Verdict) -> list[ContractResult]:
        """The contracts with this verdict, in the order of the catalogue."""
        return [each for each in self.contracts if each.verdict is verdict]

    def fails(self, contract: ContractResult) -> bool:
        """Whether the verdict on a contract makes this run fail."""
        # What one part does not exercise another may.
        is_whole = not self.shard
        return contract.fails(strict=self.strict, require_exercised=self.require_exercised and is_whole)

    def by_area(self) -> dict[str, Counter[Verdict]]:
        """How many contracts of each area have which verdict."""
        counts: dict[str, Counter[Verdict]] = {}
        for each in self.contracts:
            counts.setdefault(each.area, Counter())[each.verdict] += 1
        return counts

    @property
    def stale(self) -> tuple[BaselineEntry, ...]:
        """The entries of the baseline that were exercised and never broken."""
        return () if self.baseline is None else self.baseline.stale

    @property
    def failed(self) -> list[ScenarioResult]:
        """Scenarios in which the suite itself failed."""
        return [each for each in self.scenarios if each.failed]

    @property
    def died(self) -> list[ScenarioResult]:
        """Scenarios in which the kubelet ended by itself, unless the baseline knows that."""
        return [each for each in self.scenarios if each.died and not each.died_as_known]

    @property
    def unexplained(self) -> list[ScenarioResult]:
        """Scenarios that timed out or failed although no contract is broken in their trace.

        No broken contract explains that a play does not end.
        """
        return [each for each in self.scenarios if each.unmet and (each.endless or not each.broken)]

    def reasons(self) -> dict[str, list[str]]:
        """The scenarios that are not applicable by the reason, most frequent reasons first."""
        found: dict[str, list[str]] = {}
        for each in self.not_applicable:
            found.setdefault(each.reason, []).append(each.name)
        return dict(sorted(found.items(), key=lambda item: -len(item[1])))
