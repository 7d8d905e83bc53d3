"""The published schema of a trace agrees with its readers, on right lines and on wrong ones."""

import json
from importlib import resources
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from lines import HEADER, Json, call, end, record, reply

from kubelet_fixtures import traces

SCHEMA: Json = json.loads(
    resources.files("kubelet_conformance.trace").joinpath("trace.schema.json").read_text("utf-8")
)
VALIDATOR: Any = Draft202012Validator(SCHEMA)
SHIPPED = sorted(traces().glob("*/*.jsonl"))


def test_schema_is_a_schema() -> None:
    """The schema itself is valid."""
    Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.slow
def test_shipped_traces_are_valid() -> None:
    """Every kind of line of every shipped trace is valid: each shape of keys of each trace is tried once."""
    tried = 0
    for path in SHIPPED:
        shapes: dict[tuple[str, ...], Json] = {}
        for line in path.read_text(encoding="utf-8").splitlines():
            value: Json = json.loads(line)
            shapes.setdefault((value.get("kind", ""), *sorted(value)), value)
        for value in shapes.values():
            VALIDATOR.validate(value)
            tried += 1

    assert tried > 10 * len(SHIPPED)


RIGHT: list[Json] = [
    HEADER,
    {"trace": 1},
    {"trace": 1, "seed": 7, "later": [], "kubernetes": None},
    call(1),
    reply(1, "c1"),
    reply(1, "c1", same="c0"),
    reply(1, "c1", error={"code": "UNKNOWN"}, effect=False),
    record(1, "later", anything={}),
    record(1, "pod", op="remove", name="x"),
    record(1, "disk", op="made", path="/etc/kubernetes/manifests"),
    record(1, "http", op="serves", status=200),
    record(1, "metrics", values={"kubelet_started_pods_total": 2.0}),
    record(1, "stall", of="kubelet", seconds=0.5, pressure=0.9),
    record(1, "expect", contract="TERM-01", met=False, by=None),
    end(1, 0),
]

WRONG: dict[str, Any] = {
    "no object": [],
    "nothing": {},
    "newer": {"trace": 2},
    "channel": HEADER | {"channels": {"cri": "most"}},
    "gate": HEADER | {"featureGates": {"A": "on"}},
    "no kind": {"seq": 1, "t": 0},
    "no time": {"seq": 1, "kind": "end"},
    "seq zero": end(0),
    "seq text": end(1) | {"seq": "1"},
    "time below zero": end(1, -1),
    "call without id": record(1, "call", rpc="X"),
    "long id": call(1, call_id="x" * 257),
    "request is a list": call(1, request=[1]),
    "reply without": record(1, "reply", rpc="X", id="c"),
    "reply with two": reply(1, "c", response={}, same="b"),
    "error without code": reply(1, "c", error={"message": "x"}),
    "pod without manifest": record(1, "pod", op="set"),
    "pod with another op": record(1, "pod", op="wish", pod={}),
    "status without uid": record(1, "status", status={}),
    "event without reason": record(1, "event"),
    "disk without words": record(1, "disk", op=1),
    "status of a URL is text": record(1, "http", op="serves", status="200"),
    "kubelet with another op": record(1, "kubelet", op="slept"),
    "exit code is text": record(1, "runtime", op="exited", exit_code="1"),
}


@pytest.mark.parametrize("line", RIGHT, ids=[str(number) for number in range(len(RIGHT))])
def test_right_line_is_valid(line: Json) -> None:
    """What a reader takes is valid."""
    VALIDATOR.validate(line)


@pytest.mark.parametrize("line", WRONG.values(), ids=WRONG)
def test_wrong_line_is_invalid(line: object) -> None:
    """What a reader or a judge refuses is invalid."""
    assert not VALIDATOR.is_valid(line)
