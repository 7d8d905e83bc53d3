"""Verdicts, and how those of several traces become one."""

from dataclasses import dataclass, field
from enum import StrEnum

MERGED_EVIDENCE_MAX = 100
"""How many breaks of one contract are kept as evidence over all traces; all are counted."""


class Verdict(StrEnum):
    """The verdict on a contract, in order of precedence when several are merged."""

    ERROR = "error"
    """The suite itself failed."""
    BROKEN = "broken"
    KNOWN_DEVIATION = "known_deviation"
    """Broken as the baseline expects."""
    KEPT = "kept"
    NOT_EXERCISED = "not_exercised"
    """Its precondition never became true, or its obligation was still open at the end."""
    NOT_APPLICABLE = "not_applicable"
    """Not applicable by version, channel or feature gate; declared, never inferred from a failure."""

    @property
    def words(self) -> str:
        """The verdict as text in reports."""
        return self.value.replace("_", " ")


_ORDER = list(Verdict)


def graver(first: Verdict, second: Verdict) -> Verdict:
    """The graver of two verdicts, by their order."""
    return first if first is second or _ORDER.index(first) < _ORDER.index(second) else second


@dataclass(frozen=True, slots=True)
class Evidence:
    """One place where a contract was broken: the trace, the records (by seq), and what went wrong."""

    trace: str
    scenario: str | None
    clause: str
    seq: tuple[int, ...]
    text: str
    deviation: str = ""
    """The baseline's reason, where a baseline knows this break."""
    log: tuple[str, ...] = ()
    """What the kubelet wrote in its log at that moment, where there is a log."""
    pod: str = ""
    """The pod that it is about, as NAMESPACE/NAME; empty where it is about the node as a whole."""
    due: float | None = None
    """In how many seconds something was expected that did not come; None for every other break."""
    t: float = 0.0
    """When it was broken, or certain to be, in seconds of the trace."""


@dataclass(slots=True)
class Outcome:
    """A contract's verdict on one trace or several.

    Evidence is bounded, but holds a break of each (clause, scenario) that was broken; `breaks` counts all.
    """

    verdict: Verdict
    activations: int = 0
    breaks: int = 0
    evidence: list[Evidence] = field(default_factory=list[Evidence])
    reason: str = ""
    """Why it is not applicable, or what failed."""
    kept_clauses: set[tuple[str, str | None]] = field(default_factory=set[tuple[str, str | None]])
    """(clause, scenario) that were exercised and held there."""
    broken_clauses: set[tuple[str, str | None]] = field(default_factory=set[tuple[str, str | None]])
    """(clause, scenario) that were broken, those beyond the evidence included."""
    inconclusive: int = 0
    """How often it would have been broken, had the machine not stalled meanwhile."""
    kept_in: set[str] = field(default_factory=set[str])
    """The scenarios of a node that several share in which it was exercised and held."""

    def add(self, other: "Outcome") -> None:
        """Take in the outcome on one more trace: the graver verdict, the sums."""
        verdict = graver(self.verdict, other.verdict)
        if verdict is not self.verdict:
            self.verdict, self.reason = verdict, other.reason
        self.activations += other.activations
        self.breaks += other.breaks
        self.inconclusive += other.inconclusive
        self.kept_clauses |= other.kept_clauses
        self.broken_clauses |= other.broken_clauses
        self._add_evidence(other.evidence)

    def _add_evidence(self, more: list[Evidence]) -> None:
        """All of it up to the bound, and beyond that a break of each (clause, scenario) that has none yet."""
        shown = {(each.clause, each.scenario) for each in self.evidence} if more else set[object]()
        for each in more:
            place = each.clause, each.scenario
            if len(self.evidence) < MERGED_EVIDENCE_MAX or place not in shown:
                self.evidence.append(each)
                shown.add(place)


UNTESTED = Outcome(Verdict.NOT_EXERCISED)
"""The shared outcome of every contract that a trace does not exercise; must not be changed."""
