"""Bad input: one message that names file, line, problem and remedy, exit code 2, and nothing else harmed."""

import os
from pathlib import Path

import pytest
from command import in_process, in_subprocess
from lines import HEADER, call, end, record, reply, trace
from trace_builder import TraceBuilder

from kubelet_conformance.trace.world import world

DEEP = b'{"a":' * 100_000 + b"1" + b"}" * 100_000
ESCAPES = "\x1b[2J\x1b]0;owned\x07\x00\u202egnp\u2028"


def nested(start: bytes) -> bytes:
    """A trace with one record that ends in a deeply nested body."""
    return trace(start + DEEP + b"}\n", end(2))


#: What no reader takes: the file, the line of the message, and a part of it.
FILES: dict[str, tuple[bytes, int, str]] = {
    "binary": (bytes(range(256)) * 8, 1, "no trace header"),
    "empty": (b"", 1, "empty"),
    "array": (b"[]\n", 1, "no trace header"),
    "other lines": (b'{"level":"info","msg":"hi"}\n' * 9, 1, "no trace header"),
    "cut in a line": (trace(call(1))[:-9], 2, "truncated in the middle"),
    "cut between lines": (trace(call(1)), 3, "truncated"),
    "falling seq": (trace(call(7), reply(3, "c7"), end(9)), 3, "seq falls"),
    "falling time": (trace(call(1), reply(2, "c1") | {"t": 0}, end(9)), 3, "time falls"),
    "duplicate id": (trace(call(1), reply(2, "c1"), call(3, call_id="c1"), end(4)), 4, "used twice"),
    "dangling reply": (trace(reply(1, "c0"), end(2)), 2, "not open"),
    "dangling same": (trace(call(1), reply(2, "c1", same="c0"), end(3)), 3, "`same`"),
    "newer version": (trace(end(1), header=HEADER | {"trace": 2}), 1, "format version 2"),
    "huge line": (trace(b'{"seq":1,"x":"' + b"x" * (17 << 20) + b'"}\n', end(2)), 2, "longer than 16 MiB"),
    "nested envelope": (nested(b'{"seq":1,"t":0,"kind":"fault","what":"x","y":'), 2, "nested too deeply"),
    "nested unknown kind": (nested(b'{"seq":1,"t":0,"kind":"later","y":'), 2, "nested too deeply"),
    "nested request": (
        nested(b'{"seq":1,"t":0,"kind":"call","rpc":"RunPodSandbox","id":"c","request":'),
        2,
        "nested too deeply",
    ),
    "nested pod": (nested(b'{"seq":1,"t":0,"kind":"pod","op":"set","pod":'), 2, "nested too deeply"),
    "nested status": (nested(b'{"seq":1,"t":0,"kind":"status","uid":"u","status":'), 2, "nested too deeply"),
    "request is a list": (trace(call(1, "RunPodSandbox", [1]), end(2)), 2, "request of RunPodSandbox"),
    "labels are a number": (trace(call(1, "RunPodSandbox", {"config": {"labels": 7}}), end(2)), 2, "labels"),
    "manifest is text": (trace(record(1, "pod", op="set", pod="web"), end(2)), 2, "pod record"),
    "lone surrogate": (
        trace(call(1, "RunPodSandbox", {"config": {"hostname": "\ud800"}}), end(2)),
        2,
        "trace",
    ),
    "no UTF-8": (
        trace(call(1, "RunPodSandbox", {"config": {"hostname": "?"}}), end(2)).replace(b'"?"', b'"\xff"'),
        2,
        "the line is not UTF-8: byte",
    ),
    "no UTF-8 where nothing is read": (
        trace(call(1, "RunPodSandbox", {"config": {"later": "?"}}), end(2)).replace(b'"?"', b'"\xff"'),
        2,
        "the line is not UTF-8: byte",
    ),
    "no UTF-8 in a key of the header": (
        trace(end(1), header=HEADER | {"later?": 1}).replace(b"later?", b"later\xe9"),
        1,
        "the line is not UTF-8: byte",
    ),
    "escapes in a version": (
        trace(end(1), header=HEADER | {"kubernetes": ESCAPES}),
        1,
        "no Kubernetes version",
    ),
    "escapes in an id": (trace(call(1, call_id=ESCAPES), call(2, call_id=ESCAPES), end(3)), 3, "used twice"),
    "escapes in an rpc": (trace(call(1, ESCAPES), reply(2, "c1"), end(3)), 3, "reply of Version"),
}


