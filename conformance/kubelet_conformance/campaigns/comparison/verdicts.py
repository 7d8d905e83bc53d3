"""What the verdicts of two records differ in: what is worse, what is better, and what timing shifted."""

from collections.abc import Iterator
from dataclasses import dataclass

from kubelet_conformance.contract.verdicts import Verdict
from kubelet_conformance.reports.trace_text.expectations import in_one_sentence
from kubelet_conformance.run_record.model import ContractResult, Run, ScenarioResult

_BAD = frozenset({Verdict.BROKEN, Verdict.ERROR})
_IDLE = frozenset({Verdict.NOT_EXERCISED, Verdict.NOT_APPLICABLE})
_WELL = "ended well"
_SHIFT_SECONDS, _SHIFT_SHARE = 1.0, 0.1
"""The timing of a scenario shifted if it differs by more than both."""


@dataclass(frozen=True, slots=True)
class Change:
    """What differs of a contract or a scenario: how it was and how it is, and what went wrong if it did."""

    name: str
    before: str
    after: str
    text: str = ""


@dataclass(frozen=True, slots=True)
class Changes:
    """What differs between two records.

    Attributes:
        worse: contracts that are broken now, and scenarios that end badly now.
        better: contracts that were broken and are kept, and scenarios that ended badly.
        newly_exercised: contracts that are newly exercised, and kept.
        no_longer_exercised: contracts that were exercised; one that was broken is not mended by that.
        timing_shifted: scenarios that last longer or shorter, the largest shift first.
        scenarios: the scenarios that break something else, or end otherwise; those that are worse first.
    """

    worse: tuple[Change, ...] = ()
    better: tuple[Change, ...] = ()
    newly_exercised: tuple[Change, ...] = ()
    no_longer_exercised: tuple[Change, ...] = ()
    timing_shifted: tuple[Change, ...] = ()
    scenarios: tuple[str, ...] = ()

    def parts(self) -> Iterator[tuple[str, tuple[Change, ...]]]:
        """The kinds of changes by their titles."""
        yield "worse", self.worse
        yield "better", self.better
        yield "newly exercised", self.newly_exercised
        yield "no longer exercised", self.no_longer_exercised
        yield "timing shifted", self.timing_shifted

    @property
    def words(self) -> str:
        """What they come to."""
        counts = ", ".join(f"{len(those)} {title}" for title, those in self.parts() if those)
        return f"{'WORSE' if self.worse else 'NOT WORSE'}: {counts or 'nothing has changed'}"


def changes_of(one: Run, other: Run) -> Changes:
    """What differs from one run to the other; what only one has is not compared."""
    before = {each.id: each.verdict for each in one.contracts}
    kinds: dict[str, list[Change]] = {}
    for each in other.contracts:
        was = before.get(each.id, each.verdict)
        change = Change(each.id, was.words, each.verdict.words, _text(each))
        kinds.setdefault(kind_of(was, each.verdict), []).append(change)
    ends = list(_ends(one, other))
    return Changes(
        (*kinds.get("worse", ()), *(each for each in ends if each.before == _WELL)),
        (*kinds.get("better", ()), *(each for each in ends if each.after == _WELL)),
        tuple(kinds.get("newly exercised", ())),
        tuple(kinds.get("no longer exercised", ())),
        tuple(_shifted(one, other)),
        tuple(_otherwise(one, other, {each.name for each in ends})),
    )


def kind_of(was: Verdict, now: Verdict) -> str:
    """The title of a change of a verdict; empty for one that says little."""
    if now in _IDLE and was in _BAD:
        return "no longer exercised"
    if (was in _BAD) != (now in _BAD):
        return "better" if was in _BAD else "worse"
    if was in _BAD or (was in _IDLE) == (now in _IDLE):
        return ""
    return "newly exercised" if was in _IDLE else "no longer exercised"


def _text(result: ContractResult) -> str:
    """The first of its breaks, as a sentence."""
    for each in result.evidence:
        if not each.deviation:
            return in_one_sentence(each)
    return "; ".join(result.reasons)


def _end(played: ScenarioResult) -> tuple[str, str]:
    """How a scenario ended, and what went wrong."""
    if played.failed:
        return "the suite failed", played.failed
    if played.died and not played.died_as_known:
        return "the kubelet ended by itself", played.died
    if played.unmet and not played.broken:
        return "timed out or failed", played.unmet
    return _WELL, ""


def _ends(one: Run, other: Run) -> Iterator[Change]:
    """The scenarios that end otherwise."""
    before = {each.name: _end(each)[0] for each in one.scenarios}
    for each in other.scenarios:
        end, text = _end(each)
        if before.get(each.name, end) != end:
            yield Change(each.name, before[each.name], end, text.partition("\n")[0])


def _otherwise(one: Run, other: Run, ends: set[str]) -> list[str]:
    """The scenarios that end otherwise or break something else: those that break more first."""
    before = {each.name: set(each.broken) for each in one.scenarios}
    found: list[tuple[int, str]] = []
    for each in other.scenarios:
        was, now = before.get(each.name), set(each.broken)
        if was is not None and (was != now or each.name in ends):
            found.append((len(was - now) - len(now - was), each.name))
    return [name for _, name in sorted(found)]


def _shifted(one: Run, other: Run) -> list[Change]:
    """The scenarios that last longer or shorter."""
    before, found = dict(lasted(one)), list[tuple[float, Change]]()
    for name, seconds in lasted(other):
        was = before.get(name, seconds)
        if abs(seconds - was) > max(_SHIFT_SECONDS, _SHIFT_SHARE * was):
            found.append((abs(seconds - was), Change(name, f"{was:.1f} s", f"{seconds:.1f} s")))
    return [change for _, change in sorted(found, key=lambda pair: -pair[0])]


def lasted(run: Run) -> Iterator[tuple[str, float]]:
    """How long each scenario lasted, in seconds of its trace; on a shared node, in those that it took."""
    own = {each.path: each.seconds for each in run.traces if each.scenario}
    for each in run.scenarios:
        seconds = own.get(each.trace, each.seconds)
        if seconds:
            yield each.name, seconds
