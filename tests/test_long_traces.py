"""Long traces: what a judge remembers follows what lives, not how much has happened."""

import gc
from collections import Counter, OrderedDict
from functools import cache
from pathlib import Path
from typing import Any, cast

import pytest
from stitching import History, histories, mix, stitch

from kubelet_conformance.contract.applicability import parse_version
from kubelet_conformance.contract.judge import Judge
from kubelet_conformance.contract.verdicts import Verdict
from kubelet_conformance.contracts import every_contract
from kubelet_conformance.trace.format.reader import Reader
from kubelet_conformance.trace.world.views import Container, Entity, Pod, Sandbox
from kubelet_fixtures import traces

EARLY_ROUND, LATE_ROUND = 2, 5


@cache
def parts() -> list[History]:
    """The recorded histories that long traces are made of."""
    return histories(traces() / "kubernetes-1.32")


ROUND = sum(part.records for part in parts())
MIDWAY = sum(part.records for part in parts()[:5]) + 150
"""Into a round: a pod is alive and kept waiting."""


@pytest.fixture(scope="module")
def long_trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every history, over and over: about 50 000 records."""
    path = tmp_path_factory.mktemp("long") / "long.jsonl"
    stitch(path, parts(), (LATE_ROUND + 1) * ROUND)
    return path


def census(judge: Judge) -> dict[str, int]:
    """How much of each kind is remembered."""
    world = judge.world
    entities = [
        world.node,
        *world.pods.values(),
        *world.names.values(),
        *world.sandboxes.values(),
        *world.containers.values(),
    ]
    return {
        "pods": len(world.pods),
        "names": len(world.names),
        "mirrors": len(world.mirrors),
        "sandboxes": len(world.sandboxes),
        "containers": len(world.containers),
        "images": len(world.images),
        "deadlines": len(judge.ledger),
        "obligations": sum(len(entity.owed) for entity in entities),
        **noted(world.node),
        **held(),
    }


def noted(entity: Entity) -> dict[str, int]:
    """How much the judges' notes about it hold, apart from what is forgotten beyond a fixed number."""
    notes = cast("Any", entity.note).__self__
    return {
        f"{note.__module__}.{note.__name__}": sum(
            map(entries, cast("dict[str, object]", vars(value)).values())
        )
        for note, value in notes.items()
        if hasattr(value, "__dict__")
    }


def entries(value: object) -> int:
    """How many values it holds, at whatever depth."""
    if isinstance(value, dict) and not isinstance(value, OrderedDict):
        return sum(1 + entries(each) for each in cast("dict[Any, object]", value).values())
    if isinstance(value, (list, set, tuple)):
        return sum(1 + entries(each) for each in cast("list[object]", value))
    return 0


def held() -> dict[str, int]:
    """How many pods, sandboxes and containers anything at all still holds."""
    gc.collect()
    kinds = Counter[type](map(type, gc.get_objects()))
    return {f"{kind.__name__} objects": kinds[kind] for kind in (Pod, Sandbox, Container)}


@pytest.mark.slow
def test_memory_follows_what_lives(long_trace: Path) -> None:
    """After 20 000 and after 50 000 records, at the same place in a history, as much is remembered."""
    counted: dict[int, dict[str, int]] = {}
    places = {each * ROUND + MIDWAY for each in (EARLY_ROUND, LATE_ROUND)}
    with Reader(long_trace) as reader:
        judge = Judge("long", reader.header, every_contract().values(), parse_version("1.32"))
        for number, record in enumerate(reader):
            judge.feed(record)
            if number in places:
                counted[number // ROUND] = census(judge)
    outcomes = judge.outcomes()

    assert counted[EARLY_ROUND] == counted[LATE_ROUND]
    assert counted[LATE_ROUND]["containers"] > 0
    assert [key for key, one in outcomes.items() if one.verdict in {Verdict.BROKEN, Verdict.ERROR}] == []


def test_long_traces_are_like_real_ones(tmp_path: Path) -> None:
    """The mix of records and their size are those of the traces they are made of."""
    path = tmp_path / "round.jsonl"
    stitch(path, parts(), ROUND)

    made, real = mix([path]), mix((traces() / "kubernetes-1.32").glob("*.jsonl"))

    assert {kind: share for kind, share in made.items() if kind != "bytes"} == pytest.approx(
        {kind: share for kind, share in real.items() if kind != "bytes"}, abs=0.01
    )
    assert made["bytes"] == pytest.approx(real["bytes"], rel=0.1)
