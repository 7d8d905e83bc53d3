"""A record is written while a run goes on, read again whole or in part, and renders as the run reported."""

import json
import shutil
import tarfile
from collections.abc import Callable
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
from command import Ended, in_process
from jsonschema import Draft202012Validator
from playing_run import BUGGY, Runs, runs_of

from kubelet_conformance.contract.verdicts import Verdict
from kubelet_conformance.reports.forms import FORMS
from kubelet_conformance.run_record.model import Ended as EndOfRun
from kubelet_conformance.run_record.model import Run
from kubelet_conformance.run_record.reader import opened
from kubelet_conformance.run_record.record import JOURNAL, RUN
from kubelet_conformance.run_record.writer import RecordWriter

SCHEMA: dict[str, Any] = json.loads(
    resources.files("kubelet_conformance.run_record").joinpath("run.schema.json").read_text("utf-8")
)
VALIDATOR: Any = Draft202012Validator(SCHEMA)
Report = Callable[..., Ended]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Runs:
    """The command `run`, in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    return runs_of(capsys, monkeypatch)


@pytest.fixture
def report(capsys: pytest.CaptureFixture[str]) -> Report:
    """The command `report`."""

    def command(*arguments: str | Path) -> Ended:
        return in_process(capsys, "report", *arguments)

    return command


@pytest.mark.parametrize("name", ["kept", "kept.tar.gz"])
def test_report_says_what_the_run_said(run: Runs, report: Report, tmp_path: Path, name: str) -> None:
    """In every form, of a folder and of a pack, the report of a record is that of its run, byte for byte."""
    files = [f"--report={form}={tmp_path / form}" for form in FORMS]
    ended = run(*BUGGY, "--record", name, *files)

    assert "BROKEN  PROBE-10" in ended.out
    assert (report(name).code, report(name).out) == (ended.code, ended.out)
    for form in FORMS:
        assert report(name, "--format", form, "--output", "again").out == ""
        assert Path("again").read_bytes() == (tmp_path / form).read_bytes(), form


def test_record_fits_its_schema(run: Runs, tmp_path: Path) -> None:
    """Every field of run.json is in the published schema, and what has ended has no journal."""
    run(*BUGGY, "--record", "kept")
    found = json.loads((tmp_path / "kept" / RUN).read_text())
    VALIDATOR.validate(found)
    parts = {
        "contracts": SCHEMA["$defs"]["contract"]["properties"],
        "scenarios": SCHEMA["properties"]["scenarios"]["items"]["properties"],
        "traces": SCHEMA["properties"]["traces"]["items"]["properties"],
    }

    assert set(found) == set(SCHEMA["properties"]) == set(Run.__struct_fields__)
    assert {name: set(found[name][0]) for name in parts} == {name: set(each) for name, each in parts.items()}
    assert set(found["target"]) == set(SCHEMA["properties"]["target"]["properties"])
    assert found["scenarios"][0]["trace"].startswith("traces/")
    assert not (tmp_path / "kept" / JOURNAL).exists()


def test_record_can_be_moved(run: Runs, report: Report, tmp_path: Path) -> None:
    """Traces are named relative to the record: elsewhere it reports the same, with its slices."""
    ended = run(*BUGGY, "--record", "kept")
    shutil.move("kept", tmp_path / "elsewhere")

    assert report("elsewhere").out == ended.out.replace("kept/traces", "elsewhere/traces")


def test_unfinished_record_has_what_is_over(
    run: Runs, report: Report, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """While a run goes on, or was killed, its record is marked and has the scenarios that are over."""

    def killed(*_: object) -> None:
        raise RuntimeError("killed")

    monkeypatch.setattr(RecordWriter, "finish", killed)
    run(*BUGGY, "--record", "kept")
    with (tmp_path / "kept" / JOURNAL).open("a") as journal:
        journal.write('{"scenario": {"name": "cut')
    VALIDATOR.validate(json.loads((tmp_path / "kept" / RUN).read_text()))
    ended = report("kept")
    with opened("kept") as record:
        found = record.run

    assert found.ended is EndOfRun.UNFINISHED
    assert [each.name for each in found.scenarios] == ["probes.failing_readiness_never_kills"]
    assert [each.verdict for each in found.contracts] == [Verdict.BROKEN]
    assert ended.code == 130
    assert "Unfinished: the run is not over" in ended.out
    assert "BROKEN  PROBE-10" in ended.out
    assert "INCOMPLETE" in ended.out


@pytest.mark.parametrize("place", [".", "record"])
def test_record_that_somebody_packed_is_read(run: Runs, tmp_path: Path, place: str) -> None:
    """A record that was packed by xz, or together with its folder, is read as one that we packed."""
    assert run("PROBE-10", "--record=record").code == 0
    with tarfile.open("record.tar.xz", "w:xz") as pack:
        pack.add("record", place)

    with opened("record.tar.xz") as record, opened("record") as unpacked:
        assert record.run == unpacked.run
        assert all(record.file(each.path).is_file() for each in record.run.traces)
    assert {each.name for each in tmp_path.iterdir()} == {"record", "record.tar.xz"}


def packed(path: Path, content: str) -> Path:
    """A pack whose run.json has this content."""
    inside = path.parent / RUN
    inside.write_text(content)
    with tarfile.open(path, "w:gz") as pack:
        pack.add(inside, RUN)
    return path


def without_verdicts(path: Path) -> Path:
    """A record whose contracts have no verdict."""
    path.mkdir()
    (path / RUN).write_text(json.dumps({"schema": 3, "contracts": [{"id": "TERM-01"}], "kind": "run"}))
    return path


def text_file(path: Path) -> Path:
    """What is no pack at all."""
    path.write_text("<testsuites/>")
    return path


def of_schema(path: Path, schema: int) -> Path:
    """A record of another schema."""
    path.mkdir()
    (path / RUN).write_text(json.dumps({"schema": schema, "contracts": []}))
    return path


BAD: dict[str, tuple[Callable[[Path], Path], str]] = {
    "missing": (
        lambda path: path,
        "cannot be read: No such file or directory; name the folder",
    ),
    "folder of another tool": (lambda path: path.parent, "is no record: it has no run.json; name the folder"),
    "file of another tool": (text_file, "is no packed record, or is cut off; name the folder"),
    "cut off": (lambda path: packed(path, '{"schema": 3, "contr'), "run.json: is no JSON, or is cut off"),
    "JSON of another tool": (
        lambda path: packed(path, '{"schema": 1}'),
        "run.json: is not of this tool; ",
    ),
    "no object": (lambda path: packed(path, "[]"), "run.json: is not of this tool; "),
    "newer": (
        lambda path: of_schema(path, 4),
        "has schema 4, and this suite reads up to 3: use",
    ),
    "damaged": (without_verdicts, "run.json: is damaged: Object missing required field"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_record_is_two(report: Report, tmp_path: Path, case: str) -> None:
    """What is no record, or none that can be read, is named in one line."""
    make, message = BAD[case]
    ended = report(make(tmp_path / "record"))

    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith("error: ")
    assert message in ended.err
    assert ended.err.count("\n") == 1


def test_pack_that_is_cut_off_shows_what_is_there(run: Runs, report: Report, tmp_path: Path) -> None:
    """A pack that was not copied to its end has its verdicts, and says so; without these it is refused."""
    run(*BUGGY, "--record", "kept.tar.gz")
    pack = tmp_path / "kept.tar.gz"
    whole = pack.read_bytes()
    pack.write_bytes(whole[: len(whole) * 2 // 3])
    with_verdicts = report(pack)
    pack.write_bytes(whole[:500])
    without = report(pack)

    assert with_verdicts.code == without.code == 2
    assert "BROKEN  PROBE-10" in with_verdicts.out
    assert f"{pack}: is cut off: its last traces are missing or damaged; copy it again" in with_verdicts.out
    assert "BAD INPUT: " in with_verdicts.out
    assert without.out == ""
    assert "is cut off; " in without.err
    assert sorted(each.name for each in tmp_path.iterdir()) == ["kept.tar.gz"]


def test_cut_off_run_leaves_its_traces(
    run: Runs, report: Report, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Where run.json is cut off and traces are there, the message says how to judge them, and that works."""
    run(*BUGGY, "--record", "kept")
    (tmp_path / "kept" / RUN).write_text('{"schema": 3, "contr')

    ended = report("kept")
    remedy = "`kubelet-conformance check kept`"
    judged = in_process(capsys, "check", "kept")

    assert ended.code == 2
    assert remedy in ended.err
    assert "BROKEN  PROBE-10" in judged.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--record", "file"), "file: cannot hold a record: "),
        (("--record", "folder.tar.gz"), "folder.tar.gz: is a folder; name a file for the packed record"),
        (("--report", "pdf=x"), "--report pdf=x: write FORMAT=FILE, with a format of terminal"),
        (("--report", "json"), "--report json: write FORMAT=FILE"),
        (("--report", "json=folder.tar.gz"), "folder.tar.gz: is a folder; name a file for the report"),
        (("--report", "json=none/x"), "none/x: its folder does not exist"),
        (("--report", "json=/proc/x"), "/proc/x: cannot be written: "),
    ],
)
def test_what_cannot_be_written_is_refused_before(
    run: Runs, tmp_path: Path, arguments: tuple[str, ...], message: str
) -> None:
    """A record or a report that has no place is told of before anything is played."""
    (tmp_path / "file").touch()
    (tmp_path / "folder.tar.gz").mkdir()
    ended = run(*BUGGY, *arguments)

    assert (ended.code, ended.out) == (2, "")
    assert message in ended.err


