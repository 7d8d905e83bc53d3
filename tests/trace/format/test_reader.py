"""The reader: what a record becomes, what is refused and where, and what is remembered."""

import io
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from lines import HEADER, call, end, record, reply, trace

from kubelet_conformance.trace.format import reader as bounds
from kubelet_conformance.trace.format import replies
from kubelet_conformance.trace.format.errors import BodyError, TraceError
from kubelet_conformance.trace.format.reader import LINE_BYTES_MAX, Reader
from kubelet_conformance.trace.format.records import NAME_CHARS_MAX, Body, Call, Event, Record, Reply, Unknown


def records(text: bytes) -> list[Record]:
    """Every record of a trace."""
    with Reader("t.jsonl", io.BytesIO(text)) as reader:
        return list(reader)


def refused(text: bytes) -> TraceError:
    """Why a trace is refused."""
    with pytest.raises(TraceError) as caught:
        records(text)
    return caught.value


def test_records_are_typed() -> None:
    """A call, its reply, an event and the end come as values of their types, in order."""
    first, second, third, last = records(
        trace(call(1), reply(2, "c1"), record(3, "event", reason="Pulled"), end(4))
    )

    assert isinstance(first, Call)
    assert isinstance(second, Reply)
    assert second.call is first
    assert isinstance(third, Event)
    assert last.kind == "end"


def test_unknown_kinds_and_fields_are_ignored() -> None:
    """A kind of a later version is kept as Unknown; a field nobody knows does no harm."""
    later, known, _ = records(trace(record(1, "later", x=[1]), record(2, "event", reason="r", y={}), end(3)))

    assert isinstance(later, Unknown)
    assert later.kind == "later"
    assert isinstance(known, Event)


def test_early_word_for_served_statuses_is_read() -> None:
    """Traces of the first releases say `told` where later ones say `served`."""
    early = HEADER | {"channels": {"cri": "full", "api": "told"}}
    with Reader("t.jsonl", io.BytesIO(trace(end(1), header=early))) as reader:
        channels = reader.header.channels

    assert channels.api == "served"


def test_blank_lines_and_carriage_returns_are_no_records() -> None:
    """Blank lines are skipped, and lines may end as on Windows."""
    text = trace(call(1), b"\n", b" \n", reply(2, "c1"), end(3)).replace(b"\n", b"\r\n")

    assert [each.seq for each in records(text)] == [1, 2, 3]


def test_same_refers_to_the_latest_full_reply() -> None:
    """A `same` reply shares the body of the reply it names, although the keys of the request are turned."""
    wide = {"labels": {"a": "x" * 60, "b": "y" * 60}}
    turned = {"labels": {"b": "y" * 60, "a": "x" * 60}}
    lines = [call(1, "Foo", wide), reply(2, "c1", "Foo", response={"v": 1}), call(3, "Foo", turned)]
    found = records(trace(*lines, reply(4, "c3", "Foo", same="c1"), end(5)))
    full, same = found[1], found[3]

    assert isinstance(full, Reply)
    assert isinstance(same, Reply)
    assert same.same
    assert same.response is full.response


@pytest.mark.parametrize(
    ("same", "request_body"),
    [("c9", {}), ("c1", {"other": 1}), ("c3", {})],
    ids=["no such call", "other request", "itself"],
)
def test_same_refers_to_nothing_else(same: str, request_body: dict[str, Any]) -> None:
    """A `same` that is not the latest full reply of this rpc and request is refused."""
    lines = [
        call(1, "Foo"),
        reply(2, "c1", "Foo"),
        call(3, "Foo", request_body),
        reply(4, "c3", "Foo", same=same),
    ]
    error = refused(trace(*lines, end(5)))

    assert (error.line, "`same`" in error.problem) == (5, True)


def test_same_of_an_older_reply_is_refused() -> None:
    """Once there is a newer full reply, the older one cannot be named any more."""
    lines = [
        call(1),
        reply(2, "c1"),
        call(3),
        reply(4, "c3", response={"v": 1}),
        call(5),
        reply(6, "c5", same="c1"),
    ]

    assert refused(trace(*lines, end(7))).line == 7


def test_forgotten_replies_cannot_be_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond the bound the oldest reply is forgotten, whichever call id named it."""
    monkeypatch.setattr(replies, "REMEMBERED_REPLIES", 2)
    lines = [
        line
        for n in range(3)
        for line in (call(2 * n + 1, "Foo", {"n": n}), reply(2 * n + 2, f"c{2 * n + 1}", "Foo"))
    ]

    asked = [call(7, "Foo", {"n": 0}), reply(8, "c7", "Foo", same="c1"), end(9)]
    kept = [call(7, "Foo", {"n": 1}), reply(8, "c7", "Foo", same="c3"), end(9)]

    assert refused(trace(*lines, *asked)).line == 9
    assert len(records(trace(*lines, *kept))) == 9


def test_an_id_that_comes_again_late_confuses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A call id that was forgotten and is used again stands for the newer call alone."""
    monkeypatch.setattr(bounds, "REMEMBERED_IDS", 1)
    lines = [
        call(1, "Foo", {"n": 1}, "x"),
        reply(2, "x", "Foo"),
        call(3, "Bar", {}, "y"),
        reply(4, "y", "Bar"),
        call(5, "Foo", {"n": 2}, "x"),
        reply(6, "x", "Foo"),
        call(7, "Foo", {"n": 1}, "z"),
        reply(8, "z", "Foo"),
        call(9, "Foo", {"n": 2}, "w"),
        reply(10, "w", "Foo", same="x"),
    ]

    assert len(records(trace(*lines, end(11)))) == 11


