"""Writes the record of a run while it grows, and whole at its end."""

import os
import shutil
import tarfile
from collections.abc import Iterable
from contextlib import suppress
from io import TextIOWrapper
from pathlib import Path

import msgspec
from msgspec.structs import replace

from kubelet_conformance.contract.verdicts import Verdict
from kubelet_conformance.run_record.changes import proofs_in, relative_to, with_traces
from kubelet_conformance.run_record.conclusion import Exit, gravest
from kubelet_conformance.run_record.files import as_json, try_to_write, write_whole
from kubelet_conformance.run_record.model import ContractResult, Ended, Run, ScenarioResult
from kubelet_conformance.run_record.record import JOURNAL, LOGS, PACKED, RUN, TRACES, Record
from kubelet_conformance.run_record.system_clock import monotonic_ns, system_time_ns
from kubelet_conformance.run_record.temporary_folder import TemporaryFolder
from kubelet_conformance.trace.format.errors import BadInputError
from kubelet_conformance.trace.format.header import rfc3339

_NANO = 1e9
_MILLI = 3


class RecordError(BadInputError):
    """A record cannot be written or read; the message names it and says what to do."""


class RecordWriter:
    """The record of one run: a folder, which a name that ends in .tar.gz is packed into at the end.

    Without a name it is kept until the writer is closed, for the reports of this process.

    Attributes:
        folder: where the record grows.
        traces: the folder for its traces, without those of an earlier record.
        logs: the folder for the logs of kubelets.
        problem: why the record could not be finished; empty if it could.
    """

    def __init__(self, name: str | None) -> None:
        self.name = name
        self.problem = ""
        self._is_packed = name is not None and name.endswith(PACKED)
        self._started, self._start = rfc3339(system_time_ns()), monotonic_ns()
        self._journal: TextIOWrapper | None = None
        self._is_whole = False
        """Whether it has been packed, so that the folder is not needed any more."""
        self._temporary: TemporaryFolder | None = None
        if name is None:
            self._temporary = TemporaryFolder()
            self.folder = Path(self._temporary.name)
        else:
            self.folder = Path(f"{name}.part" if self._is_packed else name)
        self.traces, self.logs = self.folder / TRACES, self.folder / LOGS
        try:
            self.traces.mkdir(parents=True, exist_ok=True)
            self._check_place()
            self._forget_earlier()
        except OSError as error:
            raise self._refused(error) from None

    def _check_place(self) -> None:
        """Find out now whether files can be written, and not after the work."""
        try_to_write(self.folder)
        if self._is_packed and Path(str(self.name)).is_dir():
            raise RecordError(f"{self.name}: is a folder; name a file for the packed record")

    def _forget_earlier(self) -> None:
        """Remove what an earlier run has left here, and nothing that is not of a record."""
        if (self.folder / RUN).exists():
            for old in (*self.traces.glob("*.jsonl"), *self.logs.glob("*.log"), self.folder / JOURNAL):
                old.unlink(missing_ok=True)

    def _refused(self, error: OSError) -> RecordError:
        remedy = f"name a folder, or a file that ends in {PACKED}"
        return RecordError(f"{self.name}: cannot hold a record: {error.strerror or error}; {remedy}")

    def begin(self, run: Run) -> None:
        """Say what is going to be run: `run` is one in which nothing was judged yet."""
        if self.name is None:
            return
        idle = tuple(replace(each, verdict=Verdict.NOT_EXERCISED) for each in run.contracts)
        try:
            self._write(replace(self._timed(run), ended=Ended.UNFINISHED, contracts=idle))
            self._journal = (self.folder / JOURNAL).open("w", encoding="ascii")
        except OSError as error:
            raise self._refused(error) from None

    @property
    def grows(self) -> bool:
        """Whether it takes each scenario that is over."""
        return self._journal is not None

    def add(self, scenario: ScenarioResult, contracts: Iterable[ContractResult]) -> None:
        """A scenario is over, and these are the contracts that it exercised or broke."""
        if self._journal is None:
            return
        renamed = relative_to(self.folder)
        line = {
            "scenario": replace(scenario, trace=renamed(scenario.trace)),
            "contracts": [proofs_in(each, renamed) for each in contracts],
        }
        try:
            self._journal.write(as_json(msgspec.to_builtins(line), indent=None))
            self._journal.flush()
        except OSError as error:
            self._fail(JOURNAL, error)

    def finish(self, run: Run) -> Record:
        """Write the whole run, with the time that it took. One that cannot be written ends as bad input."""
        run = self._timed(with_traces(run, relative_to(self.folder)))
        if self.name is not None:
            try:
                self._write(run)
                self._end_journal()
                if self._is_packed:
                    self._pack(Path(self.name))
            except OSError as error:
                self._fail(RUN, error)
        if self.problem:
            run = replace(run, exit_code=int(gravest(Exit(run.exit_code), Exit.BAD_INPUT)))
        return Record(run, self.folder, self.name)

    def keep(self, run: Run) -> str:
        """Keep a record that was not asked for, since a report of it was lost.

        Returns its name, or nothing if it cannot be kept either.
        """
        if self._temporary is not None:
            try:
                self._write(run)
                self.folder = self._temporary.keep()
            except OSError:
                return ""
            self.name, self._temporary = str(self.folder), None
        return "" if self.problem or self.name is None else self.name

    def close(self) -> None:
        """Leave nothing behind that is not to be kept."""
        self._drop_journal()
        if self._temporary is not None:
            self._temporary.cleanup()
        elif self._is_whole:
            shutil.rmtree(self.folder, ignore_errors=True)

    def _timed(self, run: Run) -> Run:
        seconds = round((monotonic_ns() - self._start) / _NANO, _MILLI)
        return replace(run, started=self._started, seconds=seconds)

    def _write(self, run: Run) -> None:
        write_whole(self.folder / RUN, as_json(msgspec.to_builtins(run)))

    def _end_journal(self) -> None:
        """All that it says is in the run now."""
        self._drop_journal()
        (self.folder / JOURNAL).unlink(missing_ok=True)

    def _drop_journal(self) -> None:
        journal, self._journal = self._journal, None
        if journal is not None:
            # What a full disk did not take is reported already, or is in the run.
            with suppress(OSError):
                journal.close()

    def _pack(self, target: Path) -> None:
        """Put the folder into one file, whole or not at all."""
        beside = target.with_name(f".{target.name}.{os.getpid()}.part")
        try:
            with tarfile.open(beside, "w:gz") as pack:
                for name in (RUN, TRACES, LOGS):
                    if (self.folder / name).exists():
                        pack.add(self.folder / name, name)
            beside.replace(target)
        finally:
            beside.unlink(missing_ok=True)
        self._is_whole = True

    def _fail(self, file: str, error: OSError) -> None:
        self._drop_journal()
        self.problem = f"{Path(str(self.name), file)}: cannot be written: {error.strerror or error}"
