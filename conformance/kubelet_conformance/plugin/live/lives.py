"""Lives of nodes: what is played in one and what it leaves, and whose a break is where scenarios share it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import msgspec

from kubelet_conformance.contract.checking import Judged
from kubelet_conformance.contract.verdicts import Evidence, Outcome, Verdict
from kubelet_conformance.plugin.play import write_trace
from kubelet_conformance.targets.stage import Act, Ended

_SHARED = "node"
"""The name of the trace of the node that scenarios share."""


@dataclass(slots=True)
class Life:
    """One life of a node: what is to be played, and what it left."""

    acts: list[Act]
    shared: bool = False
    number: int = 1
    """Which of the nodes that scenarios share: one whose kubelet ended by itself is followed by another."""
    urgent: bool = False
    """It goes before what waits: it follows one whose kubelet ended by itself, and others may follow it."""
    path: Path = field(default_factory=Path)
    owners: list[str | None] = field(default_factory=list[str | None])
    ended: Mapping[int, Ended] = field(default_factory=dict[int, Ended])
    error: Exception | None = None
    """What ended it before there was a trace."""
    died: str = ""
    """How its kubelet ended, if it did by itself."""
    died_seq: int = 0
    started: float = 0.0
    alive: frozenset[int] = frozenset()
    """The acts that were being played then."""
    judged: tuple[Judged, str] | None = None
    """The verdicts, and what failed in judging, where they were needed while others were played."""
    again: list[Life] = field(default_factory=list["Life"])
    """The lives in which each of these is played alone."""

    @property
    def name(self) -> str:
        """What its trace is called."""
        if not self.shared:
            return self.acts[0].name
        return _SHARED if self.number == 1 else f"{_SHARED}-{self.number}"


def blame(path: Path, seq: int, scenario: str) -> None:
    """Note in the record of the kubelet's end which scenario ends it alone too.

    Raises `TraceNotWrittenError`.
    """
    lines = path.read_bytes().splitlines(keepends=True)
    # The header is the first line.
    lines[seq] = msgspec.json.encode({**msgspec.json.decode(lines[seq]), "scenario": scenario}) + b"\n"
    write_trace(path, b"".join(lines))


def shared_out(
    judged: Judged, owners: Sequence[str | None], scenarios: Iterable[str]
) -> tuple[Judged, dict[str, Judged]]:
    """The verdicts of the whole node, each break with its scenario, and what each scenario has of it.

    A break is of the scenario whose is the first record of its evidence of any scenario: what follows may
    be whatever showed that time had passed. One that is of no scenario counts for the run.

    Args:
        judged: The verdicts on the trace of the node.
        owners: The scenario of each record, the first that of the record with seq 1.
        scenarios: All that were played on the node.
    """
    whole = {contract: _attributed(outcome, owners) for contract, outcome in judged.outcomes.items()}
    shares = {name: _share(judged, name, owners.count(name)) for name in scenarios}
    for contract, outcome in whole.items():
        for name in outcome.kept_in.intersection(shares):
            shares[name].outcomes[contract] = Outcome(Verdict.KEPT, activations=1)
        for evidence in outcome.evidence:
            if evidence.scenario in shares:
                _add(shares[evidence.scenario].outcomes, contract, evidence)
    return replace(judged, outcomes=whole), shares


def _attributed(outcome: Outcome, owners: Sequence[str | None]) -> Outcome:
    """The outcome with the scenario of each break that is shown."""
    if not outcome.evidence:
        return outcome
    evidence = [replace(each, scenario=_owner(each, owners) or each.scenario) for each in outcome.evidence]
    broken = {(each.clause, each.scenario) for each in evidence}
    if outcome.breaks > len(evidence):
        # Those beyond the evidence may be of any scenario.
        broken |= outcome.broken_clauses
    return replace(outcome, evidence=evidence, broken_clauses=broken)


def _owner(evidence: Evidence, owners: Sequence[str | None]) -> str | None:
    named = (owners[seq - 1] for seq in sorted(evidence.seq) if seq <= len(owners))
    return next((each for each in named if each is not None), None)


def _share(judged: Judged, scenario: str, records: int) -> Judged:
    return Judged(replace(judged.trace, scenario=scenario, records=records), {}, ())


def _add(outcomes: dict[str, Outcome], contract: str, evidence: Evidence) -> None:
    outcome = outcomes.setdefault(contract, Outcome(Verdict.BROKEN))
    outcome.verdict = Verdict.BROKEN
    outcome.evidence.append(evidence)
    outcome.activations += 1
    outcome.breaks += 1
    outcome.broken_clauses.add((evidence.clause, evidence.scenario))
