"""The small vocabulary of past-time words that contracts are written in.

Atoms are patterns over records: `call("StopContainer")` is the begin of a call, `done(...)` its good
reply, `failed(...)` its error. Formulas join them: `&`, `|`, `~`, `.since()`, `before()`, `.implies()`.
A formula is followed with one bool per word and entity, so memory is constant. It sees only the moments
its own atoms speak of: `before(f)` looks at the last of these.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from functools import cache
from typing import NoReturn

from kubelet_conformance.trace.moment import Moment

Predicate = Callable[[Moment], bool]


class Formula(ABC):
    """A statement about one entity's past up to now."""

    def __bool__(self) -> NoReturn:
        raise TypeError("a formula has no truth value of its own: write &, |, ~ and .implies()")

    def __and__(self, other: Formula) -> Formula:
        return _Both(self, other)

    def __or__(self, other: Formula) -> Formula:
        return _Either(self, other)

    def __invert__(self) -> Formula:
        return _Not(self)

    def since(self, start: Formula) -> Formula:
        """`start` held once, and this has held at every moment after it."""
        return _Since(self, start)

    def implies(self, then: Formula) -> Implication:
        """Whenever this holds, `then` holds too: a contract."""
        return Implication(self, then)

    @abstractmethod
    def parts(self) -> tuple[Formula, ...]:
        """The formulas it is made of."""

    @abstractmethod
    def step(self, moment: Moment, state: list[bool], slots: dict[int, int], /) -> bool:
        """Take one moment in and say whether the formula holds now."""

    @abstractmethod
    def __str__(self) -> str: ...

    def every_part(self) -> Iterator[Formula]:
        """The formula and all it is made of."""
        yield self
        for part in self.parts():
            yield from part.every_part()


class Pattern(Formula):
    """An atom: records that answer to one of some keys and pass every predicate.

    Judges make patterns by the thousand for what is owed, so their words are put together only when read.
    """

    def __init__(
        self, keys: frozenset[str], where: tuple[tuple[Predicate, str], ...] = (), words: str = ""
    ) -> None:
        self.keys = keys
        self._where = where
        self._words = words

    def where(self, predicate: Predicate, words: str = "") -> Pattern:
        """Only those for which the predicate holds; `words` say it for the reader."""
        return Pattern(self.keys, (*self._where, (predicate, words)), self._words)

    def matches(self, moment: Moment) -> bool:
        """The record is one of these."""
        return not self.keys.isdisjoint(moment.keys) and self._fits(moment)

    def _fits(self, moment: Moment) -> bool:
        for predicate, _ in self._where:  # noqa: SIM110 - all() costs twice as much, and this runs all the time
            if not predicate(moment):
                return False
        return True

    def conditions(self, keys: tuple[str, ...]) -> tuple[Predicate, ...]:  # noqa: ARG002 - alternatives differ
        """What is left to ask of a moment that has these keys, one of them the pattern's."""
        return tuple([predicate for predicate, _ in self._where])

    def alternatives(self) -> tuple[Pattern, ...]:
        """The patterns it stands for."""
        return (self,)

    def either(self, *others: Pattern) -> AnyOf:
        """This or one of the others."""
        return AnyOf((self, *others), united(self.keys, *[one.keys for one in others]))

    def parts(self) -> tuple[Formula, ...]:
        """An atom is made of nothing else."""
        return ()

    def step(self, moment: Moment, _state: list[bool], _slots: dict[int, int], /) -> bool:
        """Whether this moment is one of these."""
        return self.matches(moment)

    def _described(self) -> str:
        return self._words or " or ".join(sorted(self.keys))

    def __str__(self) -> str:
        said = [
            words or getattr(predicate, "__name__", "it fits").replace("_", " ")
            for predicate, words in self._where
        ]
        return " where ".join((self._described(), *said))


@cache
def united(*keys: frozenset[str]) -> frozenset[str]:
    """All of these keys. Judges ask for the same few unions by the thousand."""
    return frozenset[str]().union(*keys)


