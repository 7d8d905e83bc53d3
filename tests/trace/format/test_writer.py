"""The writer: exact bytes, mistakes refused, and nothing lost on the way to a reader and back."""

import io
import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubelet_conformance.trace.format import replies
from kubelet_conformance.trace.format.header import Channels, Header
from kubelet_conformance.trace.format.reader import LINE_BYTES_MAX, Reader
from kubelet_conformance.trace.format.records import NAME_CHARS_MAX, Call, Event, Record, Reply
from kubelet_conformance.trace.format.writer import Writer
from kubelet_fixtures import traces

HEADER = Header(trace=1, clock="virtual", channels=Channels(cri="full"))


def read(data: bytes) -> list[Record]:
    """The records of a trace."""
    with Reader("t.jsonl", io.BytesIO(data)) as reader:
        return list(reader)


def test_bytes_are_exact() -> None:
    """Keys are sorted and no spaces are written; defaults are left out; equal replies are `same`."""
    file = io.BytesIO()
    with Writer(file, HEADER) as writer:
        seqs = [
            writer.call(0, "Foo", "c1", {"b": 1, "a": {"d": 2, "c": 3}}),
            writer.reply(0.25, "c1", {"z": []}),
            writer.call(0.5, "Foo", "c2", {"a": {"c": 3, "d": 2}, "b": 1}),
            writer.reply(0.5, "c2", {"z": []}),
            writer.call(1, "Bar", "c3"),
            writer.failed(1, "c3", "NOT_FOUND", "no", effect=False),
            writer.record(2, "event", uid="u", reason="Killing", container=None),
            writer.end(3),
        ]

    assert seqs == [1, 2, 3, 4, 5, 6, 7, 8]
    assert file.getvalue().decode().splitlines() == [
        '{"channels":{"api":"none","cri":"full","events":"none","pods":"none"},"clock":"virtual","trace":1}',
        '{"id":"c1","kind":"call","request":{"a":{"c":3,"d":2},"b":1},"rpc":"Foo","seq":1,"t":0}',
        '{"id":"c1","kind":"reply","response":{"z":[]},"rpc":"Foo","seq":2,"t":0.25}',
        '{"id":"c2","kind":"call","request":{"a":{"c":3,"d":2},"b":1},"rpc":"Foo","seq":3,"t":0.5}',
        '{"id":"c2","kind":"reply","rpc":"Foo","same":"c1","seq":4,"t":0.5}',
        '{"id":"c3","kind":"call","request":{},"rpc":"Bar","seq":5,"t":1}',
        (
            '{"effect":false,"error":{"code":"NOT_FOUND","message":"no"},"id":"c3","kind":"reply","rpc":"Bar",'
            '"seq":6,"t":1}'
        ),
        '{"kind":"event","reason":"Killing","seq":7,"t":2,"uid":"u"}',
        '{"kind":"end","seq":8,"t":3}',
    ]


MISTAKES: dict[str, tuple[Callable[[Writer], object], str]] = {
    "time falls": (lambda w: w.record(4, "fault", what="x"), "time goes from 5 to 4"),
    "no time": (lambda w: w.end(float("nan")), "time goes"),
    "endless time": (lambda w: w.end(float("inf")), "time goes"),
    "id is open": (lambda w: w.call(5, "Foo", "open"), "used twice"),
    "id was used": (lambda w: w.call(5, "Foo", "done"), "used twice"),
    "long id": (lambda w: w.call(5, "Foo", "x" * (NAME_CHARS_MAX + 1)), "longer than"),
    "reply to nothing": (lambda w: w.reply(5, "x"), "not open"),
    "reply twice": (lambda w: w.failed(5, "done", "INTERNAL"), "not open"),
    "kind with a method": (lambda w: w.record(5, "call"), "method of its own"),
    "long record": (lambda w: w.record(5, "fault", what="x" * LINE_BYTES_MAX), "longer than 16 MiB"),
    "no JSON": (lambda w: w.reply(5, "open", {"x": object()}), "unsupported"),
}


@pytest.mark.parametrize(("mistake", "said"), MISTAKES.values(), ids=MISTAKES)
def test_mistake_is_refused_and_leaves_no_trace(mistake: Callable[[Writer], object], said: str) -> None:
    """What no reader would take is refused before it is written, and the trace can go on."""
    file = io.BytesIO()
    with Writer(file, HEADER) as writer:
        writer.call(1, "Foo", "done")
        writer.reply(2, "done")
        writer.call(5, "Foo", "open")

        with pytest.raises((ValueError, TypeError), match=said):
            mistake(writer)
        writer.reply(5, "open")
        writer.end(5)

    assert [each.kind for each in read(file.getvalue())] == ["call", "reply", "call", "reply", "end"]


