"""What came of a comparison: what verdicts changed, and where two sides part, with the steps around it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kubelet_conformance.campaigns.comparison.known import Known
from kubelet_conformance.campaigns.comparison.lives import Life
from kubelet_conformance.campaigns.comparison.parting import Parting, first_parting
from kubelet_conformance.campaigns.comparison.sides import Side
from kubelet_conformance.campaigns.comparison.verdicts import Changes
from kubelet_conformance.reports.trace_text.steps import Step
from kubelet_conformance.run_record.conclusion import Exit, gravest

_BEFORE, _AFTER = 4, 2
"""How many steps around the one at which they part are shown."""
_SILENT = frozenset({"event", "end"})


@dataclass(frozen=True, slots=True)
class Shown:
    """A step as it is shown: seconds since the life began, its text, and whether they part at it."""

    t: float
    text: str
    parts: bool


@dataclass(frozen=True, slots=True)
class Difference:
    """Where two sides part in a scenario.

    Attributes:
        parting: the step.
        one, other: the steps around it on each side.
        known: the entry that explains it.
    """

    parting: Parting
    one: tuple[Shown, ...]
    other: tuple[Shown, ...]
    known: Known | None = None


@dataclass(frozen=True, slots=True)
class Comparison:
    """What came of comparing the steps of two sides.

    Attributes:
        names: what the sides are called.
        equal: the scenarios in which they are equal.
        differences: the scenarios in which they part.
        not_compared: the scenarios that only one side has, with what the other says of it.
        stale: entries of known differences that there are no longer.
    """

    names: tuple[str, str]
    equal: tuple[str, ...]
    differences: tuple[Difference, ...]
    not_compared: Mapping[str, str]
    stale: tuple[str, ...] = ()

    @property
    def is_equal(self) -> bool:
        """Nothing differs that is not known, and nothing known is stale."""
        return not self.stale and all(each.known is not None for each in self.differences)


@dataclass(frozen=True, slots=True)
class Compared:
    """A side compared with the first.

    Attributes:
        side: the side.
        changes: what differs in the verdicts, of two records of runs.
        steps: where the two part: in all scenarios that were asked for, else in those that changed.
        left_out: how many scenarios that changed are not among them.
    """

    side: Side
    changes: Changes | None = None
    steps: Comparison | None = None
    left_out: int = 0


@dataclass(frozen=True, slots=True)
class Report:
    """A whole comparison; `asks_steps` is whether it fails where the steps of two sides part."""

    first: Side
    others: Sequence[Compared]
    asks_steps: bool

    @property
    def sides(self) -> tuple[Side, ...]:
        """All sides, in the order in which they were named."""
        return (self.first, *(each.side for each in self.others))

    @property
    def conclusion(self) -> Exit:
        """How the comparison ends."""
        return gravest(*map(self._ends, self.others))

    def _ends(self, other: Compared) -> Exit:
        if other.changes is not None and other.changes.worse:
            return Exit.FAILED
        steps = other.steps
        if not self.asks_steps or steps is None:
            return Exit.OK
        if not steps.equal and not steps.differences:
            return Exit.INCONCLUSIVE
        return Exit.OK if steps.is_equal else Exit.FAILED


def compare(
    names: tuple[str, str], one: Mapping[str, Life], other: Mapping[str, Life], known: Mapping[str, Known]
) -> Comparison:
    """Compare the lives of two sides, scenario by scenario."""
    if len(one) == len(other) == 1 and set(one) != set(other):
        # Two single traces are compared whatever they are of.
        other = dict(zip(one, other.values(), strict=True))
    both = sorted(set(one) & set(other))
    partings = {name: first_parting(one[name], other[name]) for name in both}
    equal = tuple(name for name in both if partings[name] is None)
    differences = tuple(
        _difference(parting, one[name], other[name], known.get(name))
        for name, parting in partings.items()
        if parting is not None
    )
    missing = {name: f"not of {names[1] if name in one else names[0]}" for name in set(one) ^ set(other)}
    stale = tuple(name for name in equal if name in known and not known[name].sometimes)
    return Comparison(names, equal, differences, dict(sorted(missing.items())), stale)


def _difference(parting: Parting, one: Life, other: Life, known: Known | None) -> Difference:
    sides = [
        _around(life, step, t, parting.about)
        for life, step, t in zip((one, other), (parting.one, parting.other), parting.at, strict=True)
    ]
    return Difference(parting, sides[0], sides[1], known)


def _around(life: Life, step: Step | None, t: float, about: str) -> tuple[Shown, ...]:
    """The steps of its pod, or of all, around the one at which they part."""
    pod = about.rpartition(" ")[2].partition("/")[0].partition("#")[0]
    begins = life.steps[0].t if life.steps else 0.0
    steps = [each for each in life.steps if each.what not in _SILENT]
    own = [each for each in steps if not pod or _is_of(each, pod)] or steps
    before = [each for each in own if each.t <= t and not _is_step(each, step)]
    after = [each for each in own if each.t > t and not _is_step(each, step)]
    lines = [Shown(each.t - begins, each.line, parts=False) for each in before[-_BEFORE:]]
    text = "nothing of the kind" if step is None else step.line
    lines.append(Shown((step.t if step is not None else t) - begins, text, parts=True))
    return (*lines, *(Shown(each.t - begins, each.line, parts=False) for each in after[:_AFTER]))


def _is_of(step: Step, pod: str) -> bool:
    return step.what == "kubelet" or step.whom.partition("/")[0].partition("#")[0] == pod


def _is_step(step: Step, parts: Step | None) -> bool:
    return parts is not None and (step.t, step.line) == (parts.t, parts.line)