WRONG: dict[str, tuple[bytes, int, str]] = {
    "binary": (b"\x7fELF\x02\x01\xff\xfe\x00", 1, "not UTF-8: byte 6 of it is 0xff"),
    "gzip": (b"\x1f\x8b\x08\x00", 1, "compressed (gzip)"),
    "UTF-16": (b"\xff\xfe" + trace(end(1)).decode().encode("utf-16-le"), 1, "the file is UTF-16 (byte 0)"),
    "UTF-16 without a mark": (trace(end(1)).decode().encode("utf-16-be"), 1, "the file is UTF-16 (byte 0)"),
    "byte order mark": (b"\xef\xbb\xbf" + trace(end(1)), 1, "byte order mark"),
    "empty": (b"", 1, "empty"),
    "blank": (b"\n\n", 1, "no trace header"),
    "array": (b"[1, 2]\n", 1, "no trace header"),
    "other lines": (b'{"level": "info"}\n{"level": "warn"}\n', 1, "no trace header"),
    "newer": (trace(end(1), header=HEADER | {"trace": 2}), 1, "format version 2"),
    "header field": (trace(end(1), header=HEADER | {"channels": {"cri": "most"}}), 1, "header is wrong"),
    "header nested": (
        b'{"trace": 1, "x": ' + b"[" * 100_000 + b"]" * 100_000 + b"}\n",
        1,
        "nested too deeply",
    ),
    "cut in a line": (trace(call(1), b'{"seq":2,"t":1,"ki'), 3, "truncated in the middle"),
    "cut between lines": (trace(call(1)), 3, "truncated: it has no `end`"),
    "header alone": (trace(), 2, "truncated"),
    "no JSON": (trace(b"hello\n", end(2)), 2, "no trace record"),
    "no kind": (trace(b'{"seq":1,"t":0}\n', end(2)), 2, "no trace record"),
    "seq falls": (trace(call(2), call(1), end(3)), 3, "seq falls"),
    "seq repeats": (trace(call(1), call(1, call_id="x"), end(3)), 3, "seq repeats"),
    "seq zero": (trace(end(0)), 2, "seq repeats"),
    "seq of an unknown kind": (trace(call(1), record(1, "later"), end(2)), 3, "seq repeats"),
    "seq fraction": (trace(b'{"seq":1.5,"t":0,"kind":"end"}\n'), 2, "no trace record"),
    "time falls": (trace(call(1), record(2, "fault", 0.0005, what="x"), end(3)), 3, "time falls"),
    "time below zero": (trace(end(1, -1.0)), 2, "time falls"),
    "time too large": (trace(b'{"seq":1,"t":1e999,"kind":"end"}\n'), 2, "no trace record"),
    "id twice": (trace(call(1), reply(2, "c1"), call(3, call_id="c1"), end(4)), 4, "used twice"),
    "id twice, open": (trace(call(1), call(2, call_id="c1"), end(4)), 3, "used twice"),
    "id too long": (trace(call(1, call_id="x" * (NAME_CHARS_MAX + 1)), end(2)), 2, "length"),
    "reply to nothing": (trace(reply(1, "c9"), end(2)), 2, "not open"),
    "reply twice": (trace(call(1), reply(2, "c1"), reply(3, "c1"), end(4)), 4, "not open"),
    "reply of another rpc": (trace(call(1), reply(2, "c1", "Foo"), end(3)), 3, "reply of Foo"),
    "reply without": (trace(call(1), record(2, "reply", rpc="Version", id="c1"), end(3)), 3, "exactly one"),
    "reply with two": (trace(call(1), reply(2, "c1", response={}, same="c1"), end(3)), 3, "exactly one"),
    "error of a wrong type": (trace(call(1), reply(2, "c1", error=5), end(3)), 3, "no trace record"),
    "unknown op": (trace(record(1, "pod", op="wish"), end(2)), 2, "no trace record"),
    "after the end": (trace(end(1), end(2)), 3, "after `end`"),
    "long line": (trace(b'{"seq":1,"x":"' + b"x" * LINE_BYTES_MAX, end(2)), 2, "longer than 16 MiB"),
    "nested record": (
        trace(b'{"seq":1,"t":0,"kind":"x","y":' + b"[" * 100_000 + b"\n"),
        2,
        "nested too deeply",
    ),
    "lone surrogate": (trace(b'{"seq":1,"t":0,"kind":"fault","what":"\\ud800"}\n'), 2, "no trace record"),
    "no UTF-8": (trace(b'{"seq":1,"t":0,"kind":"fault","what":"\xff"}\n'), 2, "byte 38 of it is 0xff"),
}