class AnyOf(Pattern):
    """One of several patterns, perhaps narrowed together."""

    def __init__(
        self,
        options: tuple[Pattern, ...],
        keys: frozenset[str],
        where: tuple[tuple[Predicate, str], ...] = (),
    ) -> None:
        super().__init__(keys, where)
        self._options = options

    def conditions(self, keys: tuple[str, ...]) -> tuple[Predicate, ...]:
        """As `Pattern.conditions`: none if an option that these keys reach has none."""
        self._options = self._leaves()  # One look at each, now that it will be asked for all the time.
        each = [one.conditions(keys) for one in self._options if not one.keys.isdisjoint(keys)]
        of_options = () if () in each else each[0] if len(each) == 1 else (self._is_one,)
        return (*of_options, *super().conditions(keys))

    def _fits(self, moment: Moment) -> bool:
        return self._is_one(moment) and super()._fits(moment)

    def _is_one(self, moment: Moment) -> bool:
        for option in self._options:  # noqa: SIM110 - all() costs twice as much, and this runs all the time
            if option.matches(moment):
                return True
        return False

    def where(self, predicate: Predicate, words: str = "") -> AnyOf:
        """As `Pattern.where`, for every option."""
        return AnyOf(self._options, self.keys, (*self._where, (predicate, words)))

    def alternatives(self) -> tuple[Pattern, ...]:
        """The options, where nothing narrows them together."""
        return (self,) if self._where else self._leaves()

    def _leaves(self) -> tuple[Pattern, ...]:
        """The options, and in place of those that are several patterns themselves all of these."""
        return tuple([one for option in self._options for one in option.alternatives()])

    def _described(self) -> str:
        return " or ".join(str(one) for one in self._leaves())


class _Both(Formula):
    def __init__(self, left: Formula, right: Formula) -> None:
        self._left, self._right = left, right

    def parts(self) -> tuple[Formula, ...]:
        return self._left, self._right

    def step(self, moment: Moment, state: list[bool], slots: dict[int, int], /) -> bool:
        left = self._left.step(moment, state, slots)
        right = self._right.step(moment, state, slots)
        return left and right

    def __str__(self) -> str:
        return f"({self._left} and {self._right})"


class _Either(_Both):
    def step(self, moment: Moment, state: list[bool], slots: dict[int, int], /) -> bool:
        left = self._left.step(moment, state, slots)
        right = self._right.step(moment, state, slots)
        return left or right

    def __str__(self) -> str:
        return f"({self._left} or {self._right})"


class _Not(Formula):
    def __init__(self, inner: Formula) -> None:
        self._inner = inner

    def parts(self) -> tuple[Formula, ...]:
        return (self._inner,)

    def step(self, moment: Moment, state: list[bool], slots: dict[int, int], /) -> bool:
        return not self._inner.step(moment, state, slots)

    def __str__(self) -> str:
        return f"not {self._inner}"


class _Since(_Both):
    def step(self, moment: Moment, state: list[bool], slots: dict[int, int], /) -> bool:
        slot = slots[id(self)]
        kept = self._left.step(moment, state, slots)
        begun = self._right.step(moment, state, slots)
        state[slot] = begun or (kept and state[slot])
        return state[slot]

    def __str__(self) -> str:
        return f"({self._left} since {self._right})"


class _Before(_Not):
    def step(self, moment: Moment, state: list[bool], slots: dict[int, int], /) -> bool:
        slot = slots[id(self)]
        earlier = state[slot]
        state[slot] = self._inner.step(moment, state, slots)
        return earlier

    def __str__(self) -> str:
        return f"before: {self._inner}"


class _Once(_Not):
    def step(self, moment: Moment, state: list[bool], slots: dict[int, int], /) -> bool:
        slot = slots[id(self)]
        state[slot] = self._inner.step(moment, state, slots) or state[slot]
        return state[slot]

    def __str__(self) -> str:
        return f"once {self._inner}"


