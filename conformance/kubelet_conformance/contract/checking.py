"""Judge trace files one after another, then give one verdict per contract over all of them."""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from io import BytesIO
from pathlib import Path

from kubelet_conformance.contract.applicability import Version, is_required, parse_version
from kubelet_conformance.contract.baseline import Baseline, Deviation
from kubelet_conformance.contract.catalogue import rows
from kubelet_conformance.contract.deferred_gc import deferred_gc
from kubelet_conformance.contract.definition import Clause, Contract
from kubelet_conformance.contract.judge import IsCertain, Judge
from kubelet_conformance.contract.lateness_policy import LatenessPolicy
from kubelet_conformance.contract.stalls import AS_RECORDED, Stalls, View
from kubelet_conformance.contract.verdicts import Outcome, Verdict, graver
from kubelet_conformance.trace.format.errors import BodyError, TraceError
from kubelet_conformance.trace.format.reader import Reader
from kubelet_conformance.trace.format.records import Call, Expect, Record, Reply, Stall

PROGRESS_RECORDS = 50_000
"""How many records pass between two reports of progress."""
REPORTED = (
    Verdict.KEPT,
    Verdict.BROKEN,
    Verdict.KNOWN_DEVIATION,
    Verdict.NOT_EXERCISED,
    Verdict.NOT_APPLICABLE,
    Verdict.ERROR,
)
"""The verdicts in the order of reports."""
_AT_LEAST_APPLICABLE = frozenset(Verdict) - {Verdict.NOT_APPLICABLE}
_NOTED = frozenset({Expect, Stall})
_WAITS_MAX = 1000


@dataclass(frozen=True, slots=True)
class Wait:
    """A scenario's wait that timed out."""

    trace: str
    seq: int
    contract: str
    awaited: str


@dataclass(frozen=True, slots=True)
class Trace:
    """One trace that was judged."""

    path: str
    kubernetes: Version | None
    """The version it was judged by."""
    stated: str | None
    """The version that its header states."""
    runtime: str | None
    scenario: str | None
    records: int
    stalls: tuple[Stall, ...] = ()
    """Each span in which the machine stood still."""
    has_two_kubelets: bool = False
    """Kubelets of two versions take turns in it: each may keep what the other is known to break."""
    cut_line: int | None = None
    """Its last whole line, where it is truncated and was judged up to there."""
    seconds: float = 0.0
    """How long it lasts, in its own time."""
    gates: frozenset[str] = frozenset()
    """The feature gates that its header says are on."""

    @property
    def version(self) -> str | None:
        """The version it was judged by, as text such as 1.32."""
        return None if self.kubernetes is None else f"{self.kubernetes[0]}.{self.kubernetes[1]}"

    @property
    def overridden(self) -> bool:
        """Whether it was judged by another version than its header states."""
        return self.stated is not None and parse_version(self.stated) != self.kubernetes


@dataclass(frozen=True, slots=True)
class Judged:
    """The result of judging one trace."""

    trace: Trace
    outcomes: dict[str, Outcome]
    waits: tuple[Wait, ...]


@deferred_gc()
def judge_file(  # noqa: PLR0913 - the trace, its contracts, the options and the progress callback
    path: str,
    contracts: Iterable[Contract],
    *,
    kubernetes: Version | None = None,
    progress: Callable[[int], None] | None = None,
    content: bytes | None = None,
    allow_truncated: bool = False,
) -> Judged:
    """Judge one trace file; `kubernetes` replaces the version that the header states.

    With `content` that is judged, and `path` only names it. Where the header says `patient` nothing is
    overdue while calls fail or are held up (see `LatenessPolicy`). `progress` is called now and then with the
    number of records.
    What a stall of the machine may have caused is inconclusive (see `Stalls`), unless a pipe is read.
    Raises TraceError, with the line, for anything that is not a valid trace. With `allow_truncated` one that
    is cut off is judged up to there: what is owed then is pending.
    """
    contracts = list(contracts)

    def read(
        contracts: Iterable[Contract], view: View = AS_RECORDED, is_certain: IsCertain | None = None
    ) -> Judged:
        file = None if content is None else BytesIO(content)
        with Reader(path, file, allow_truncated=allow_truncated) as reader:
            stated = _stated_version(reader)
            lateness = LatenessPolicy() if reader.header.patient else None
            excused = view.excused if lateness is None else lateness.until
            judge = Judge(path, reader.header, contracts, kubernetes or stated, excused, is_certain)
            return _judged(judge, reader, view, lateness, progress)

    judged = read(contracts)
    if not judged.trace.stalls or (content is None and not Path(path).is_file()):
        return judged
    broken = [each for each in contracts if judged.outcomes[each.id].breaks]
    if broken:
        breaks = [_breaks(partial(read, broken, view)) for view in Stalls(judged.trace.stalls).views()]
        certain = breaks[0].intersection(*breaks)
        judged.outcomes.update(read(broken, is_certain=lambda clause, seq: (clause, seq) in certain).outcomes)
    return judged