def test_nothing_follows_the_end() -> None:
    """A record after the end is refused."""
    writer = Writer(io.BytesIO(), HEADER)
    writer.end(1)

    with pytest.raises(ValueError, match="after `end`"):
        writer.end(2)


def test_other_versions_are_not_written() -> None:
    """A header of another version of the format is refused."""
    with pytest.raises(ValueError, match="version 1"):
        Writer(io.BytesIO(), Header(trace=2))


def test_header_comes_back() -> None:
    """Whatever a header says is read again."""
    full = Header(
        trace=1,
        clock="virtual",
        channels=Channels(cri="full", pods="sent", api="sampled", events="limited"),
        kubelet="k",
        kubernetes="1.32",
        feature_gates={"A": True},
        runtime="r",
        started="2026-01-01T00:00:00Z",
        node="n",
        from_start=True,
        scenario="s",
        seed=7,
    )
    for header in (full, HEADER, Header(trace=1)):
        file = io.BytesIO()
        Writer(file, header).end(0)
        with Reader("t.jsonl", io.BytesIO(file.getvalue())) as reader:
            assert reader.header == header


NAMES = st.text(st.characters(codec="utf-8"), min_size=1, max_size=8)
BODIES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.text(st.characters(codec="utf-8"), max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=8,
).map(lambda value: {"body": value})
CALLS = st.tuples(
    st.sampled_from(["Foo", "Bar"]),
    st.sampled_from([{}, {"a": 1, "b": {"c": "x" * 90}}, {"a": 2}]),
    st.sampled_from([{"v": 1}, {"v": 2}]) | BODIES,
    st.booleans(),
    st.floats(0, 10),
)


@given(calls=st.lists(CALLS, max_size=12), events=st.lists(BODIES, max_size=2), bound=st.integers(1, 3))
def test_whatever_is_written_is_read(
    calls: list[tuple[str, dict[str, Any], dict[str, Any], bool, float]],
    events: list[dict[str, Any]],
    bound: int,
) -> None:
    """Requests, responses, errors and times come back, with `same` resolved, however little is remembered."""
    file, t = io.BytesIO(), 0.0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(replies, "REMEMBERED_REPLIES", bound)
        with Writer(file, HEADER) as writer:
            for number, (rpc, request, response, fails, wait) in enumerate(calls):
                writer.call(t, rpc, f"c{number}", request)
                t += wait
                if fails:
                    writer.failed(t, f"c{number}", "INTERNAL", "injected")
                else:
                    writer.reply(t, f"c{number}", response)
            for event in events:
                writer.record(t, "event", reason="r", message=json.dumps(event))
            writer.end(t)
        found = read(file.getvalue())

    begun = [each for each in found if isinstance(each, Call)]
    ended = [each for each in found if isinstance(each, Reply)]
    assert [(each.rpc, each.request.json()) for each in begun] == [
        (rpc, request) for rpc, request, *_ in calls
    ]
    assert [each.response.json() if each.response else None for each in ended] == [
        None if fails else response for _, _, response, fails, _ in calls
    ]
    assert [json.loads(each.message) for each in found if isinstance(each, Event)] == events
    assert found[-1].t == t


def test_shipped_traces_are_written_again() -> None:
    """A trace of a real kubelet, written again, has the same records and names the same equal replies."""
    path = traces() / "kubernetes-1.32" / "sidecar_two_delete.jsonl"
    lines = [without_nothing(json.loads(line)) for line in path.read_text(encoding="utf-8").splitlines()]
    responses = {line["id"]: line["response"] for line in lines if "response" in line}
    file = io.BytesIO()
    with Reader(path) as reader, Writer(file, reader.header) as writer:
        for line in lines[1:]:
            write(writer, line, responses)

    again = [json.loads(line) for line in file.getvalue().splitlines()]
    assert again[1:] == lines[1:]


def without_nothing(line: dict[str, Any]) -> dict[str, Any]:
    """A record without the fields that are null, which the writer leaves out."""
    return {key: value for key, value in line.items() if value is not None}


def write(writer: Writer, line: dict[str, Any], responses: dict[str, Any]) -> None:
    """Write a record that was read as JSON."""
    t = line["t"]
    if line["kind"] == "call":
        writer.call(t, line["rpc"], line["id"], line["request"])
    elif line["kind"] == "end":
        writer.end(t)
    elif "error" in line:
        writer.failed(t, line["id"], **line["error"], effect=line.get("effect", True))
    elif line["kind"] == "reply":
        writer.reply(t, line["id"], responses[line.get("same", line["id"])])
    else:
        writer.record(**{key: value for key, value in line.items() if key != "seq"})