class Implication:
    """`when` implies `then`: what a formula contract says at every moment of an entity."""

    def __init__(self, when: Formula, then: Formula) -> None:
        self.when = when
        self.then = then
        every = (*when.every_part(), *then.every_part())
        self._slots = {id(part): number for number, part in enumerate(dict.fromkeys(every, None))}
        self.keys = frozenset[str]().union(*(part.keys for part in every if isinstance(part, Pattern)))

    def begin(self) -> list[bool]:
        """The state before an entity's first moment."""
        return [False] * len(self._slots)

    def step(self, moment: Moment, state: list[bool]) -> bool | None:
        """None where `when` does not hold, else whether `then` does."""
        active = self.when.step(moment, state, self._slots)
        kept = self.then.step(moment, state, self._slots)
        return kept if active else None

    def __str__(self) -> str:
        return f"{self.when} needs {self.then}"


def before(formula: Formula) -> Formula:
    """The formula held at the moment before this one."""
    return _Before(formula)


def once(formula: Formula) -> Formula:
    """The formula holds now or held at some earlier moment."""
    return _Once(formula)


@cache
def _named(prefix: str, names: tuple[str, ...], words: str) -> Pattern:
    return Pattern(
        frozenset(f"{prefix}:{name}" for name in names), words=f"{'/'.join(names)} {words}".strip()
    )


def call(*rpcs: str) -> Pattern:
    """One of these calls begins."""
    return _named("call", rpcs, "")


def done(*rpcs: str) -> Pattern:
    """One of these calls was answered without an error."""
    return _named("done", rpcs, "succeeded")


def failed(*rpcs: str) -> Pattern:
    """One of these calls was answered with an error."""
    return _named("failed", rpcs, "failed")


def late(*rpcs: str) -> Pattern:
    """One of these calls was answered, well or not, when whoever waited for it was held up already."""
    return _named("late", rpcs, "answered late")


def happened(*ops: str) -> Pattern:
    """The runtime did this by itself (records of kind `runtime`)."""
    return _named("runtime", ops, "at the runtime")


def event(*reasons: str) -> Pattern:
    """A Kubernetes event with one of these reasons."""
    return _named("event", reasons, "event")


def kubelet(*ops: str) -> Pattern:
    """The kubelet process started, stopped or was killed."""
    return _named("kubelet", ops, "kubelet")


@cache
def exited() -> Pattern:
    """The trace tells for the first time that a container's process ended."""
    return Pattern(frozenset({"fact:exited"}), words="container exited")


@cache
def sandbox_died() -> Pattern:
    """The trace tells for the first time that a sandbox died without being stopped."""
    return Pattern(frozenset({"fact:sandbox-died"}), words="sandbox died")


def listed_all(*rpcs: str) -> Pattern:
    """One of these listings, of all that there is, was answered without an error."""
    return _named("all", rpcs, "of everything succeeded")


def told(*what: str) -> Pattern:
    """A reading of the runtime says something new: of a `container`, of a `sandbox`, or in a whole `list`."""
    return _named("told", what, "told")


def read_as(*states: str) -> Pattern:
    """ContainerStatus says that its container is `created`, `running`, `exited` or `unknown`."""
    return _named("read", states, "read")


@cache
def status() -> Pattern:
    """A pod status was written."""
    return Pattern(frozenset({"status"}), words="status written")


@cache
def pod_set() -> Pattern:
    """A pod is wanted: new, changed or being deleted."""
    return Pattern(frozenset({"pod:set"}), words="pod set")


@cache
def pod_unset() -> Pattern:
    """A pod is gone from its source."""
    return Pattern(frozenset({"pod:remove"}), words="pod removed")


@cache
def deleted() -> Pattern:
    """A pod object was finally removed."""
    return Pattern(frozenset({"deleted"}), words="pod object deleted")
