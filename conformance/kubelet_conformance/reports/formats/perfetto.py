"""The traces of a record as trace events in JSON, which ui.perfetto.dev and chrome://tracing open.

A scenario is a process; each pod, sandbox and container is a track, with its calls as slices and what happens
to it as instants; another track says how long it ran. Times are those of the trace.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from kubelet_conformance.reports.safe import safe
from kubelet_conformance.reports.timeline.lives import run_change
from kubelet_conformance.reports.trace_text.lines import asked, described, replied
from kubelet_conformance.run_record.record import Record as RunRecord
from kubelet_conformance.trace.format.errors import BodyError, TraceError
from kubelet_conformance.trace.format.reader import Reader
from kubelet_conformance.trace.format.records import Call, Reply, Unknown
from kubelet_conformance.trace.world.moment import Moment
from kubelet_conformance.trace.world.observe import moments

_MICRO = 1e6
_NODE = "node"
"""The track of what is about no pod."""
_FIRST_PROCESS = 1001
"""Tracks begin at 1, and a viewer takes one that has the number of its process for its main one."""
_Event: TypeAlias = dict[str, Any]


def as_perfetto(record: RunRecord) -> str:
    """All traces of the record, one event a line."""
    events: list[_Event] = []
    for process, trace in enumerate(record.run.traces, start=_FIRST_PROCESS):
        name = safe(trace.scenario or trace.path)
        events.append({"ph": "M", "name": "process_name", "pid": process, "args": {"name": name}})
        file = record.file(trace.path)
        if file.is_file():
            events += _Tracks(process).read(str(file))
    lines = ",\n".join(json.dumps(each, ensure_ascii=True) for each in events)
    return f'{{"displayTimeUnit": "ms", "traceEvents": [\n{lines}\n]}}\n'


@dataclass(slots=True)
class _Tracks:
    """The tracks of one trace.

    A viewer draws slices of one track inside each other: where calls overlap without that, the later one
    goes to another track of the same name.
    """

    process: int
    numbers: dict[tuple[str, int], int] = field(default_factory=dict[tuple[str, int], int])
    busy: dict[str, list[str | None]] = field(default_factory=dict[str, list[str | None]])
    """For each name the calls, by id, that its tracks are showing now."""
    begun: dict[str, tuple[str, int, str, float]] = field(
        default_factory=dict[str, tuple[str, int, str, float]]
    )
    lives: dict[str, tuple[str, float]] = field(default_factory=dict[str, tuple[str, float]])
    """What runs now, by its id: its track, and since when."""
    end: float = 0.0
    """When the trace ends, as far as it is read."""

    def read(self, path: str) -> Iterator[_Event]:
        """The events of a trace, up to where it can be read."""
        try:
            with Reader(path) as reader:
                for moment in moments(reader):
                    yield from self._life(moment)
                    yield from self._event(moment)
                    self.end = moment.t
        except (TraceError, BodyError):
            pass  # What was found up to here is shown.
        for name, place, what, t in self.begun.values():
            yield self._slice(self._track(name, place), f"{what} (no reply)", t, 0.0, {})
        for name, t in self.lives.values():
            yield self._slice(self._track(name, 0), "runs on", t, self.end - t, {})
        for (name, place), number in self.numbers.items():
            title = name if place == 0 else f"{name} ({place + 1})"
            yield {
                "ph": "M",
                "name": "thread_name",
                "pid": self.process,
                "tid": number,
                "args": {"name": title},
            }

    def _life(self, moment: Moment) -> Iterator[_Event]:
        change = run_change(moment)
        if change is None:
            return
        if change.id in self.lives:
            name, t = self.lives.pop(change.id)
            yield self._slice(self._track(name, 0), "ran", t, moment.t - t, {})
        if change.attempt is not None:
            name = _name(moment) if moment.container is not None else _sandbox(moment, change.attempt)
            self.lives[change.id] = f"{name} life", moment.t

    def _event(self, moment: Moment) -> Iterator[_Event]:
        record = moment.record
        if isinstance(record, Call):
            self._begin(moment, record)
        elif isinstance(record, Reply):
            yield from self._end(moment, record)
        elif not isinstance(record, Unknown):
            where = {"pid": self.process, "tid": self._track(_name(moment), 0), "ts": _micro(record.t)}
            args = {"seq": record.seq, "kind": record.kind}
            yield {"ph": "i", "s": "t", "name": described(moment), **where, "args": args}

    def _begin(self, moment: Moment, call: Call) -> None:
        name = _name(moment)
        busy = self.busy.setdefault(name, [])
        place = next((number for number, each in enumerate(busy) if each is None), len(busy))
        busy[place:] = [call.id, *busy[place + 1 :]]
        self.begun[call.id] = name, place, asked(moment), call.t

    def _end(self, moment: Moment, reply: Reply) -> Iterator[_Event]:
        call = reply.call
        if call.id not in self.begun:
            return
        name, place, what, t = self.begun.pop(call.id)
        self.busy[name][place] = None
        args = {"seq": call.seq, "reply_seq": reply.seq, "reply": replied(moment)}
        yield self._slice(self._track(name, place), what, t, reply.t - t, args)

    def _slice(self, track: int, what: str, t: float, seconds: float, args: _Event) -> _Event:
        where = {"pid": self.process, "tid": track, "ts": _micro(t), "dur": _micro(seconds)}
        return {"ph": "X", "name": what, **where, "args": args}

    def _track(self, name: str, place: int) -> int:
        return self.numbers.setdefault((name, place), len(self.numbers) + 1)


def _name(moment: Moment) -> str:
    """The track of a record: the container, else the sandbox, else the pod that it is about."""
    if moment.container is not None:
        return f"{_pod(moment)} container {safe(moment.container.name)}#{moment.container.attempt}"
    if moment.sandbox is not None:
        return _sandbox(moment, moment.sandbox.attempt)
    return f"{_pod(moment)} pod" if moment.pod is not None else _NODE


def _sandbox(moment: Moment, attempt: int) -> str:
    return f"{_pod(moment)} sandbox #{attempt}"


def _pod(moment: Moment) -> str:
    return "" if moment.pod is None else safe(f"{moment.pod.namespace or 'default'}/{moment.pod.name}")


def _micro(seconds: float) -> float:
    return round(seconds * _MICRO, 3)