@pytest.mark.parametrize(("text", "line", "said"), FILES.values(), ids=FILES)
def test_bad_file_is_one_message(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, text: bytes, line: int, said: str
) -> None:
    """One line on standard error names file, line, problem and remedy; no report, no traceback."""
    path = tmp_path / "t.jsonl"
    path.write_bytes(text)
    ended = in_process(capsys, "check", path)

    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith(f"error: {path}:{line}: ")
    assert said in ended.err
    assert "; " in ended.err
    assert ended.err.count("\n") == 1
    assert ended.err.rstrip("\n").isprintable()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["nested request", "huge line"])
def test_bad_file_in_a_process_of_its_own(tmp_path: Path, name: str) -> None:
    """The real command says the same and ends with 2."""
    path = tmp_path / "t.jsonl"
    path.write_bytes(FILES[name][0])
    ended = in_subprocess("check", path)

    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith(f"error: {path}:{FILES[name][1]}: ")
    assert ended.err.count("\n") == 1


def test_pods_without_end_are_refused(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More pods alive than the bound are bad input at the line that passes it."""
    monkeypatch.setattr(world, "PODS_MAX", 10)
    path = tmp_path / "t.jsonl"
    pods = (
        record(n, "pod", op="set", pod={"metadata": {"name": f"p{n}", "uid": f"u{n}"}}) for n in range(1, 100)
    )
    path.write_bytes(trace(*pods, end(100)))
    ended = in_process(capsys, "check", path)

    assert ended.code == 2
    assert f"{path}:12: the pod record: more than 10 pods are alive; " in ended.err


def test_records_of_one_pod_without_end_are_refused(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More containers or sandboxes of one pod than the bound are bad input."""
    monkeypatch.setattr(world, "RECORDS_OF_POD_MAX", 3)
    s = TraceBuilder()
    web = s.pod()
    sandbox = s.run_sandbox(web)
    for number in range(4):
        s.create(web, sandbox, f"c{number}")
    path = tmp_path / "t.jsonl"
    path.write_bytes(s.text())
    ended = in_process(capsys, "check", path)

    assert ended.code == 2
    assert "more than 3 containers of one pod are recorded" in ended.err


def test_good_traces_are_judged_beside_bad_ones(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Each bad file has its own message; the good one is judged and reported, and the code is 2."""
    s = TraceBuilder()
    s.run_sandbox(s.pod())
    (tmp_path / "good.jsonl").write_bytes(s.text())
    (tmp_path / "a.jsonl").write_bytes(b"")
    (tmp_path / "b.jsonl").write_bytes(b"x")
    ended = in_process(capsys, "check", tmp_path, tmp_path / "none", "--contract", "SANDBOX-01")

    assert ended.code == 2
    assert [line.split(":")[1].strip() for line in ended.err.splitlines()] == [
        str(tmp_path / name) for name in ("a.jsonl", "b.jsonl", "none")
    ]
    assert "BAD INPUT: 1 kept, 0 broken" in ended.out
    assert "in 1 trace; 3 inputs could not be judged" in ended.out


def test_folder_without_traces(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """A folder that holds no trace is an error and not an empty success."""
    (tmp_path / "notes.txt").write_text("no trace")
    ended = in_process(capsys, "check", tmp_path)

    assert ended.code == 2
    assert f"{tmp_path}: the folder holds no trace; " in ended.err


def test_links_in_circles(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """A folder that links to itself is walked once, a broken link is named, and a pipe is left alone."""
    inner = tmp_path / "inner"
    inner.mkdir()
    (inner / "good.jsonl").write_bytes(trace(end(1)))
    (inner / "loop").symlink_to(tmp_path)
    (inner / "broken.jsonl").symlink_to(tmp_path / "nowhere")
    (inner / "folder.jsonl").mkdir()
    os.mkfifo(inner / "pipe.jsonl")
    ended = in_process(capsys, "check", tmp_path)

    assert ended.code == 2
    assert ended.err.count("\n") == 1
    assert f"{inner / 'broken.jsonl'}: cannot be read" in ended.err
    assert "Judged 1 trace," in ended.out


def test_file_that_cannot_be_read(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """A file without the right to read it, and one whose reading fails, are named."""
    path = tmp_path / "t.jsonl"
    path.write_bytes(trace(end(1)))
    path.chmod(0)
    if not os.access(path, os.R_OK):
        assert f"{path}: cannot be read: Permission denied" in in_process(capsys, "check", path).err

    ended = in_process(capsys, "check", "/proc/self/mem")

    assert ended.code == 2
    assert "/proc/self/mem" in ended.err


def test_name_of_a_file_does_not_reach_the_terminal(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """A file name with escapes, or with bytes that are no text, is shown by codes in messages and reports."""
    odd = tmp_path / os.fsdecode(b"\x1b[31m\xff\xfe.jsonl")
    odd.write_bytes(trace(end(1)))
    wrong = tmp_path / "\x1b[32m\u202e.jsonl"
    wrong.write_bytes(b"")
    ended = in_process(capsys, "check", tmp_path)
    machine = in_process(capsys, "check", tmp_path, "--format", "json")

    assert r"\x1b[32m\u202e.jsonl:1: the file is empty" in ended.err
    assert (ended.out + ended.err + machine.out + machine.err).replace("\n", "").isprintable()


BAD_ARGUMENTS: dict[str, tuple[tuple[str, ...], str]] = {
    "no trace": ((), "Missing argument 'TRACE|FOLDER...'; see `kubelet-conformance check --help`"),
    "unknown option": (
        ("x", "--fast"),
        "No such option '--fast'. Did you mean '--format'? See `kubelet-conformance check --help`",
    ),
    "unknown format": (("x", "--format", "xml"), "'xml'"),
    "unknown version": (("x", "--kubernetes", "newest"), "write it like 1.32"),
    "version of no kubelet": (("x", "--kubernetes", "9.9"), "this suite knows 1.24 to 1.36"),
    "version with escapes": (("x", "--kubernetes", ESCAPES.replace("\0", "")), "is no Kubernetes version"),
    "unknown id": (("x", "--contract", "SANBOX-04"), "nearest: SANDBOX-04"),
    "not judged": (("x", "--contract", "WORK-26"), "WORK-26: not judged"),
    "unknown glob": (("x", "--contract", "FOO*"), "there is no contract FOO*"),
    "id with escapes": (("x", "--contract", "\x1b[31m"), "there is no contract"),
    "no baseline": (("x", "--baseline", "none.toml"), "none.toml: cannot be read"),
    "output is a folder": (("x", "--output", "/"), "is a folder"),
    "no folder for output": (("x", "--output", "none/none.txt"), "its folder does not exist"),
}


@pytest.mark.parametrize(("arguments", "said"), BAD_ARGUMENTS.values(), ids=BAD_ARGUMENTS)
def test_wrong_usage_is_two(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], said: str
) -> None:
    """Wrong usage ends with 2 before anything is judged, and says what would be right."""
    ended = in_process(capsys, "check", *arguments)

    assert (ended.code, ended.out) == (2, "")
    assert said in ended.err
    assert ended.err.replace("\n", "").isprintable()


def test_broken_baseline_is_two(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """A broken baseline is named with file, line, problem and remedy before anything is judged."""
    known = tmp_path / "known.toml"
    known.write_text('[[deviation]]\nid = "SANDBOX-01\n')
    trace_file = tmp_path / "t.jsonl"
    trace_file.write_bytes(trace(end(1)))
    ended = in_process(capsys, "check", trace_file, "--baseline", known)

    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith(f"error: {known}:2: this is no TOML (")
