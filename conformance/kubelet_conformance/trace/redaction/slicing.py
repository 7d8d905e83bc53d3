"""Cuts pods or a span of time out of a trace, and writes them as a valid trace of their own.

What is left out is as if a recorder had not seen it, and partial knowledge breaks no contract. A span begins
with the state at its begin repeated (`carried_over`). Times stay those of the whole.
"""

import math
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import msgspec

from kubelet_conformance.trace.format.header import Header, Slice
from kubelet_conformance.trace.format.json_values import Json, is_object
from kubelet_conformance.trace.format.reader import Reader
from kubelet_conformance.trace.format.records import (
    Body,
    Call,
    Disk,
    End,
    Kubelet,
    Line,
    Message,
    PodChange,
    Record,
    Reply,
    Unknown,
)
from kubelet_conformance.trace.format.writer import Writer
from kubelet_conformance.trace.redaction.api_secrets import redacted_fields
from kubelet_conformance.trace.redaction.carried_over import CarriedOverState
from kubelet_conformance.trace.redaction.cri_secrets import redacted_request, redacted_response
from kubelet_conformance.trace.redaction.pod_filter import PodFilter, Subjects
from kubelet_conformance.trace.redaction.redactor import Redactor

_BODIES_REMEMBERED = 256
_STREAM = "GetContainerEvents"
_ENVELOPE = frozenset({"seq", "t", "kind"})


@dataclass(frozen=True, slots=True)
class Cut:
    """What is to be kept: of which pods (NAMESPACE/NAME or UID; all where none is named), and of which span.

    `begin` and `end` are in seconds since the start of the trace, both included; None for its own.
    """

    pods: tuple[str, ...] = ()
    begin: float | None = None
    end: float | None = None


class UnknownPodsError(Exception):
    """The trace does not know some of the pods; `others` are those that it knows, or some of them."""

    def __init__(self, pods: list[str], others: list[str]) -> None:
        super().__init__(", ".join(pods))
        self.others = others


class _Lines(Reader):
    """A reader that knows the line which it read last."""

    raw = b""

    def _decoded(self, block: bytes) -> Iterable[Line | Unknown]:
        return self._one_by_one(block)

    def _line(self, raw: bytes) -> Line | Unknown:
        self.raw = raw
        return super()._line(raw)

    def fields(self) -> Json:
        """The fields of the record last read, without seq, t and kind."""
        found: Json = msgspec.json.decode(self.raw)
        return {name: value for name, value in found.items() if name not in _ENVELOPE}


def slice_trace(path: Path | str, cut: Cut, file: BinaryIO, redactor: Redactor | None = None) -> int:
    """Write what is to be kept of the trace at `path`; how many records that is.

    With a redactor, without secrets. The trace is read twice if pods are named, so it cannot be a pipe then.

    Raises:
        TraceError: It is no trace, or the span is not in it.
        UnknownPodsError: It does not know some of these pods; nothing is written.
    """
    subjects = _subjects(path, cut) if cut.pods else None
    with _Lines(path) as reader:
        header = _header(reader.header, cut, redacted=redactor is not None)
        with Writer(file, header) as writer:
            return _Slicer(reader, cut, writer, subjects, redactor).run()


def _header(header: Header, cut: Cut, *, redacted: bool) -> Header:
    begun = cut.begin is None or cut.begin <= 0
    return msgspec.structs.replace(
        header,
        from_start=header.from_start and begun,
        slice=Slice(cut.pods, cut.begin, cut.end),
        redacted=header.redacted or redacted,
    )


def _subjects(path: Path | str, cut: Cut) -> Subjects:
    with _Lines(path) as reader:
        subjects = Subjects(cut.pods, reader.header.node)
    known = -1
    # Other versions of a static pod, or pods of its UID, may stand before the record that makes them known.
    while known < len(subjects.uids) + len(subjects.names):
        known = len(subjects.uids) + len(subjects.names)
        _collect(path, subjects)
    subjects.finish()
    missing = [pod for pod in cut.pods if pod not in subjects.found]
    if missing:
        names = {each.rpartition("/")[2] for each in missing}
        others = sorted(subjects.others, key=lambda each: (each.rpartition("/")[2] not in names, each))
        raise UnknownPodsError(missing, others)
    return subjects


def _collect(path: Path | str, subjects: Subjects) -> None:
    with _Lines(path) as reader:
        for record in reader:
            if isinstance(record, Call):
                subjects.call(record)
            elif isinstance(record, Reply):
                subjects.reply(record)
            elif isinstance(record, Message):
                item = Body(record.message).json()
                subjects.message(item if is_object(item) else {})
            else:
                subjects.other(record.kind, reader.fields())


