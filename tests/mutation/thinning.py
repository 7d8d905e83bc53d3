"""The trace of a recorder that polls: statuses are read from time to time, and events are late or missing."""

from collections.abc import Callable, Iterable, Iterator
from math import ceil

from recording import Json, Recording

Draw = Callable[[], float]
"""Chance: a number from 0 up to 1."""

LATE_SECONDS_MAX = 3.0
"""How late an event may be."""


def thinned(recording: Recording, draw: Draw) -> Iterator[tuple[str, Json, list[Json]]]:
    """Ways in which a recorder may see less of statuses and events, in words, as header and records."""
    records = recording.records
    for seconds in (0.1, 1.0):
        polled = list(_polled(records, seconds, draw() * seconds))
        yield f"read every {seconds} s", _with(recording, api="sampled"), polled
        yield f"served every {seconds} s", _with(recording, api="served"), polled
    for share in (0.3, 0.9):
        for late in (0.0, LATE_SECONDS_MAX):
            limited = _limited(records, draw, share, late)
            yield f"{share} of events lost, others {late} s late", _with(recording, events="limited"), limited
    both = _limited(polled, draw, 0.5, LATE_SECONDS_MAX)
    yield "read every second, events lost", _with(recording, api="sampled", events="limited"), both
    no_events = [each for each in records if each["kind"] != "event"]
    no_statuses = [each for each in records if each["kind"] not in {"status", "api"}]
    yield "no events", _with(recording, events="none"), no_events
    yield "no statuses", _with(recording, api="none"), no_statuses
    neither = [each for each in no_statuses if each["kind"] != "event"]
    yield "neither", _with(recording, api="none", events="none"), neither


def _with(recording: Recording, **channels: str) -> Json:
    return recording.header | {"channels": recording.header["channels"] | channels}


def _polled(records: Iterable[Json], seconds: float, first: float) -> Iterator[Json]:
    """The latest status of each pod, when it is read; what another client changes was read before that."""
    now: dict[str, Json] = {}
    sent: dict[str, Json] = {}
    for record in records:
        t, kind = record["t"], record["kind"]
        for uid, status in list(now.items()):
            if status["t"] < t or kind == "end":
                yield now.pop(uid) | {"t": min(status["t"], t)}
        if kind == "status":
            now[record["uid"]] = record | {"t": first + ceil((t - first) / seconds) * seconds}
        elif kind == "deleted":
            now.pop(record["uid"], None)
        elif kind == "pod" and record["op"] == "set":
            uid, status = record["pod"]["metadata"].get("uid", ""), record["pod"].get("status")
            if status and status != sent.get(uid) and uid in now:
                yield now.pop(uid) | {"t": t}
            sent[uid] = status
        if kind not in {"status", "api"}:
            yield record


def _limited(records: Iterable[Json], draw: Draw, share: float, late: float) -> list[Json]:
    """The records without a share of the events, and the others up to so many seconds late."""
    *others, end = records
    kept = list[Json]()
    for each in others:
        if each["kind"] != "event":
            kept.append(each)
        elif draw() >= share:
            kept.append(each | {"t": min(each["t"] + draw() * late, end["t"])})
    return [*sorted(kept, key=lambda one: float(one["t"])), end]
