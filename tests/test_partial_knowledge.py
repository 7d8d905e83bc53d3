"""What a trace does not tell breaks nothing: real traces with parts left out are still kept."""

from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from judging import outcomes
from recording import Json, Recording, encoded, load, shipped

from kubelet_conformance.contract.verdicts import Verdict
from kubelet_fixtures import traces

CUTS = (0.25, 0.5, 0.8)
"""Where a trace is cut, as parts of its length."""
#: Without the record of the fault the runtime has lost what nobody removed, and CRI-17 says so.
LOST_BY_A_FAULT = "sandbox_removed_oob"


def answerable(records: Iterable[Json]) -> list[Json]:
    """The records without replies to calls that were cut off."""
    begun: set[str] = set()
    kept: list[Json] = []
    for record in records:
        if record["kind"] == "call":
            begun.add(record["id"])
        if record["kind"] != "reply" or record["id"] in begun:
            kept.append(record)
    return kept


def pods_before(records: Iterable[Json], t: float) -> list[Json]:
    """The pods wanted at the time of a cut, as a recorder that begins there would tell them."""
    wanted: dict[str, Json] = {}
    for record in records:
        if record["kind"] == "pod" and record["op"] == "set":
            wanted[record["pod"]["metadata"]["name"]] = {**record, "t": t}
    return list(wanted.values())


def without(recording: Recording, channel: str, *kinds: str) -> tuple[Json, list[Json]]:
    """The trace of a recorder that does not see one channel."""
    channels = recording.header["channels"] | {channel: "none"}
    return recording.header | {"channels": channels}, [r for r in recording.records if r["kind"] not in kinds]


def parts(recording: Recording) -> Iterator[tuple[str, Json, list[Json]]]:
    """Each way in which a recorder may know less, in words, as header and records."""
    header, records = recording.header, recording.records
    late = header | {"from_start": False}
    yield "no runtime records", header, [r for r in records if r["kind"] != "runtime"]
    yield "no events", *without(recording, "events", "event")
    yield "no pods", *without(recording, "pods", "pod", "deleted")
    yield "no statuses", *without(recording, "api", "status")
    if LOST_BY_A_FAULT not in recording.name:
        calls = [r for r in records if r["kind"] in {"call", "reply", "end"}]
        yield "calls only", late | {"channels": {"cri": "full"}}, calls
    for cut in CUTS:
        place = int(len(records) * cut)
        t = records[place]["t"]
        rest = answerable(records[place:])
        yield f"begun at {t} s", late, rest
        yield f"begun at {t} s, pods known", late, pods_before(records[:place], t) + rest
        yield f"ended at {t} s", header, [*records[:place], {"kind": "end", "t": t}]


@pytest.mark.parametrize("path", shipped(traces()), ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_what_is_not_reported_breaks_nothing(path: Path) -> None:
    """A trace of a real kubelet stays kept with a channel missing, a late begin or an early end."""
    recording = load(path)
    broken = [
        f"{how}: {contract} {[e.text for e in outcome.evidence]} {outcome.reason}"
        for how, header, records in parts(recording)
        for contract, outcome in outcomes(path.name, encoded(header, records)).items()
        if outcome.verdict in {Verdict.BROKEN, Verdict.ERROR}
    ]

    assert not broken