def _breaks(read: Callable[[IsCertain], Judged]) -> set[tuple[Clause, int]]:
    """What is broken in a reading: each clause with the first record that it is about."""
    found = set[tuple[Clause, int]]()

    def is_certain(*at: *tuple[Clause, int]) -> bool:
        found.add(at)
        return False

    read(is_certain)
    return found


def _judged(
    judge: Judge,
    reader: Reader,
    view: View,
    lateness: LatenessPolicy | None,
    progress: Callable[[int], None] | None,
) -> Judged:
    """What the judge says of the trace, as seen in a view of its time."""
    feed, observe = judge.feed, lateness.observe if lateness is not None else None
    count, waits, stalls = 0, list[Wait](), list[Stall]()
    for count, record in enumerate(view.of(reader), start=1):
        try:
            if observe is not None:
                observe(record)
            feed(record)
        except BodyError as error:
            raise reader.bad(f"{_named(record)}: {error.problem}", error.remedy) from None
        except Exception as error:
            error.add_note(f"while judging {judge.trace}, line {reader.line}")
            raise
        if type(record) in _NOTED:  # This runs all the time.
            if isinstance(record, Stall):
                stalls.append(record)
            elif isinstance(record, Expect) and not record.met and len(waits) < _WAITS_MAX:
                waits.append(Wait(judge.trace, record.seq, record.contract, record.awaited))
        if progress is not None and not count % PROGRESS_RECORDS:
            progress(count)
    header = reader.header
    trace = Trace(
        judge.trace,
        judge.kubernetes,
        header.kubernetes,
        header.runtime,
        header.scenario,
        count,
        tuple(stalls),
        header.then_kubernetes is not None,
        reader.cut_line,
        judge.now,
        header.gates,
    )
    return Judged(trace, judge.outcomes(), tuple(waits))


def _stated_version(reader: Reader) -> Version | None:
    header, found = reader.header, list[Version]()
    for name, stated in (("kubernetes", header.kubernetes), ("then_kubernetes", header.then_kubernetes)):
        if stated is None:
            continue
        try:
            found.append(parse_version(stated))
        except ValueError as error:
            raise reader.bad(f"the trace header is wrong: {error}", f"mend the field {name}") from None
    return found[0] if header.kubernetes is not None else None


def _named(record: Record) -> str:
    """The record as an error message names it."""
    if isinstance(record, Call):
        return f"the request of {record.rpc}"
    if isinstance(record, Reply):
        return f"the reply of {record.call.rpc}, or its request"
    return f"the {record.kind} record"


