"""The patterns that contracts wait for: records of one kind, narrowed by conditions.

`call("StopContainer")` is the begin of a call, `done(...)` its good reply, `failed(...)` its error.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import NoReturn

from kubelet_conformance.trace.format.records import Expect
from kubelet_conformance.trace.world.moment import Moment

Predicate = Callable[[Moment], bool]


class Pattern:
    """Records that have one of some keys and pass every predicate."""

    def __init__(self, keys: frozenset[str], where: tuple[Predicate, ...] = ()) -> None:
        self.keys = keys
        self._where = where

    def __bool__(self) -> NoReturn:
        raise TypeError("a pattern has no truth value of its own: write .either() and .where()")

    def where(self, predicate: Predicate) -> Pattern:
        """Only those for which the predicate holds."""
        return Pattern(self.keys, (*self._where, predicate))

    def matches(self, moment: Moment) -> bool:
        """Whether the record matches."""
        return not self.keys.isdisjoint(moment.keys) and self._fits(moment)

    def _fits(self, moment: Moment) -> bool:
        for predicate in self._where:  # noqa: SIM110 - all() costs twice as much, and this runs all the time
            if not predicate(moment):
                return False
        return True

    def conditions(self, keys: tuple[str, ...]) -> tuple[Predicate, ...]:  # noqa: ARG002 - alternatives differ
        """The predicates left to check at a moment that has these keys, one of them the pattern's."""
        return self._where

    def alternatives(self) -> tuple[Pattern, ...]:
        """The patterns it stands for."""
        return (self,)

    def either(self, *others: Pattern) -> AnyOf:
        """This or one of the others."""
        return AnyOf((self, *others), united(self.keys, *[one.keys for one in others]))


@cache
def united(*keys: frozenset[str]) -> frozenset[str]:
    """All of these keys. Cached, as judges ask for the same few unions very often."""
    return frozenset[str]().union(*keys)


class AnyOf(Pattern):
    """One of several patterns, perhaps narrowed together."""

    def __init__(
        self, options: tuple[Pattern, ...], keys: frozenset[str], where: tuple[Predicate, ...] = ()
    ) -> None:
        super().__init__(keys, where)
        self._options = options

    def conditions(self, keys: tuple[str, ...]) -> tuple[Predicate, ...]:
        """As `Pattern.conditions`: none if an option that these keys reach has none."""
        self._options = self._leaves()  # Each is inspected once, as the result is used all the time.
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

    def where(self, predicate: Predicate) -> AnyOf:
        """As `Pattern.where`, for every option."""
        return AnyOf(self._options, self.keys, (*self._where, predicate))

    def alternatives(self) -> tuple[Pattern, ...]:
        """The options, where nothing narrows them together."""
        return (self,) if self._where else self._leaves()

    def _leaves(self) -> tuple[Pattern, ...]:
        """The options, flattened: an option with several patterns is replaced by these."""
        return tuple([one for option in self._options for one in option.alternatives()])


@cache
def _named(prefix: str, names: tuple[str, ...]) -> Pattern:
    return Pattern(frozenset(f"{prefix}:{name}" for name in names))


def call(*rpcs: str) -> Pattern:
    """One of these calls begins."""
    return _named("call", rpcs)


def done(*rpcs: str) -> Pattern:
    """One of these calls was answered without an error."""
    return _named("done", rpcs)


def failed(*rpcs: str) -> Pattern:
    """One of these calls was answered with an error."""
    return _named("failed", rpcs)


def late(*rpcs: str) -> Pattern:
    """One of these calls was answered, well or with an error, so late that its caller was delayed."""
    return _named("late", rpcs)


def happened(*ops: str) -> Pattern:
    """The runtime did this by itself (records of kind `runtime`)."""
    return _named("runtime", ops)


def event(*reasons: str) -> Pattern:
    """A Kubernetes event with one of these reasons."""
    return _named("event", reasons)


def kubelet(*ops: str) -> Pattern:
    """The kubelet process started, stopped, was killed, ended by itself, or logged a panic."""
    return _named("kubelet", ops)


@cache
def exited() -> Pattern:
    """The trace reports for the first time that a container's process ended."""
    return Pattern(frozenset({"fact:exited"}))


@cache
def sandbox_died() -> Pattern:
    """The trace reports for the first time that a sandbox died without being stopped."""
    return Pattern(frozenset({"fact:sandbox-died"}))


def listed_all(*rpcs: str) -> Pattern:
    """One of these listings, of all that there is, was answered without an error."""
    return _named("all", rpcs)


def newly_reported(*what: str) -> Pattern:
    """A reading of the runtime says something new: of a `container`, of a `sandbox`, or in a whole `list`."""
    return _named("reported", what)


def read_as(*states: str) -> Pattern:
    """ContainerStatus says that its container is `created`, `running`, `exited` or `unknown`."""
    return _named("read", states)


@cache
def status() -> Pattern:
    """A pod status was written."""
    return Pattern(frozenset({"status"}))


@cache
def pod_set() -> Pattern:
    """A pod is desired: new, changed or being deleted."""
    return Pattern(frozenset({"pod:set"}))


@cache
def pod_unset() -> Pattern:
    """A pod is gone from its source."""
    return Pattern(frozenset({"pod:remove"}))


@cache
def deleted() -> Pattern:
    """A pod object was finally removed."""
    return Pattern(frozenset({"deleted"}))


def expects(contract_id: str) -> Pattern:
    """A scenario writes whether what it expects of this contract came true."""
    return Pattern(frozenset({"expect"})).where(
        lambda m: isinstance(m.record, Expect) and m.record.contract == contract_id
    )
