"""What a trace does not tell breaks nothing: traces with parts left out are still kept."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from zlib import crc32

import pytest
from judging import outcomes
from recording import Json, Recording, encoded, load
from sampling import of_recorded_traces
from shared_plays import SharedPlays
from thinning import thinned

from kubelet_conformance.contract.checking import judge_file
from kubelet_conformance.contract.verdicts import Verdict
from kubelet_conformance.contracts import every_contract
from kubelet_conformance.scenarios import every_scenario
from kubelet_reference.server.host.clock import SeededRandom

SOME = 25
"""One in so many scenarios is played to have parts of its trace left out."""
TELLING = (
    "admission.pod_of_the_system_gets_its_room",
    "admission.terminating_pod_still_counts",
    "devices.pod_waits_for_its_device",
    "eviction.ends_are_told_before_records_go",
    "eviction.later_kill_gives_the_reason",
    "eviction.node_helps_itself_first",
    "hooks.failed_post_start_kills_its_container",
    "kubelet_restart.older_pod_gets_the_port_of_a_running_one",
    "runtime_bugs.stopping_what_has_just_gone",
    "shutdown.critical_pods_go_last",
    "status.mark_of_an_eviction_stays_with_the_end",
    "termination.failed_kill_is_told_and_tried_again",
    "termination_ways.stranger_to_the_spec_cannot_be_stopped_by_it",
)
"""Scenarios in which much depends on statuses and events."""

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


@of_recorded_traces(one_in=3)
def test_what_is_not_reported_breaks_nothing(path: Path) -> None:
    """A trace of a real kubelet stays kept with a channel missing or a late begin; slices end early."""
    assert not broken(parts(load(path)))


@of_recorded_traces(one_in=3)
def test_truncated_trace_breaks_nothing(path: Path) -> None:
    """A real kubelet's trace that is cut at any byte is judged up to there, and what is owed is pending."""
    whole = path.read_bytes()
    header = whole.index(b"\n") + 1
    cut = whole[: header + crc32(whole) % (len(whole) - header)]
    judged = judge_file(path.name, every_contract().values(), content=cut, allow_truncated=True)

    assert [
        name for name, one in judged.outcomes.items() if one.verdict in {Verdict.BROKEN, Verdict.ERROR}
    ] == []
    assert judged.trace.cut_line == cut.count(b"\n")


def broken(less: Iterable[tuple[str, Json, list[Json]]]) -> list[str]:
    """What breaks where a recorder knows less."""
    return [
        f"{how}: {contract} {[e.text for e in outcome.evidence]} {outcome.reason}"
        for how, header, records in less
        for contract, outcome in outcomes(how, encoded(header, records)).items()
        if outcome.verdict in {Verdict.BROKEN, Verdict.ERROR}
    ]


CHOSEN = [name for name in every_scenario() if name in TELLING or not crc32(name.encode()) % SOME]


@pytest.mark.parametrize("name", CHOSEN)
def test_polled_channels_break_nothing(name: str, plays: SharedPlays) -> None:
    """Statuses that are read from time to time, and events that are late or missing, accuse nobody."""
    random = SeededRandom(crc32(name.encode()))

    assert not broken(thinned(load(plays.of(name).trace), lambda: random.pick(1000) / 1000))