@dataclass(slots=True)
class Result:
    """The verdict over all traces for one contract."""

    contract: Contract
    outcome: Outcome = field(default_factory=lambda: Outcome(Verdict.NOT_APPLICABLE))
    versions: dict[str, Verdict] = field(default_factory=dict[str, Verdict])
    """The verdict by each Kubernetes version that was judged for; `unknown` where a trace does not
    state it.
    """
    reasons: list[str] = field(default_factory=list[str])
    """Why it did not apply, each reason once."""

    @property
    def counts(self) -> bool:
        """Whether a break counts: the release must keep it, or another package brings it.

        Breaks of newer rules are only reported.
        """
        broken = [version for version, verdict in self.versions.items() if verdict is Verdict.BROKEN]
        own = bool(self.contract.row.package)
        return any(own or is_required(self.contract.id, version) for version in broken)

    def add(self, outcome: Outcome, version: str) -> None:
        """Add the outcome on one more trace."""
        is_idle = outcome.verdict is Verdict.NOT_EXERCISED and not outcome.inconclusive
        if is_idle and self.versions.get(version) in _AT_LEAST_APPLICABLE:
            return  # It adds nothing new, as most outcomes of a run.
        earlier = self.versions.get(version, outcome.verdict)
        self.versions[version] = graver(earlier, outcome.verdict)
        if outcome.verdict is Verdict.NOT_APPLICABLE and outcome.reason not in self.reasons:
            self.reasons.append(outcome.reason)
        self.outcome.add(outcome)


class Check:
    """The results of a run over several traces; a baseline names the known breaks."""

    is_partial: bool = False
    """Only some scenarios were played: one that would break what the baseline names may be missing."""

    def __init__(self, contracts: Iterable[Contract], baseline: Baseline | None = None) -> None:
        judged = {contract.id: contract for contract in contracts}
        self.results = {each: Result(judged[each]) for each in rows() if each in judged}
        self.baseline = baseline
        self.traces: list[Trace] = []
        self.errors: list[TraceError] = []
        """The inputs that could not be judged."""
        self._waits: list[Wait] = []

    @property
    def contracts(self) -> list[Contract]:
        """What is judged, in the order of the catalogue."""
        return [result.contract for result in self.results.values()]

    def add(self, judged: Judged) -> None:
        """Add one more trace."""
        self.traces.append(judged.trace)
        version = judged.trace.version or "unknown"
        for contract, outcome in judged.outcomes.items():
            self.results[contract].add(self._known(contract, outcome, judged.trace), version)
        # What was broken in a trace, known or not, explains a wait there that names no contract.
        bad = {Verdict.BROKEN, Verdict.ERROR}
        broke = any(outcome.verdict in bad for outcome in judged.outcomes.values())
        waits = (wait for wait in judged.waits if wait.contract or not broke)
        self._waits += [wait for wait in waits if self._concerns(wait)]

    def _concerns(self, wait: Wait) -> bool:
        """The wait is for a contract that is judged here, or for none that is known."""
        return wait.contract in self.results or wait.contract not in rows()

    def totals(self) -> dict[Verdict, int]:
        """How many contracts have each verdict, in the order of reports."""
        count = Counter(result.outcome.verdict for result in self.results.values())
        return {verdict: count[verdict] for verdict in REPORTED}

    def unexplained(self) -> list[Wait]:
        """Waits that timed out although their contract was not broken."""
        bad = {Verdict.ERROR, Verdict.BROKEN, Verdict.KNOWN_DEVIATION}
        explained = {key for key, result in self.results.items() if result.outcome.verdict in bad}
        return [wait for wait in self._waits if wait.contract not in explained]

    def knows(self, contract: str, judged: Judged) -> bool:
        """Whether the baseline names all that breaks a contract in a trace."""
        outcome = judged.outcomes.get(contract)
        if outcome is None:
            return False
        return self._known(contract, outcome, judged.trace).verdict is Verdict.KNOWN_DEVIATION

    def _known(self, contract: str, outcome: Outcome, trace: Trace) -> Outcome:
        """The outcome as the baseline sees it, if there is one."""
        return outcome if self.baseline is None else self.baseline.applied(contract, outcome, trace.gates)

    def stale(self) -> list[Deviation]:
        """The baseline's entries that were exercised and never broken.

        One that several scenarios may break counts where all were played. Of two kubelets that
        take turns each may keep what the other is known to break.
        """
        has_two = any(each.has_two_kubelets for each in self.traces)
        stale = [] if self.baseline is None or has_two else self.baseline.stale()
        return [each for each in stale if each.has_one_scenario or not self.is_partial]
