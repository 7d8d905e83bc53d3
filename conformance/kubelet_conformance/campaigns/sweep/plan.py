"""Which plays a sweep consists of: all faults at all points of scenarios, or a part or a sample of them."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from hashlib import blake2s
from itertools import chain, zip_longest

from kubelet_conformance.campaigns.sweep.kinds import KINDS, After, Blow, blows_at
from kubelet_conformance.campaigns.sweep.play import Undisturbed
from kubelet_conformance.reports.safe import nearest
from kubelet_conformance.trace.format.errors import BadInputError


class UnknownFaultError(BadInputError):
    """A fault that no sweep knows, or that no play of this one has; the message says which there are."""


@dataclass(frozen=True, slots=True)
class FaultPattern:
    """The faults that were asked for: of a kind, at calls of a name, at one of these calls."""

    kind: str
    call: str = "*"
    number: int | None = None

    @classmethod
    def parse(cls, text: str) -> "FaultPattern":
        """The pattern that `KIND`, `CALL KIND` or `CALL#NUMBER KIND` says; raises `UnknownFaultError`."""
        where, _, kind = text.strip().rpartition(" ")
        call, _, number = where.partition("#")
        if kind not in KINDS or (number and not number.isdecimal()):
            known, near = ", ".join(KINDS), nearest(kind, KINDS)
            raise UnknownFaultError(
                f"no fault is {text!r}{near}; expected [CALL[#NUMBER] ]KIND, KIND one of {known}"
            )
        return cls(kind, call or "*", int(number) if number else None)

    def __str__(self) -> str:
        call = "" if self.call == "*" else self.call
        where = call if self.number is None else f"{self.call}#{self.number}"
        return f"{where} {self.kind}".lstrip()

    def fits(self, blow: Blow) -> bool:
        """Whether that fault is meant."""
        point = blow.point
        return (
            blow.kind.name == self.kind
            and fnmatchcase(point.call, self.call)
            and self.number in {None, point.number}
        )


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be played.

    Attributes:
        faults: the faults that are wanted; all, if there are none.
        sample: so many of the plays, evenly from all scenarios; None is all.
        seed: what the sample is drawn by.
        shard: the part, counted from 1, of `shards`.
        shards: in how many parts the plays are shared out.
        skipped: so many of the first plays are left out.
    """

    faults: tuple[FaultPattern, ...] = ()
    sample: int | None = None
    seed: int = 0
    shard: int = 1
    shards: int = 1
    skipped: int = 0

    def scenarios(self, names: Iterable[str]) -> list[str]:
        """The scenarios that any play may be of: a small sample has no use for all."""
        names = list(names)
        return names if self.sample is None or self.faults else sorted(names, key=self._lot)[: self.sample]

    def all_plays(self, bases: Iterable[Undisturbed]) -> list[tuple[Undisturbed, Blow]]:
        """Every fault that is wanted at every point of these; raises `UnknownFaultError` if there is none."""
        bases = list(bases)
        plays = [(base, blow) for base in bases for blow in self._blows(base)]
        if self.faults and not plays:
            calls = {point.call for base in bases for point in base.points}
            near = "".join(nearest(each.call, calls) for each in self.faults if each.call not in calls)
            raise UnknownFaultError(f"no call of these scenarios is one at which such a fault may come{near}")
        return plays

    def plays(self, every: Sequence[tuple[Undisturbed, Blow]]) -> list[tuple[Undisturbed, Blow]]:
        """Those of all plays that are to be played."""
        drawn = list(every) if self.sample is None else self._sampled(every)[: self.sample]
        return drawn[self.shard - 1 :: self.shards][self.skipped :]

    def _blows(self, base: Undisturbed) -> Iterator[Blow]:
        for blow in chain.from_iterable(map(blows_at, base.points)):
            if base.take_turns and blow.kind.after is After.KILL_KUBELET:
                continue  # A kubelet that was killed is to come back itself.
            if not self.faults or any(each.fits(blow) for each in self.faults):
                yield blow

    def _sampled(self, every: Sequence[tuple[Undisturbed, Blow]]) -> list[tuple[Undisturbed, Blow]]:
        """All in an order that the seed decides, the first of each scenario, then the second of each."""
        by_scenario: dict[str, list[tuple[Undisturbed, Blow]]] = {}
        for play in sorted(every, key=lambda play: self._lot(f"{play[0].scenario} {play[1]}")):
            by_scenario.setdefault(play[0].scenario, []).append(play)
        rounds = zip_longest(*(by_scenario[name] for name in sorted(by_scenario, key=self._lot)))
        return [play for one in rounds for play in one if play is not None]

    def _lot(self, text: str) -> bytes:
        return blake2s(f"{self.seed} {text}".encode()).digest()
