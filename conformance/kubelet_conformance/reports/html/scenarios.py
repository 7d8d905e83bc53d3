"""What a page says of each scenario, with its timeline."""

import json
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

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

_BODY_CHARS = 4000
_BODIES_CHARS = 2_000_000
"""So much of bodies is in one page; further ones are left out."""
_ITEMS_SHOWN = 1500
"""A longer timeline is shown around its breaks, or from its begin."""


@dataclass(frozen=True, slots=True)
class TimelineView:
    """A timeline as a picture.

    Attributes:
        items: how many calls and events it shows.
        seconds: how long it lasts.
        bodies: as JSON, by the number of an item, what was asked and answered.
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
        self._room = _BODIES_CHARS
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
        timeline = timeline_of(file, proofs, bodies=bool(proofs) and self._room > 0)
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
        view = TimelineView.of(timeline, note, reads=bool(timeline.findings))
        self._room -= len(view.bodies)
        return view

    def whole(self, trace: str) -> TimelineView | None:
        """The timeline of a trace with every call and every body."""
        file = self._record.file(trace)
        if not file.is_file():
            return None
        return TimelineView.of(timeline_of(file, self.proofs(trace), bodies=True), reads=True)


def _bodies(timeline: Timeline) -> Markup:
    """By the number of an item, as JSON, what was asked and answered."""
    texts = {
        number: [[name, _text(bytes(body.raw))] for name, body in item.bodies.items()]
        for number, item in enumerate(timeline.items)
        if item.bodies
    }
    written = json.dumps(texts, separators=(",", ":")) if texts else ""
    # Within a script nothing is markup but what begins with this sign.
    return Markup(written.replace("<", "\\u003c"))  # noqa: S704


def _text(raw: bytes) -> str:
    text = raw.decode("utf-8", "replace")
    return text if len(text) <= _BODY_CHARS else f"{text[:_BODY_CHARS]}…"


def scenario_views(
    record: Record, pictures: Pictures, contracts: Sequence[ContractView], processes: int
) -> list[ScenarioView]:
    """All scenarios, those that broke something first; and the traces that are of none.

    What broke nothing is drawn in so many processes.
    """
    numbers = {each.id: number for number, each in enumerate(record.run.contracts)}
    played: dict[str, list[ScenarioResult]] = {}
    for each in record.run.scenarios:
        played.setdefault(each.trace, []).append(each)
    first = {each.breaks[0].proof.trace for each in contracts[:1] if each.breaks}
    traces = sorted(
        record.run.traces, key=lambda each: (each.path not in first, not pictures.proofs(each.path))
    )
    of_broken = {each.path: pictures.view(each) for each in traces if pictures.proofs(each.path)}
    others = {each.path: each for each in traces if each.path not in of_broken}
    views = {**of_broken, **_drawn(others, pictures, processes)}
    return [
        _view(record, pictures, trace, played.get(trace.path, []), numbers, views[trace.path])
        for trace in traces
    ]


def _drawn(
    traces: Mapping[str, TraceResult], pictures: Pictures, processes: int
) -> dict[str, TimelineView | None]:
    if min(processes, len(traces)) <= 1:
        return {path: pictures.view(trace) for path, trace in traces.items()}
    with closing(Ahead(lambda path: pictures.view(traces[path]), traces, processes)) as ahead:
        return {path: ahead.take(path) for path in traces}


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
