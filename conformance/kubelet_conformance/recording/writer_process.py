"""The process that writes: reads what passed the tap until its input ends, and reports the result."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from kubelet_conformance.contract.applicability import parse_version
from kubelet_conformance.contract.checking import Check
from kubelet_conformance.contract.definition import Contract
from kubelet_conformance.contract.verdicts import Evidence
from kubelet_conformance.contracts import every_contract
from kubelet_conformance.recording.bodies import Bodies
from kubelet_conformance.recording.kubelet_pods import KubeletPods
from kubelet_conformance.recording.live_judge import LiveJudge
from kubelet_conformance.recording.manifest_files import ManifestFiles
from kubelet_conformance.recording.observer import Observer
from kubelet_conformance.recording.plan import Plan
from kubelet_conformance.recording.pod_sources import PodsReadError, PodsSource, is_alone
from kubelet_conformance.recording.rotation import Pieces
from kubelet_conformance.recording.transcript import Counts, Transcript
from kubelet_conformance.tap.events import Note, Observation
from kubelet_conformance.trace.format.header import FORMAT_VERSION, Channels, Header
from kubelet_conformance.trace.redaction.redactor import Redactor


@dataclass(frozen=True, slots=True)
class Recorded:
    """The result of a recording."""

    files: tuple[str, ...]
    removed: int
    """How many older files were removed to keep their number."""
    counts: Counts
    check: Check | None
    """The judgement of all files, where it was asked for."""

    def as_json(self) -> dict[str, Any]:
        """For programs."""
        return {
            "files": list(self.files),
            "removed": self.removed,
            "records": self.counts.records,
            "calls": self.counts.calls,
            "seconds": self.counts.t,
            "undecodable": self.counts.undecodable,
        }


class Listener(Protocol):
    """Called with the progress of a recording."""

    def complain(self, problem: str) -> None:
        """Something could not be read."""
        ...

    def broken(self, contract: Contract, evidence: Evidence) -> None:
        """A contract was broken."""
        ...

    def progress(self, path: str, counts: Counts) -> None:
        """A second has passed."""
        ...


def header_of(plan: Plan, *, statuses: bool) -> Header:
    """What each file of the recording begins with; `statuses` says whether any are to be expected."""
    return Header(
        trace=FORMAT_VERSION,
        clock="wall",
        channels=Channels(
            cri="full",
            pods="none" if plan.pods is None else "sampled",
            api="sampled" if statuses else "none",
            events="none",
        ),
        kubernetes=plan.kubernetes,
        started=plan.started,
        node=plan.node,
        node_assumed=plan.node_assumed,
        redacted=plan.redacts,
    )


def source_of(plan: Plan) -> PodsSource | None:
    """Where its pods are read."""
    if plan.pods is None:
        return None
    if plan.pods_url is not None:
        return KubeletPods(plan.pods_url, plan.node, insecure=plan.insecure)
    return ManifestFiles(Path(plan.pods), plan.node)


def _reports_status(source: PodsSource | None) -> bool:
    """Whether the source knows what is stored at the API server, as far as can be known now."""
    if source is None or not source.gives_status:
        return False
    try:
        return not is_alone(source.look())
    except PodsReadError:
        return True


def write(
    plan: Plan, observed: Iterable[Observation], key: bytes, now_ns: Callable[[], int], listener: Listener
) -> Recorded | None:
    """Write everything that is observed until there is no more; None if there was nothing, not even a note.

    Args:
        plan: What is recorded.
        observed: All observations, in order.
        key: For the digests that stand in the place of secrets.
        now_ns: The monotonic clock, as the tap reads it.
        listener: Called with the progress.

    Raises:
        OSError: A file cannot be written; what was written before is complete to the last flush.
    """
    rest = iter(observed)
    first = next(rest, None)
    if first is None:
        return None
    pieces = Pieces(Path(plan.output), plan.keep)
    source = source_of(plan)
    judge = _judge(plan, listener) if plan.judges else None
    transcript = Transcript(
        pieces,
        header_of(plan, statuses=_reports_status(source)),
        Bodies(Redactor(key) if plan.redacts else None),
        started_ns=plan.started_ns,
        max_bytes=plan.max_bytes,
        begun=judge.begin if judge is not None else None,
        ended=judge.finish if judge is not None else None,
    )
    observer = Observer(transcript, source, now_ns, listener.complain)
    observer.observe(first)
    last_ns = first.at_ns
    for each in rest:
        observer.observe(each)
        last_ns = max(last_ns, each.at_ns)
        if isinstance(each, Note):
            listener.progress(str(pieces.paths[-1]), transcript.counts)
    observer.end(last_ns)
    check = judge.check if judge is not None else None
    return Recorded(tuple(map(str, pieces.paths)), pieces.removed, transcript.counts, check)


def _judge(plan: Plan, listener: Listener) -> LiveJudge:
    version = None if plan.kubernetes is None else parse_version(plan.kubernetes)
    return LiveJudge(every_contract().values(), version, listener.broken)
