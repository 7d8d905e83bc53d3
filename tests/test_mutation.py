"""The judges bite: mutants of real traces turn some contract broken, and the mutants are fair.

Here a sample is judged; `tox -e mutate` judges every mutant.
"""

import io
from collections import Counter, defaultdict
from functools import cache
from itertools import pairwise
from typing import Any
from zlib import crc32

import judging
import pytest
from freedom import FREEDOMS, free
from lateness import late
from mutants import CHANGES, Mutant, mutants
from recording import Recording, encoded, load, shipped
from scene import Scene
from survivors import listed

from kubelet_conformance.contract.verdicts import Outcome, Verdict
from kubelet_conformance.trace.format.reader import Reader
from kubelet_fixtures import traces

SAMPLE_PER_CLASS = 10
ENOUGH = 0.8
FEW = 10
"""A class with fewer mutants in the sample is judged by the list of survivors alone."""


@cache
def recording(name: str) -> Recording:
    """A shipped trace, by folder and file."""
    return load(traces() / f"{name}.jsonl")


@cache
def scene(name: str) -> Scene:
    """The same, looked at."""
    return Scene(recording(name))


@cache
def sample() -> tuple[tuple[Recording, Mutant], ...]:
    """Some mutants of each class of call and change: those whose names come first by checksum."""
    classes: dict[tuple[str, str], list[tuple[int, Recording, Mutant]]] = defaultdict(list)
    for path in shipped(traces()):
        whole = load(path)
        for one in mutants(whole):
            classes[one.call, one.change].append((crc32(one.name.encode()), whole, one))
    chosen = [sorted(found, key=lambda entry: entry[0])[:SAMPLE_PER_CLASS] for found in classes.values()]
    return tuple((whole, one) for found in chosen for _, whole, one in found)


@cache
def findings() -> tuple[judging.Finding, ...]:
    """What the judges make of the sample."""
    return tuple(judging.found(whole, one) for whole, one in sample())


def verdicts(outcomes: dict[str, Outcome]) -> dict[str, Verdict]:
    """What became of each contract."""
    return {key: one.verdict for key, one in outcomes.items()}


@pytest.mark.slow
def test_no_judge_fails_on_a_mutant() -> None:
    """However wrong a history is, a judge gives a verdict."""
    assert [finding.name for finding in findings() if finding.errors] == []


@pytest.mark.slow
@pytest.mark.parametrize("by", ["call", "change"])
def test_most_mutants_of_each_class_are_caught(by: str) -> None:
    """Of each class of call and of change at least 80 % of the sample turns some contract broken."""
    all_of, caught = Counter[str](), Counter[str]()
    for finding in findings():
        all_of[getattr(finding, by)] += 1
        caught[getattr(finding, by)] += finding.caught
    too_few = {
        key: f"{caught[key]} of {n}" for key, n in all_of.items() if caught[key] < ENOUGH * n and n >= FEW
    }

    assert too_few == {}


@pytest.mark.slow
def test_every_survivor_is_listed_with_its_reason() -> None:
    """The mutants of the sample that nobody catches are those that survivors.toml names."""
    survivors = {finding.name for finding in findings() if not finding.caught}
    sampled = {finding.name for finding in findings()}

    assert survivors == listed().keys() & sampled


def test_listed_survivors_are_mutants() -> None:
    """Every name in survivors.toml is that of a mutant."""
    of_trace: dict[str, set[str]] = defaultdict(set)
    for name in listed():
        of_trace[name.partition(":")[0]].add(name)
    unknown = [
        name
        for trace, names in of_trace.items()
        for name in names - {one.name for one in mutants(recording(trace))}
    ]

    assert unknown == []


@pytest.mark.parametrize("name", ["kubernetes-1.26/sandbox_dies", "kubernetes-1.32/hooks"])
def test_a_trace_loaded_and_written_again_is_judged_alike(name: str) -> None:
    """Writing out each `same` changes no verdict."""
    whole = recording(name)

    again = judging.outcomes(name, encoded(whole.header, whole.records))

    assert verdicts(again) == verdicts(judging.outcomes(name, (traces() / f"{name}.jsonl").read_bytes()))


@pytest.mark.parametrize("change", [*CHANGES, "exit code", "exit code reported", "phase"])
def test_mutants_are_valid_traces(change: str) -> None:
    """A mutant of any kind reads as a trace: only what it tells is wrong."""
    chosen = [(whole, one) for whole, one in sample() if one.change == change]

    for whole, one in chosen:
        with Reader(one.name, file=io.BytesIO(encoded(whole.header, one.make()))) as reader:
            assert sum(1 for _ in reader) >= len(whole.records) - 2, one.name
    assert chosen


def test_mutants_have_names_of_their_own() -> None:
    """No two mutants share a name, so that a list of names is exact."""
    names = Counter(one.name for one in mutants(recording("kubernetes-1.32/sandbox_dies")))

    assert {name for name, times in names.items() if times > 1} == set()