def test_report_that_cannot_be_written_loses_nothing(
    run: Runs, report: Report, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A report that cannot be written is complained of; others are there, and the record is kept."""

    def full(path: Path, text: str) -> None:
        if path.name == "full":
            raise OSError(28, "No space left on device")
        path.write_text(text)

    monkeypatch.setattr("kubelet_conformance.reports.output.write_whole", full)
    ended = run(*BUGGY, "--report", f"junit={tmp_path / 'full'}", "--report", f"badge={tmp_path / 'badge'}")

    assert ended.code == 2
    assert "BROKEN  PROBE-10" in ended.out
    complaint, note = ended.err.splitlines()
    assert complaint == f"error: {tmp_path / 'full'}: cannot be written: No space left on device"
    assert note.startswith("note: the record is kept: `kubelet-conformance report ")
    kept = Path(note.split()[7].rstrip("`"))
    assert "BROKEN  PROBE-10" in report(kept).out
    shutil.rmtree(kept)
    assert (tmp_path / "badge").read_text().startswith("<svg")


def test_record_that_fills_the_disk_is_not_ok(run: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    """The verdicts are printed where the record could not be finished, and the run ends with 2."""

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(RecordWriter, "_end_journal", full)
    ended = run(*BUGGY, "--record", "kept")

    assert ended.code == 2
    assert ended.err == "error: kept/run.json: cannot be written: No space left on device\n"
    assert "BROKEN  PROBE-10" in ended.out
    assert "BAD INPUT: " in ended.out


def test_check_keeps_its_traces(
    run: Runs, report: Report, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """`check --record` copies the traces that it judges, and never replaces the record that it reads."""
    run(*BUGGY, "--record", "kept")
    again = ("check", "kept", "kept/traces", "--contract", "PROBE-10")
    options = ("--record", "checked", "--report", "json=found.json")
    ended = in_process(capsys, *again, *options)
    found = json.loads((tmp_path / "found.json").read_text())

    assert [each["path"] for each in found["traces"]] == ["traces/probes.failing_readiness_never_kills.jsonl"]
    assert found["command"] == [
        "kubelet-conformance",
        *again,
        "--record",
        "checked",
        "--report",
        "json=found.json",
    ]
    assert report("checked").out == ended.out
    assert "again: kubelet-conformance check checked/traces/" in ended.out
    assert "kept: kept/traces/" in in_process(capsys, *again, "--record", "kept").err
    assert report("kept").code == 1
