"""Judge a changed trace in memory, with all contracts."""

import io
from dataclasses import dataclass

from mutants import Mutant
from recording import Recording, encoded

from kubelet_conformance.contract.applicability import parse_version
from kubelet_conformance.contract.judge import Judge
from kubelet_conformance.contract.verdicts import Outcome, Verdict
from kubelet_conformance.contracts import every_contract
from kubelet_conformance.trace.format.reader import Reader


@dataclass(frozen=True, slots=True)
class Finding:
    """What the judges made of one mutant: the contracts broken, and those whose judge failed."""

    name: str
    call: str
    change: str
    broken: tuple[str, ...]
    errors: tuple[str, ...]

    @property
    def caught(self) -> bool:
        """Some contract was broken."""
        return bool(self.broken)


def outcomes(name: str, trace: bytes) -> dict[str, Outcome]:
    """The outcome of every contract over the bytes of one trace."""
    with Reader(name, file=io.BytesIO(trace)) as reader:
        version = reader.header.kubernetes
        judge = Judge(
            name, reader.header, every_contract().values(), parse_version(version) if version else None
        )
        for record in reader:
            judge.feed(record)
    return judge.outcomes()


def found(recording: Recording, mutant: Mutant) -> Finding:
    """Judge one mutant."""
    made = outcomes(mutant.name, encoded(recording.header, mutant.make()))
    return Finding(
        mutant.name, mutant.call, mutant.change, _with(made, Verdict.BROKEN), _with(made, Verdict.ERROR)
    )


def _with(made: dict[str, Outcome], verdict: Verdict) -> tuple[str, ...]:
    return tuple(key for key, outcome in made.items() if outcome.verdict is verdict)
