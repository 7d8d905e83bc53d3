"""A record as reports see it: what it says of its run, and where its traces are."""

from dataclasses import dataclass
from pathlib import Path

from kubelet_conformance.run_record.model import Run

RUN = "run.json"
JOURNAL = "journal.ndjson"
"""Has a line for each scenario that is over, for as long as the run is not."""
TRACES = "traces"
TRACE = ".jsonl"
LOGS = "logs"
PACKED = ".tar.gz"


@dataclass(frozen=True, slots=True)
class Record:
    """A run with its traces.

    Attributes:
        run: what was judged, and how that ended.
        folder: what the names of traces are relative to.
        name: what people call the record, such as `kept` or `kept.tar.gz`; empty where traces go by their own
            names, and None where they are not kept.
    """

    run: Run
    folder: Path
    name: str | None = ""

    def file(self, trace: str) -> Path:
        """The file of a trace."""
        return self.folder / trace

    def shown(self, trace: str) -> str:
        """How people find a trace; empty if it is not kept."""
        if self.name is None or not trace:
            return ""
        return str(Path(self.name, trace))

    def log(self, trace: str) -> Path | None:
        """The log of the kubelet that a trace is of, if it was kept."""
        file = self.folder / LOGS / f"{Path(trace).stem}.log"
        return file if trace and file.is_file() else None

    def shown_log(self, trace: str) -> str:
        """How people find the log of a trace; empty if it is not kept."""
        log = self.log(trace)
        return self.shown(f"{LOGS}/{log.name}") if log is not None else ""
