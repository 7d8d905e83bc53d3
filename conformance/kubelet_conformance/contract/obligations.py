"""Obligations: records that a contract requires to follow, each with its deadline on the trace's clock."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterable

from kubelet_conformance.contract.definition import Answered
from kubelet_conformance.trace.world.moment import Moment
from kubelet_conformance.trace.world.views import Entity


class Obligation:
    """One open obligation, and the moment it began."""

    __slots__ = ("deadline", "due", "entity", "keys", "on_break", "on_kept", "open", "pod", "seq", "waited_t")

    entity: Entity
    """The entity that must meet it."""

    def __init__(
        self,
        due: Answered,
        moment: Moment,
        on_kept: Callable[[], None],
        on_break: Callable[[Obligation, int, str, float | None], None],
    ) -> None:
        self.due = due
        self.seq = moment.seq
        self.pod = moment.pod
        self.deadline = moment.t + due.within if due.within is not None else None
        self.on_kept = on_kept
        self.on_break = on_break
        self.open = True
        self.keys = due.keys
        self.waited_t = -math.inf
        """When its entity was last seen to wait while it was overdue."""

    def observe(self, moment: Moment) -> None:
        """Kept, dropped or broken by this moment, or still open."""
        due = self.due
        if due.by.matches(moment):
            self.open = False
            self.on_kept()
        elif due.unless is not None and due.unless.matches(moment):
            self.open = False
        elif due.not_before is not None and due.not_before.matches(moment):
            self.open = False
            self.on_break(self, moment.seq, f"{due.text} before this", None)

    def overdue(self, seq: int) -> None:
        """The finding when its deadline has passed."""
        self.open = False
        self.on_break(self, seq, f"{self.due.text} within {self.due.within:g} s", self.due.within)


class Ledger:
    """Every open obligation, by the entity that must meet it and by deadline.

    Args:
        awaited: Keys that some judge listens to in any case.
        waits: Returns whether an entity waits for the runtime at the moment, so that it cannot act: what is
            due then is due as long again afterwards.
        excused: Returns until when an obligation may still be met that is overdue at a time.
    """

    def __init__(
        self,
        awaited: Iterable[str] = (),
        waits: Callable[[Entity], bool] = lambda _: False,
        excused: Callable[[Obligation, float], float] = lambda _obligation, _t: -math.inf,
    ) -> None:
        self._waits = waits
        self._excused = excused
        self.next_due = math.inf
        """When the next deadline passes."""
        self.awaited = set(awaited)
        """Every key that some judge or obligation listens to, or has ever listened to."""
        self.held_until = -math.inf
        """Nothing is due before."""
        self._deadlines: list[tuple[float, int, Obligation]] = []
        self._count = 0

    def __len__(self) -> int:
        """How many deadlines are to come, those of obligations that are closed by now included."""
        return len(self._deadlines)

    def owe(self, obligation: Obligation, entity: Entity) -> None:
        """Add an obligation of this entity."""
        obligation.entity, keys = entity, obligation.keys
        entity.owed.append(obligation)
        if not keys <= entity.awaited:
            entity.awaited |= keys
        if not keys <= self.awaited:
            self.awaited |= keys
        if obligation.deadline is not None:
            self._count += 1
            heapq.heappush(self._deadlines, (self._due(obligation), self._count, obligation))
            self.next_due = self._deadlines[0][0]

    def _due(self, obligation: Obligation) -> float:
        """When it is due; an obligation that no call can meet, but only its `unless`, is not deferred."""
        deadline = obligation.deadline or 0.0
        return max(deadline, self.held_until) if obligation.due.by.keys else deadline

    def hold(self, until: float) -> None:
        """Nothing is due before `until`; afterwards every deadline is again what it was."""
        self.held_until = until
        self._deadlines = [(self._due(one), count, one) for _, count, one in self._deadlines if one.open]
        heapq.heapify(self._deadlines)
        self.next_due = self._deadlines[0][0] if self._deadlines else math.inf

    def observe(self, moment: Moment, entity: Entity) -> None:
        """Check the entity's obligations against the moment; skipped where none awaits any of the keys."""
        keys, closed = moment.keys, False
        for obligation in entity.owed:
            if not obligation.keys.isdisjoint(keys):
                obligation.observe(moment)
                closed = closed or not obligation.open
        if closed:
            _forget_closed(entity)

    def pass_time(self, t: float, seq: int) -> None:
        """The trace's clock reached `t`: what was due before is overdue."""
        deadlines, late = self._deadlines, set[Entity]()
        while deadlines and deadlines[0][0] < t:
            obligation = heapq.heappop(deadlines)[2]
            if not obligation.open:
                continue
            if self._waits(obligation.entity):
                obligation.waited_t = until = t
            else:
                again = obligation.waited_t + (obligation.due.within or 0)
                until = max(again, self._excused(obligation, t))
            if until >= t:
                self._count += 1
                obligation.deadline = until
                heapq.heappush(deadlines, (self._due(obligation), self._count, obligation))
            else:
                obligation.overdue(seq)
                late.add(obligation.entity)
        for entity in late:
            _forget_closed(entity)
        self.next_due = deadlines[0][0] if deadlines else math.inf

    def drop_all(self, entities: Iterable[Entity]) -> None:
        """The kubelet is down: drop its obligations; the next instance may have new ones."""
        for entity in entities:
            entity.owed, entity.awaited = [], frozenset()
        self._deadlines.clear()
        self.next_due = math.inf


def _forget_closed(entity: Entity) -> None:
    """The entity's open obligations, and the keys they wait for."""
    entity.owed = [obligation for obligation in entity.owed if obligation.open]
    entity.awaited = frozenset[str]().union(*[obligation.keys for obligation in entity.owed])
