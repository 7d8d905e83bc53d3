"""Contracts: an id, a rule, the channels it needs, and its judges.

A judge is called at the moments its pattern names and returns findings: `KEPT`, `broken(...)`, or
`answered(...)` for what must follow. None means that the moment does not concern it. A judge sees the
trace and nothing else.

Parameters that a judge may name: it is called only where the moment has all of them.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Literal, Protocol, TypeAlias, TypeVar, final

import msgspec

from kubelet_conformance.contract.applicability import ALL, CRI, ByVersion, Need
from kubelet_conformance.contract.catalogue import Level, Row, row
from kubelet_conformance.contract.patterns import Pattern, Predicate, united
from kubelet_conformance.trace.format.manifests import Manifest, PodSpec, PodStatus, Trait
from kubelet_conformance.trace.format.records import ApiWrite, Disk, Event, Expect, PodChange
from kubelet_conformance.trace.world.moment import Moment
from kubelet_conformance.trace.world.views import Container, Exit, Pod, Sandbox

_TRAITS_OF_AREA: dict[str, frozenset[Trait]] = {
    "INIT": frozenset({"init", "sidecar"}),
    "SIDECAR": frozenset({"sidecar"}),
    "EPH": frozenset({"ephemeral"}),
    "HOOK": frozenset({"hook"}),
    "PROBE": frozenset({"probe"}),
    "DEADLINE": frozenset({"deadline"}),
}
"""The areas whose rules are about some pods only, and the trait of such pods."""
_TRAITS_OF_RULE: dict[str, frozenset[Trait] | None] = {
    "COND-04": frozenset({"gates"}),
    "INIT-19": frozenset({"deadline"}),
    "PHASE-09": frozenset({"init"}),
    "PROBE-24": None,
}
"""The rules about other pods than their area, or about every pod (None)."""
_BY_THE_PODS_POLICY = frozenset(
    {
        *(f"PHASE-{number:02}" for number in range(1, 16)),
        *("COND-03", "GC-06", "GC-10", "HOOK-05", "INIT-07", "INIT-08", "RESTART-17", "RESTART-18"),
        *("SANDBOX-05", "STATUS-10", "SYNC-13", "TERM-09"),
    }
)
"""The rules that were read where the pod's policy decides for all of its containers.

Where containers decide themselves (since 1.34), or restart their whole pod, RESTART-19 to RESTART-23 hold.
"""


class BrokenModuleError(ImportError):
    """A module of contracts cannot be imported; the message names its file and line."""


@cache
def _about(rule: str) -> frozenset[Trait] | None:
    """The traits a pod must have for the rule to concern it; None if the rule may concern every pod."""
    return _TRAITS_OF_RULE.get(rule, _TRAITS_OF_AREA.get(rule.partition("-")[0]))


@final
@dataclass(frozen=True, slots=True)
class Kept:
    """The rule was exercised here and held."""


@final
class Broken(msgspec.Struct, frozen=True):
    """The rule was broken here."""

    text: str
    because: tuple[int, ...] = ()
    """Earlier records (seq) that the slice must show."""


@final
class Answered(msgspec.Struct, frozen=True):
    """Something is owed from here on; see `answered`."""

    by: Pattern
    within: float | None
    unless: Pattern | None
    not_before: Pattern | None
    text: str
    whole_node: bool
    because: tuple[int, ...]

    @property
    def keys(self) -> frozenset[str]:
        """All that can end it."""
        keys = self.by.keys
        if self.unless is not None:
            keys = united(keys, self.unless.keys)
        return keys if self.not_before is None else united(keys, self.not_before.keys)


class Note(msgspec.Struct, eq=False):
    """What is remembered of a pod, a container, a sandbox or the node: `entity.note(Kind)` returns it.

    Its fields have defaults: the note of an entity is made when it is first asked for.
    """


KEPT = Kept()
Finding: TypeAlias = Kept | Broken | Answered
Findings: TypeAlias = Finding | Iterable[Finding] | None
JudgeFunction: TypeAlias = Callable[[Moment], Findings]
_Observe = TypeVar("_Observe", bound=Callable[..., None])


class _Recorded(Protocol):
    @property
    def seq(self) -> int: ...


Because: TypeAlias = "_Recorded | int | None"
"""An earlier record, or its seq."""


def broken(text: str, *because: Because) -> Broken:
    """The rule was broken: `text` says what was expected and what came; `because` names earlier records."""
    seqs = [one if one is None or isinstance(one, int) else one.seq for one in because]
    return Broken(text, tuple([seq for seq in seqs if seq]))


def kept_if(holds: bool, text: str, *because: Because) -> Kept | Broken:  # noqa: FBT001 - what is judged
    """KEPT if the rule holds here, else broken as `broken` says it."""
    return KEPT if holds else broken(text, *because)


def answered(  # noqa: PLR0913 - each names one way an obligation can end
    *,
    by: Pattern,
    text: str,
    within: float | None = None,
    unless: Pattern | None = None,
    not_before: Pattern | None = None,
    whole_node: bool = False,
    because: tuple[int, ...] = (),
) -> Answered:
    """From here on `by` is owed, of the same pod unless `whole_node`.

    Kept when `by` comes; broken when `within` seconds pass or `not_before` comes first; dropped when
    `unless` comes, or the kubelet goes down. Still open at the end means not exercised. `text` says what
    was owed; `because` are earlier records (seq) that a break has to show. Raises ValueError for an
    obligation that nothing can break: without `within`, and with no `not_before` or one that also keeps or
    excuses it.
    """
    if within is None and (not_before is None or not_before is by or not_before is unless):
        raise ValueError(f"nothing can break this obligation, give it `within` or `not_before`: {text}")
    return Answered(by, within, unless, not_before, text, whole_node, because)


@dataclass(frozen=True, slots=True, eq=False)
class Listener:
    """A function that is called at the moments of a pattern that have all its subjects."""

    on: Pattern
    call: JudgeFunction
    subjects: tuple[Predicate, ...]
    """Whether a moment has what the function names as its parameters."""

    def conditions(self, keys: tuple[str, ...], *, has_pod: bool) -> tuple[Predicate, ...]:
        """The conditions left to check at a moment that has these keys, before the function is called."""
        subjects = [one for one in self.subjects if not (has_pod and one is _has_pod)]
        return (*subjects, *self.on.conditions(keys))


@dataclass(frozen=True, slots=True, eq=False)
class Clause(Listener):
    """One judge of a contract; a contract with several judges names each of them."""

    contract: Contract
    name: str
    judge: Callable[..., Findings]
    """The function as it is written."""

    @property
    def sentence(self) -> str:
        """The side of the rule that it judges: the judge's docstring on one line, empty where it has none."""
        return " ".join((inspect.getdoc(self.judge) or "").split())


