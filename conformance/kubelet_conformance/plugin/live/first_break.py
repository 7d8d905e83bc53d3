"""Judges lives of nodes while they are played, so that a run can end at the first break that counts."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace

from kubelet_conformance.contract.checking import Judged
from kubelet_conformance.contract.definition import Contract
from kubelet_conformance.contract.judge import Judge
from kubelet_conformance.contract.verdicts import Evidence
from kubelet_conformance.contracts import every_contract
from kubelet_conformance.trace.format.errors import BodyError
from kubelet_conformance.trace.format.records import Record, Stall


class FirstBreak:
    """Waits for a break for which `counts` holds; `seen` is set then."""

    def __init__(self, counts: Callable[[Contract, Evidence], bool]) -> None:
        self._counts = counts
        self.seen = asyncio.Event()

    def listener(self, judge: Judge, owner: Callable[[int], str | None]) -> Callable[[Record], None]:
        """Takes the records of a life for this judge of it; `owner` returns whose a record is, by seq."""
        stalls: list[Stall] = []

        def on_break(contract: Contract, evidence: Evidence) -> None:
            owners: Iterator[str] = filter(None, map(owner, evidence.seq))
            known = evidence if evidence.scenario else replace(evidence, scenario=next(owners, None))
            # What stalls explain is known when the whole is judged.
            if not stalls and self._counts(contract, known):
                self.seen.set()

        def feed(record: Record) -> None:
            if type(record) is Stall:
                stalls.append(record)
            # What cannot be judged is reported with the whole.
            with suppress(BodyError):
                judge.feed(record)

        judge.on_break = on_break
        return feed

    def look_at(self, judged: Judged) -> None:
        """Take the verdicts on a whole life."""
        every = every_contract()
        for name, outcome in judged.outcomes.items():
            if any(self._counts(every[name], each) for each in outcome.evidence):
                self.seen.set()
