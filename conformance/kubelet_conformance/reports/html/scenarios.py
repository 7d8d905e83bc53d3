"""What a page says of each scenario, with its timeline."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec
from markupsafe import Markup

from kubelet_conformance.contract.verdicts import Verdict
from kubelet_conformance.reports.html.contracts import ContractView
from kubelet_conformance.reports.html.picture import Picture, picture_of
from kubelet_conformance.reports.safe import safe
from kubelet_conformance.reports.timeline.model import Timeline
from kubelet_conformance.reports.timeline.reading import timeline_of
from kubelet_conformance.reports.trace_text.causes import Group
from kubelet_conformance.run_record.model import Proof, ScenarioResult, TraceResult
from kubelet_conformance.run_record.record import Record
from kubelet_conformance.run_record.worker_pool import Ahead
from kubelet_conformance.trace.format.records import Body

_BODY_BYTES = 3000
_BODIES_CHARS = 3_000_000
"""So much of bodies is in one page; further ones are left out."""
_BODIES_SHOWN = 150
"""Of a longer timeline only the calls that are nearest to its breaks have bodies."""
_ITEMS_SHOWN = 1500
"""A longer timeline is shown around its breaks, or from its begin."""


@dataclass(frozen=True, slots=True)
class TimelineView:
    """A timeline as a picture.

    Attributes:
        items: how many calls and events it shows.
        seconds: how long it lasts.
        bodies: as JSON, what was asked and answered.
        problem: what is wrong with its trace.
        note: what of it is not shown.
    """

    picture: Picture
    items: int
    seconds: float
    bodies: Markup
    problem: str
    note: str = ""

    @classmethod
    def of(cls, timeline: Timeline, note: str = "", *, reads: bool) -> "TimelineView":
        """The picture of a timeline, with its reads or without."""
        picture, items = picture_of(timeline, reads=reads), len(timeline.items)
        return cls(picture, items, timeline.end, _bodies(timeline), timeline.problem, note)


@dataclass(frozen=True, slots=True)
class ScenarioView:
    """One scenario, or a trace where there are no scenarios.

    Attributes:
        state: the verdict that colours it.
        troubles: what else went wrong in it.
        shared_by: the scenarios of a trace that several share.
        exercised: the contracts that it exercised, as bits by their numbers, in hexadecimal.
    """

    name: str
    state: str
    words: str
    trace: TraceResult
    troubles: list[str]
    shown: str
    shared_by: list[str]
    exercised: str
    broken: tuple[str, ...]
    view: TimelineView | None

    @property
    def stem(self) -> str:
        """The name of its file beside the page."""
        return stem_of(self.trace)


def stem_of(trace: TraceResult) -> str:
    """The name of the page that shows only this trace, without its ending."""
    return Path(trace.path).stem


class Pictures:
    """The timelines of a record; each is read once.

    In each the breaks of the likeliest cause, by these groups, come before those of other contracts.
    """

    def __init__(self, record: Record, groups: Sequence[Group]) -> None:
        self._record = record
        self._proofs: dict[str, list[tuple[str, Proof]]] = {}
        broken = [contract for group in groups for contract in group.contracts]
        for contract in (*broken, *record.run.having(Verdict.KNOWN_DEVIATION)):
            for proof in contract.evidence:
                self._proofs.setdefault(proof.trace, []).append((contract.id, proof))

    def proofs(self, trace: str) -> Sequence[tuple[str, Proof]]:
        """The breaks that a trace shows, each with its contract."""
        return self._proofs.get(trace, ())

    def view(self, trace: TraceResult, focus: Proof | None = None) -> TimelineView | None:
        """The timeline of a trace, of a shared one around its breaks, or of the pods of one break.

        None where the trace is not there any more.
        """
        file = self._record.file(trace.path)
        if not file.is_file():
            return None
        proofs = self.proofs(trace.path)
        timeline = timeline_of(file, proofs, bodies=bool(proofs))
        note, count = "", len(timeline.items)
        if trace.scenario is None:
            timeline.narrow()
        if focus is not None:
            timeline.focus(focus.seq)
            if len(timeline.items) < count:
                note, count = "Of many pods only those of the break are shown.", len(timeline.items)
        timeline.shorten(_ITEMS_SHOWN)
        if len(timeline.items) < count:
            note = f"{count - len(timeline.items)} further calls and events are not shown."
        if timeline.keep_bodies(_BODIES_SHOWN):
            note = f"{note} The {_BODIES_SHOWN} calls nearest to the breaks have bodies.".strip()
        return TimelineView.of(timeline, note, reads=bool(timeline.findings))

    def whole(self, trace: str) -> TimelineView | None:
        """The timeline of a trace with every call and every body."""
        file = self._record.file(trace)
        if not file.is_file():
            return None
        return TimelineView.of(timeline_of(file, self.proofs(trace), bodies=True), reads=True)


def _bodies(timeline: Timeline) -> Markup:
    """As JSON: the different bodies, and for each item, by its number, which of them it has."""
    places: dict[bytes, int] = {}
    items = {
        number: [(name, places.setdefault(_shown(body), len(places))) for name, body in item.bodies.items()]
        for number, item in enumerate(timeline.items)
        if item.bodies
    }
    written = msgspec.json.encode(([_whole_or_cut(each) for each in places], items)) if items else b""
    # Within a script nothing is markup but what begins with this sign.
    return Markup(written.decode("utf-8", "replace").replace("<", "\\u003c"))  # noqa: S704


def _shown(body: Body) -> bytes:
    """What of a body can be seen, with one more byte where it is too long."""
    return bytes(body.raw)[: _BODY_BYTES + 1]


def _whole_or_cut(raw: bytes) -> msgspec.Raw | str:
    if len(raw) <= _BODY_BYTES:
        return msgspec.Raw(raw)
    return f"{raw[:_BODY_BYTES].decode('utf-8', 'ignore')}…"


def scenario_views(
    record: Record, pictures: Pictures, contracts: Sequence[ContractView], processes: int
) -> list[ScenarioView]:
    """All scenarios, those that broke something first; and the traces that are of none.

    They are drawn in so many processes.
    """
    numbers = {each.id: number for number, each in enumerate(record.run.contracts)}
    played: dict[str, list[ScenarioResult]] = {}
    for each in record.run.scenarios:
        played.setdefault(each.trace, []).append(each)
    first = {each.breaks[0].proof.trace for each in contracts[:1] if each.breaks}
    traces = sorted(
        record.run.traces, key=lambda each: (each.path not in first, not pictures.proofs(each.path))
    )
    views = dict(_within_room(_drawn(traces, pictures, processes)))
    return [
        _view(record, pictures, trace, played.get(trace.path, []), numbers, views[trace.path])
        for trace in traces
    ]


def _drawn(
    traces: Sequence[TraceResult], pictures: Pictures, processes: int
) -> Iterator[tuple[str, TimelineView | None]]:
    if min(processes, len(traces)) <= 1:
        yield from ((each.path, pictures.view(each)) for each in traces)
        return
    of = {each.path: each for each in traces}
    with closing(Ahead(lambda path: pictures.view(of[path]), of, processes)) as ahead:
        yield from ((path, ahead.take(path)) for path in of)


def _within_room(
    drawn: Iterable[tuple[str, TimelineView | None]],
) -> Iterator[tuple[str, TimelineView | None]]:
    """Those for whose bodies a page has no room any more go without."""
    room = _BODIES_CHARS
    for path, view in drawn:
        yield path, view if view is None or room > 0 else replace(view, bodies=Markup())
        room -= len(view.bodies) if view is not None else 0


def _view(  # noqa: PLR0913, PLR0917 - what is known of a scenario
    record: Record,
    pictures: Pictures,
    trace: TraceResult,
    of: Sequence[ScenarioResult],
    numbers: dict[str, int],
    view: TimelineView | None,
) -> ScenarioView:
    proofs = pictures.proofs(trace.path)
    broken = tuple(dict.fromkeys(contract for contract, proof in proofs if not proof.deviation))
    state, words = state_of(broken, of, deviates=bool(proofs))
    exercised = {*broken, *(name for each in of for name in each.exercised)}
    bits = sum(1 << numbers[each] for each in exercised if each in numbers)
    shared_by = [safe(each.name) for each in of] if trace.scenario is None else []
    return ScenarioView(
        safe(trace.scenario or trace.path),
        state,
        words,
        trace,
        [text for each in of for text in (each.unmet, each.died, each.failed) if text],
        record.shown(trace.path),
        shared_by,
        f"{bits:x}",
        broken,
        view,
    )


def state_of(
    broken: Sequence[str], of: Sequence[ScenarioResult], *, deviates: bool = False
) -> tuple[str, str]:
    """The verdict that colours scenarios, which broke these contracts, and how they ended in words."""
    if broken:
        return "broken", f"breaks {len(broken)}"
    if any(each.failed for each in of):
        return "error", "the suite failed"
    if any(each.died and not each.died_as_known for each in of):
        return "broken", "kubelet ended"
    if any(each.unmet for each in of):
        return "error", "timed out"
    if deviates:
        return "known_deviation", "known deviation"
    return "kept", "kept"
