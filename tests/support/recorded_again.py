"""A recorded trace, recorded again by a recorder that stands where the tap would have stood."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from google.protobuf.json_format import ParseDict

from kubelet_conformance.recording.bodies import Bodies
from kubelet_conformance.recording.observer import TICK_SECONDS, Observer
from kubelet_conformance.recording.pod_sources import DesiredPod, Look, PodKey, kept_status
from kubelet_conformance.recording.rotation import Pieces
from kubelet_conformance.recording.transcript import Transcript
from kubelet_conformance.tap.events import Answered, CallBegan, CallEnded, Note, Observation
from kubelet_conformance.tap.messages import method
from kubelet_conformance.trace.format.header import Channels, Header
from kubelet_conformance.trace.format.reader import Reader
from kubelet_conformance.trace.format.records import (
    Body,
    Call,
    Deleted,
    End,
    PodChange,
    Record,
    Reply,
    Status,
)
from kubelet_conformance.trace.redaction.redactor import Redactor

KEY = b"a key that tests may know"
_IMAGES = frozenset({"ImageStatus", "ListImages", "PullImage", "RemoveImage", "ImageFsInfo"})
_NS = 1_000_000_000


@dataclass
class RecordedPods:
    """What a kubelet's /pods would have reported, or its manifest folder, by a trace's own records."""

    node: str
    gives_status: bool
    looks: int = 0
    _pods: dict[str, PodChange] = field(default_factory=dict[str, PodChange])
    _status: dict[str, Status] = field(default_factory=dict[str, Status])

    def take(self, record: Record) -> None:
        """The trace goes on."""
        if isinstance(record, PodChange):
            meta = cast("dict[str, Any]", Body(record.pod).json()["metadata"]) if record.op == "set" else {}
            uid, name = meta.get("uid", record.uid), meta.get("name", record.name)
            if record.op == "set":
                self._pods[uid or name] = record
            else:
                self._pods.pop(uid or name, None)
        elif isinstance(record, Deleted):
            self._pods.pop(record.uid, None)
        elif isinstance(record, Status):
            self._status.pop(record.uid, None)
            self._status[record.uid] = record

    def look(self) -> Look:
        """All of it, now."""
        self.looks += 1
        return Look(tuple(self._desired(record) for record in self._pods.values()))

    def _desired(self, record: PodChange) -> DesiredPod:
        pod: dict[str, Any] = Body(record.pod).json()
        meta = pod["metadata"]
        found = self._status.get(meta.get("uid", "")) or self._of_mirror(meta["name"])
        status = Body(found.status).json() if found is not None and self.gives_status else None
        kept = kept_status({**pod, "status": pod.get("status", {})})
        pod = {key: value for key, value in pod.items() if key != "status"}
        pod |= {} if kept is None else {"status": kept}
        static = record.source != "api"
        name = f"{meta['name']}-{self.node}" if static else meta["name"]
        key = PodKey(record.source, meta.get("namespace", "default"), name, meta.get("uid", ""))
        return DesiredPod(key, pod, status)

    def _of_mirror(self, manifest_name: str) -> Status | None:
        """The latest status of the mirror of a static pod."""
        full = f"{manifest_name}-{self.node}"
        return next((each for each in reversed(self._status.values()) if each.name == full), None)


def observed_in(record: Record) -> Observation | None:
    """What a tap observes of this record."""
    at_ns = round(record.t * _NS)
    if isinstance(record, Call):
        return CallBegan(
            at_ns, record.id, _service(record.rpc), record.rpc, _as_bytes(record.rpc, record.request)
        )
    if isinstance(record, Reply):
        rpc, call_id = record.call.rpc, record.call.id
        if record.error is not None:
            return CallEnded(at_ns, call_id, rpc, record.error.code, record.error.message)
        assert record.response is not None
        return Answered(at_ns, call_id, rpc, _as_bytes(rpc, record.response, is_request=False))
    return None


def _service(rpc: str) -> str:
    return "runtime.v1.ImageService" if rpc in _IMAGES else "runtime.v1.RuntimeService"


def _as_bytes(rpc: str, body: Body, *, is_request: bool = True) -> bytes:
    """The body as the message that its rpc takes or gives."""
    known = method(_service(rpc), rpc)
    assert known is not None
    message = ParseDict(body.json(), (known.request if is_request else known.response)())
    return message.SerializeToString(deterministic=True)


def _with_ticks(path: Path, pods: RecordedPods, offset: float) -> Iterator[tuple[Record | None, float]]:
    tick = offset
    with Reader(path) as reader:
        for record in reader:
            while tick < record.t:
                yield None, tick
                tick += TICK_SECONDS
            pods.take(record)
            yield record, record.t


def record_again(
    path: Path, output: Path, *, gives_status: bool, offset: float, max_bytes: int = 1 << 30, lag: float = 0.0
) -> list[Path]:
    """Record what the trace shows, with a look at the pods each second from `offset` on; the files.

    The recorder writes everything `lag` seconds late.
    """
    with Reader(path) as reader:
        stated = reader.header
    channels = Channels(cri="full", pods="sampled", api="sampled" if gives_status else "none")
    header = Header(trace=1, channels=channels, kubernetes=stated.kubernetes, node=stated.node, redacted=True)
    pieces = Pieces(output, keep=1000)
    transcript = Transcript(pieces, header, Bodies(Redactor(KEY)), started_ns=0, max_bytes=max_bytes)
    pods = RecordedPods(stated.node or "", gives_status)
    now, problems = 0.0, list[str]()
    observer = Observer(transcript, pods, lambda: round((now + lag) * _NS), problems.append)
    for record, now in _with_ticks(path, pods, offset):
        observation = Note(round(now * _NS), b"") if record is None else observed_in(record)
        if observation is not None:
            observer.observe(observation)
        if isinstance(record, End):
            break
    observer.end(round(now * _NS))
    assert not problems
    return pieces.paths
