"""Judge while recording: each piece is a trace, judged as `check` would judge it afterwards."""

from collections.abc import Callable, Iterable

from kubelet_conformance.contract.applicability import Version
from kubelet_conformance.contract.checking import Check, Judged, Trace, Wait, judge_file
from kubelet_conformance.contract.definition import Contract
from kubelet_conformance.contract.judge import Judge
from kubelet_conformance.contract.verdicts import Evidence
from kubelet_conformance.trace.format.errors import BodyError, TraceError
from kubelet_conformance.trace.format.header import Header
from kubelet_conformance.trace.format.records import Record, Stall


class LiveJudge:
    """Judges one piece after another.

    Args:
        contracts: By which.
        kubernetes: The version to judge by.
        on_break: Called with each break that becomes evidence.
    """

    def __init__(
        self,
        contracts: Iterable[Contract],
        kubernetes: Version | None,
        on_break: Callable[[Contract, Evidence], None],
    ) -> None:
        self.check = Check(contracts)
        self._kubernetes = kubernetes
        self._on_break = on_break
        self._judge: Judge | None = None
        self._path = ""
        self._header: Header
        self._count = 0
        self._has_stalled = False
        self._bad: TraceError | None = None

    def begin(self, path: str, header: Header) -> Callable[[Record], None]:
        """A new piece begins; returns the listener for its records."""
        self._judge = Judge(path, header, self.check.contracts, self._kubernetes)
        self._judge.on_break = self._on_break
        self._path, self._header, self._count, self._bad = path, header, 0, None
        self._has_stalled = False
        return self._feed

    def finish(self) -> None:
        """The piece is over."""
        judge, self._judge = self._judge, None
        if self._bad is not None:
            self.check.errors.append(self._bad)
        elif judge is not None:
            header = self._header
            trace = Trace(
                self._path,
                self._kubernetes,
                header.kubernetes,
                header.runtime,
                header.scenario,
                self._count,
                gates=header.gates,
            )
            judged = Judged(trace, judge.outcomes(), tuple[Wait, ...]())
            # What the machine's stalls explain is known once the piece is complete.
            self.check.add(self._judged_again() if self._has_stalled else judged)

    def _judged_again(self) -> Judged:
        return judge_file(self._path, self.check.contracts, kubernetes=self._kubernetes)

    def _feed(self, record: Record) -> None:
        self._count += 1
        self._has_stalled = self._has_stalled or type(record) is Stall
        if self._judge is None or self._bad is not None:
            return
        try:
            self._judge.feed(record)
        except BodyError as error:
            # The recording goes on; this piece is not judged.
            self._bad = TraceError(self._path, self._count + 1, error.problem, error.remedy)