def mutant(trace: str, name: str) -> list[dict[str, Any]]:
    """The records of the first mutant whose name has these words."""
    return next(one.make() for one in mutants(recording(trace)) if name in one.name)


def test_dropping_takes_a_call_with_its_reply() -> None:
    """Nothing else goes."""
    whole = recording("kubernetes-1.32/delete_graceful")

    left = mutant(whole.name, "StartContainer drop")

    gone = [record for record in whole.records if record not in left]
    assert [(record["kind"], record["rpc"]) for record in gone] == [
        ("call", "StartContainer"),
        ("reply", "StartContainer"),
    ]


def test_a_container_made_twice_is_listed_twice() -> None:
    """The runtime tells the truth about what the kubelet did wrong."""
    whole = recording("kubernetes-1.32/delete_graceful")

    reported = mutant(whole.name, "CreateContainer duplicate")

    made = [
        r["response"]["container_id"]
        for r in reported
        if r.get("rpc") == "CreateContainer" and "response" in r
    ]
    lists = [
        r["response"]["containers"]
        for r in reported
        if r.get("rpc") == "ListContainers" and r.get("response")
    ]
    assert len(set(made)) == len(made) == 5
    assert any({made[0], made[1]} <= {item["id"] for item in items} for items in lists)


def test_swapping_exchanges_places_and_times() -> None:
    """The two calls change places, and time does not fall."""
    whole = recording("kubernetes-1.32/delete_graceful")

    swapped = mutant(whole.name, "CreateContainer swap with StartContainer")

    order = [
        r["rpc"] for r in swapped if r["kind"] == "call" and r["rpc"] in {"CreateContainer", "StartContainer"}
    ]
    assert order[:2] == ["StartContainer", "CreateContainer"]
    assert all(first["t"] <= second["t"] for first, second in pairwise(swapped))


def test_what_follows_a_late_call_is_late_too() -> None:
    """The call and all after it move on by the gap, with the time stamps given since."""
    whole = recording("kubernetes-1.32/delete_graceful")

    moved = mutant(whole.name, "RunPodSandbox delay")

    assert moved[-1]["t"] == pytest.approx(whole.records[-1]["t"] + 60)
    statuses = [r["status"]["conditions"][0]["lastTransitionTime"] for r in moved if r["kind"] == "status"]
    assert statuses[1] == "2026-11-20T23:05:36Z"


@pytest.mark.parametrize("trace", ["delete_graceful", "two_inits_two_ctrs", "ephemeral", "kubelet_restart"])
@pytest.mark.parametrize("version", ["1.26", "1.32"])
def test_a_quiet_minute_breaks_nothing(trace: str, version: str) -> None:
    """The gap of a late call is no fault of its own: only the poll that is always owed is missed."""
    whole = scene(f"kubernetes-{version}/{trace}")
    place = quiet_place(whole)

    outcomes = judging.outcomes(trace, encoded(whole.recording.header, late(whole, place, 60)))

    broken = {key for key, one in outcomes.items() if one.verdict in {Verdict.BROKEN, Verdict.ERROR}}
    assert broken <= {"LOOP-05"}


def quiet_place(whole: Scene) -> int:
    """A relist of a running pod, well after anything happened to it."""
    acting = {place for action in whole.actions for place in (action.call, action.reply)}
    reported = {"pod", "runtime", "fault", "kubelet", "deleted", "status"}
    busy, phase = 0.0, ""
    for place, record in enumerate(whole.records):
        if place in acting or record["kind"] in reported:
            busy = record["t"]
            phase = record["status"]["phase"] if record["kind"] == "status" else phase
        if phase == "Running" and record["t"] - busy > 1.6 and record.get("rpc") == "ListPodSandbox":
            return place if record["kind"] == "call" else place + 1
    raise AssertionError("the pod never comes to rest")


FREE = {
    "repeat": ("kubernetes-1.32/sandbox_dies_never", "drop"),
    "repeated soon": ("kubernetes-1.32/sandbox_dies_never", "drop"),
    "repetition": ("kubernetes-1.32/delete_graceful", "duplicate"),
    "parallel stops": ("kubernetes-1.32/delete_graceful", "swap"),
    "retry": ("kubernetes-1.32/runsandbox_fail", "duplicate"),
    "unknown in place of a repeat": ("kubernetes-1.32/sandbox_dies_never", "sandbox id"),
    "swapped repeat": ("kubernetes-1.32/sandbox_dies_never", "swap"),
}


@pytest.mark.parametrize("freedom", FREEDOMS, ids=lambda freedom: freedom.name)
def test_each_declared_freedom_is_needed(freedom: Any) -> None:
    """Each freedom spares a call in some real trace, and cites its source."""
    name, change = FREE[freedom.name]
    whole = scene(name)

    spared = [action for action in whole.actions if freedom.applies(whole, action)]

    assert spared
    assert change in freedom.changes
    assert all(free(whole, action, change) for action in spared)
    assert freedom.cited.startswith("30")