class _Slicer:
    """Reads a trace and writes what is to be kept of it."""

    def __init__(
        self,
        reader: _Lines,
        cut: Cut,
        writer: Writer,
        subjects: Subjects | None,
        redactor: Redactor | None,
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._begin = -math.inf if cut.begin is None else cut.begin
        self._end = math.inf if cut.end is None else cut.end
        self._filter = None if subjects is None else PodFilter(subjects)
        self._redactor = redactor
        self._standing: CarriedOverState | None = CarriedOverState()
        self._streams: dict[str, Call] = {}
        """The streams of container events that are open before the span begins."""
        self._open: dict[str, None] = {}
        self._disk: Json | None = None
        self._disk_t = 0.0
        self._written: OrderedDict[int, tuple[Body, msgspec.Raw]] = OrderedDict()

    def run(self) -> int:
        """Everything; how many records were written."""
        t = 0.0
        for record in self._reader:
            t = record.t
            if t > self._end:
                break
            if type(record) is End:
                continue
            if t < self._begin:
                self._stand(record)
            else:
                self._begin_now()
                self._keep(record)
        if t < self._begin:
            raise self._reader.bad(
                f"the trace ends at {t:g} s, before the span begins", "name a span within the trace"
            )
        self._begin_now()
        return self._writer.end(min(t, self._end))

    def _stand(self, record: Record) -> None:
        if isinstance(record, Call) and record.rpc == _STREAM:
            self._streams[record.id] = record
        elif isinstance(record, Reply):
            self._streams.pop(record.call.id, None)
        elif isinstance(record, Kubelet):
            self._streams.clear()
        if self._standing is not None and record.kind in {"pod", "deleted", "kubelet", "fault"}:
            self._standing.take(record.t, record.kind, self._reader.fields())

    def _begin_now(self) -> None:
        """The span begins: repeat the state that holds."""
        standing, self._standing = self._standing, None
        if standing is not None and self._begin > 0:
            for kind, fields in standing.records():
                self._record(self._begin, kind, fields)
            for call in self._streams.values():
                self._call(call, self._begin)

    def _keep(self, record: Record) -> None:
        if isinstance(record, Call):
            self._call(record, record.t)
        elif isinstance(record, Reply):
            self._reply(record)
        elif isinstance(record, Message):
            self._message(record)
        else:
            self._other(record)

    def _call(self, call: Call, t: float) -> None:
        if self._filter is not None and not self._filter.keeps_call(call):
            return
        request = call.request.json()
        if self._redactor is not None:
            request = redacted_request(self._redactor, call.rpc, request)
        self._open[call.id] = None
        self._writer.call(t, call.rpc, call.id, request)

    def _reply(self, reply: Reply) -> None:
        call_id = reply.call.id
        if call_id not in self._open:
            return
        del self._open[call_id]
        error = reply.error
        if error is not None:
            message = error.message if self._redactor is None else self._redactor.text(error.message)
            self._writer.failed(reply.t, call_id, error.code, message, effect=reply.effect)
        elif reply.response is not None:
            self._writer.reply(reply.t, call_id, self._response(reply.call.rpc, reply.response))

    def _response(self, rpc: str, body: Body) -> msgspec.Raw:
        """The part of a response that is kept; a repeated response is not filtered again."""
        written = self._written.get(id(body))
        if written is not None and written[0] is body:
            self._written.move_to_end(id(body))
            return written[1]
        value = body.json()
        if self._filter is not None and is_object(value):
            value = self._filter.reply(rpc, value)
        if self._redactor is not None:
            value = redacted_response(self._redactor, rpc, value)
        raw = msgspec.Raw(msgspec.json.encode(value, order="deterministic"))
        self._written[id(body)] = body, raw
        if len(self._written) > _BODIES_REMEMBERED:
            self._written.popitem(last=False)
        return raw

    def _message(self, record: Message) -> None:
        if record.id not in self._open:
            return
        item = Body(record.message).json()
        if self._filter is not None and not (is_object(item) and self._filter.keeps_item(item)):
            return
        if self._redactor is not None:
            item = redacted_response(self._redactor, record.rpc, item)
        self._writer.record(record.t, "message", rpc=record.rpc, id=record.id, message=item)

    def _other(self, record: Record) -> None:
        fields = self._reader.fields()
        if self._filter is not None and isinstance(record, Disk) and record.op in {"written", "removed"}:
            # A manifest's file is recorded before its pods, at the same time.
            self._disk, self._disk_t = fields, record.t
            if not self._filter.keeps("disk", fields):
                return
            self._disk = None
        self._record(record.t, record.kind, fields)
        if not isinstance(record, PodChange):
            self._disk = None

    def _record(self, t: float, kind: str, fields: Json) -> None:
        if self._filter is not None:
            if not self._filter.keeps(kind, fields):
                return
            fields = self._filter.fields(kind, fields)
        disk, self._disk = self._disk, None
        if kind == "pod" and disk is not None and self._disk_t == t:
            self._writer.record(t, "disk", **disk)
        if self._redactor is not None:
            fields = redacted_fields(self._redactor, kind, fields)
        self._writer.record(t, kind, **fields)