@dataclass(frozen=True, slots=True, eq=False)
class Observer(Listener):
    """A function that keeps facts up to date for all judges, and finds nothing itself."""

    name: str
    last: bool
    """It is called after the judges of a moment."""
    gate: str | None
    """The feature gate without which nothing reads what it keeps."""


OBSERVERS: list[Observer] = []
"""All observers, in the order in which their modules were imported: an observer comes after those it builds
on.
"""


@dataclass(frozen=True, slots=True, eq=False)
class Contract:
    """A rule with its id in the catalogue, and the judges that check it."""

    id: str
    rule: str
    needs: tuple[Need, ...]
    versions: ByVersion[Any]
    gate: str | None
    module: str
    level_of_own: str | None = None
    """Its level, for one of another package, which has no row in the catalogue."""
    source_of_own: str = ""
    binds_of_own: Literal["kubelet", "runtime"] = "kubelet"
    clauses: list[Clause] = field(default_factory=list[Clause])

    @property
    def row(self) -> Row:
        """Its row in the catalogue: level, source, stimulus."""
        return row(self.id)

    @property
    def level(self) -> str:
        """MUST, SHOULD or MAY."""
        return str(self.row.level)

    def concerns(self, traits: frozenset[Trait] | None) -> bool:
        """Whether it may concern a pod that has these traits; None where they are not known."""
        if traits is not None and "own restarts" in traits and self.id in _BY_THE_PODS_POLICY:
            return False
        about = _about(self.id)
        return about is None or traits is None or not about.isdisjoint(traits)

    def clause(self, name: str, *, on: Pattern) -> Callable[[Callable[..., Findings]], Contract]:
        """Add a judge of another clause of the same rule."""

        def add(judge: Callable[..., Findings]) -> Contract:
            self.clauses.append(Clause(on, *bound(judge), self, name, judge))
            return self

        return add


def contract(  # noqa: PLR0913 - the parts of a contract
    contract_id: str,
    *,
    on: Pattern,
    needs: tuple[Need, ...] = (CRI,),
    versions: ByVersion[Any] = ALL,
    gate: str | None = None,
    clause: str = "",
    level: Literal["MUST", "SHOULD", "MAY"] | None = None,
    source: str = "",
    binds: Literal["kubelet", "runtime"] = "kubelet",
) -> Callable[[Callable[..., Findings]], Contract]:
    """A contract judged at moments; the function's docstring is the rule. `gate` names a feature gate.

    A judge takes the moment and, as parameters with their types, what the moment must have: it is not called
    where that is missing (see `_SUBJECTS`). `level`, `source` and whom it `binds` are for contracts of
    another package, which have no row in the catalogue.
    """

    def make(judge: Callable[..., Findings]) -> Contract:
        own = level, source, binds
        made = Contract(contract_id, _rule(judge), needs, versions, gate, judge.__module__, *own)
        return made.clause(clause, on=on)(judge)

    return make