@pytest.mark.parametrize(("text", "line", "problem"), WRONG.values(), ids=WRONG)
def test_bad_input_is_named(text: bytes, line: int, problem: str) -> None:
    """What is no trace is refused with the line, the problem and a remedy."""
    error = refused(text)

    assert (error.line, problem in error.problem) == (line, True), error
    assert error.remedy
    assert str(error) == f"t.jsonl:{line}: {error.problem}; {error.remedy}"


def test_unreadable_file_is_named(tmp_path: Path) -> None:
    """A file that is not there, and a folder, are refused without a line."""
    for path in (tmp_path / "none.jsonl", tmp_path):
        with pytest.raises(TraceError, match="cannot be read") as caught:
            Reader(path)

        assert caught.value.line is None


def test_fault_of_the_disk_is_named() -> None:
    """An error while reading is bad input like any other."""

    class Broken(io.BytesIO):
        """Fails after the header."""

        def read1(self, size: int | None = -1, /) -> bytes:
            if self.tell():
                raise OSError(5, "Input/output error")
            return super().read1(size)

    with pytest.raises(TraceError, match=r"t.jsonl:2: cannot be read: Input/output error"):
        list(Reader("t.jsonl", Broken(trace(end(1)))))


@pytest.mark.parametrize("size", [1, 7, 64, 1000])
def test_blocks_are_not_seen(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    """Where the reader's blocks end makes no difference, to records and to the line of an error."""
    text = trace(call(1), b" ", call(2, "Foo", {"x": "y" * 500}), reply(3, "c2", "Foo"), end(4))
    wrong = text.replace(b'"seq": 4', b'"seq": 3')
    whole, line = [(one.seq, type(one)) for one in records(text)], refused(wrong).line
    monkeypatch.setattr(bounds, "_BLOCK_BYTES", size)

    assert [(one.seq, type(one)) for one in records(text)] == whole
    assert [(one.seq, type(one)) for one in records(text.removesuffix(b"\n"))] == whole
    assert refused(wrong).line == line


def test_records_before_a_wrong_line_are_read() -> None:
    """A wrong line hides nothing that stands before it in the same block."""
    seen: list[int] = []
    with (
        Reader("t.jsonl", io.BytesIO(trace(call(1), call(2), b"{", end(4)))) as reader,
        pytest.raises(TraceError) as caught,
    ):
        seen.extend(one.seq for one in reader)

    assert seen == [1, 2]
    assert caught.value.line == 4


@pytest.mark.parametrize(("length", "shared"), [(10, True), (1000, False)])
def test_equal_small_requests_share_a_body(length: int, *, shared: bool) -> None:
    """A request that comes again and again is parsed once; large ones are not kept for it."""
    wanted = {"x": "y" * length}
    lines = (line for n in (1, 3) for line in (call(n, "Foo", wanted), reply(n + 1, f"c{n}", "Foo")))
    bodies = [one.request for one in records(trace(*lines, end(5))) if isinstance(one, Call)]

    assert bodies[0].raw == bodies[1].raw
    assert (bodies[0] is bodies[1]) is shared


def test_open_calls_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the number nor the bytes of calls without a reply grow without end; answered ones are free."""
    monkeypatch.setattr(bounds, "OPEN_CALLS_MAX", 3)
    monkeypatch.setattr(bounds, "OPEN_CALL_BYTES_MAX", 1000)
    answered = [
        line
        for n in range(1, 99, 2)
        for line in (call(n, "Foo", {"x": "y" * 500}), reply(n + 1, f"c{n}", "Foo"))
    ]

    assert refused(trace(*(call(n) for n in range(1, 9)))).line == 5
    assert refused(trace(*(call(n, "Foo", {"x": "y" * 500}) for n in range(1, 9)))).line == 3
    assert len(records(trace(*answered, end(100)))) == 99


def test_small_body_does_not_keep_a_long_line() -> None:
    """A response that is remembered does not hold on to the rest of its line."""
    spare = {"x": "x" * 1_000_000}
    lines = (
        line
        for n in range(1, 41, 2)
        for line in (call(n, "Foo", {"n": n}), reply(n + 1, f"c{n}", "Foo", response={}, **spare))
    )
    text = trace(*lines, end(41))
    tracemalloc.start()
    with Reader("t.jsonl", io.BytesIO(text)) as reader:
        for _ in reader:
            pass
        held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert held < 8_000_000


@pytest.mark.parametrize(
    ("raw", "kind", "problem"),
    [
        (b'{"a": 5}', dict[str, list[str]], "Expected"),
        (b'{"a": "\xff"}', dict[str, str], "(?i)utf-8"),
        (b'{"a": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", dict[str, object], "nested too deeply"),
        (b"", dict[str, str], "missing"),
    ],
    ids=["type", "encoding", "depth", "absent"],
)
def test_body_of_wrong_form_is_a_body_error(raw: bytes, kind: type, problem: str) -> None:
    """A body that does not fit its type is reported when somebody looks, and not before."""
    with pytest.raises(BodyError, match=problem):
        Body(raw).view(kind)