def observer(*, on: Pattern, last: bool = False, gate: str | None = None) -> Callable[[_Observe], _Observe]:
    """Keep facts up to date at these moments for all judges: before they are called, or after with `last`.

    With `gate`, the name of a feature gate, only where that is on: for facts of contracts with this gate.
    A module that names the fact has imported the observer's module, so the fact is kept. Parameters are as
    those of judges.
    """

    def add(observe: _Observe) -> _Observe:
        OBSERVERS.append(Observer(on, *bound(observe), observe.__qualname__, last, gate))
        return observe

    return add


def own_row(own: Contract, package: str) -> Row:
    """The row of a contract that another package brings; ValueError if it does not say its level."""
    if own.level_of_own is None:
        raise ValueError(f'{own.id} has no level: write @contract("{own.id}", ..., level="MUST")')
    return Row(
        id=own.id,
        area=own.id.partition("-")[0],
        level=Level(own.level_of_own),
        star=False,
        addressee=own.binds_of_own,
        rule=own.rule,
        stimulus="",
        observation="",
        versions=own.versions.text,
        source=f"{own.source_of_own}; {package}" if own.source_of_own else package,
        mutant="",
        package=package,
    )


def _rule(function: Callable[..., object]) -> str:
    text = inspect.getdoc(function)
    if not text:
        raise TypeError(f"{function.__name__} has no docstring: it is the rule")
    return " ".join(text.split())


R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class _Subject:
    """A parameter of a judge: its type, how the moment gives it, and whether the moment has it."""

    type: type
    path: str
    is_there: Predicate


def _has_pod(m: Moment) -> bool:
    return m.pod is not None


_SUBJECTS = {
    "pod": _Subject(Pod, "pod", _has_pod),
    "sandbox": _Subject(Sandbox, "sandbox", lambda m: m.sandbox is not None),
    "container": _Subject(Container, "container", lambda m: m.container is not None),
    "manifest": _Subject(Manifest, "manifest", lambda m: m.manifest is not None),
    "status": _Subject(PodStatus, "status", lambda m: m.status is not None),
    "ended": _Subject(Exit, "exit", lambda m: m.exit is not None),
    "spec": _Subject(PodSpec, "pod.spec", lambda m: m.pod is not None and m.pod.spec is not None),
    "event": _Subject(Event, "record", lambda m: isinstance(m.record, Event)),
    "write": _Subject(ApiWrite, "record", lambda m: isinstance(m.record, ApiWrite)),
    "change": _Subject(PodChange, "record", lambda m: isinstance(m.record, PodChange)),
    "disk": _Subject(Disk, "record", lambda m: isinstance(m.record, Disk)),
    "expect": _Subject(Expect, "record", lambda m: isinstance(m.record, Expect)),
}


def bound(function: Callable[..., R]) -> tuple[Callable[[Moment], R], tuple[Predicate, ...]]:
    """The function as one that takes only the moment, and the conditions under which it may be called.

    Raises TypeError for a parameter that no moment has, or has as another type.
    """
    parameters = list(inspect.signature(function).parameters.values())[1:]
    subjects = [_SUBJECTS.get(one.name) for one in parameters]
    for parameter, subject in zip(parameters, subjects, strict=True):
        # An annotation is a text where its module delays the evaluation.
        given = getattr(parameter.annotation, "__name__", parameter.annotation)
        if subject is None or subject.type.__name__ != given:
            raise TypeError(f"{function.__qualname__}: no moment has {parameter}; it may have {_known()}")
    known = [one for one in subjects if one is not None]
    return _called_with(function, [one.path for one in known]), tuple([one.is_there for one in known])


def _called_with(function: Callable[..., R], paths: list[str]) -> Callable[[Moment], R]:
    if not paths:
        return function
    # Written out, as it is called for each record: attrgetter and a star take twice the time.
    subjects = ", ".join(f"m.{path}" for path in paths)
    return eval(f"lambda m: function(m, {subjects})", {"function": function})  # type: ignore[no-any-return]  # noqa: S307 - the paths above


def _known() -> str:
    return ", ".join(f"{name}: {one.type.__name__}" for name, one in _SUBJECTS.items())
