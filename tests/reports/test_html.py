"""The page of a record, and the pages of timelines beside it; how it looks is tested in a browser."""

import json
import re
from pathlib import Path

import pytest
from command import in_process
from trace_builder import TraceBuilder

from kubelet_conformance.targets.bugs import declared_bugs


@pytest.fixture
def kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    """The record of a check of a trace in which a second sandbox is run while the first stands."""
    s = TraceBuilder(scenario="two sandboxes")
    web = s.pod("web")
    s.run_sandbox(web)
    s.wait(1).run_sandbox(web, attempt=1)
    trace = tmp_path / "two.jsonl"
    trace.write_bytes(s.text())
    in_process(capsys, "check", trace, "--record", tmp_path / "kept")
    return tmp_path / "kept"


def test_whole_timelines_are_pages_beside_the_file(kept: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The page links to each, and each has the requests and replies of its trace."""
    file = kept.with_name("a page.html")

    done = in_process(capsys, "report", kept, "--format=html", "--output", file, "--timelines=all")

    assert done.code == 1, done.err
    beside = file.with_name("a page-timelines")
    assert [each.name for each in beside.iterdir()] == ["two.html"]
    assert 'href="a%20page-timelines/two.html"' in file.read_text("utf-8")
    whole = (beside / "two.html").read_text("utf-8")
    assert 'href="../a%20page.html"' in whole
    assert "pod_sandbox_id" in whole


def test_pages_that_cannot_be_written_do_not_lose_the_page(
    kept: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is written, what is missing is complained of, and the exit code says so."""
    file = kept.with_name("page.html")
    file.with_name("page-timelines").write_text("in the way")

    done = in_process(capsys, "report", kept, "--format=html", "--output", file, "--timelines=all")

    assert done.code == 2
    assert "page-timelines: cannot be written" in done.err
    assert "SANDBOX-04" in file.read_text("utf-8")


def test_a_trace_that_is_gone_leaves_the_verdicts(kept: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The page says that the trace is not there any more."""
    for each in (kept / "traces").iterdir():
        each.unlink()

    done = in_process(capsys, "report", kept, "--format=html")

    assert done.code == 1, done.err
    assert "The trace is not there any more" in done.out


def test_seeded_bugs_stand_with_the_contract_that_catches_them(
    kept: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each names the bugs that declare to break it, as `--kubelet` takes them."""
    page = in_process(capsys, "report", kept, "--format=html").out
    contract = page.partition('id="SANDBOX-04"')[2].partition("</details>")[0]

    assert declared_bugs()["SANDBOX-04"]
    assert all(f"<code>bug:{each}</code>" in contract for each in declared_bugs()["SANDBOX-04"])


def test_a_picture_marks_the_likeliest_cause_above_all(
    kept: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The contract that the page names first names the slices that are filled; others are outlines."""
    page = in_process(capsys, "report", kept, "--format=html").out
    cause = page.partition('<ol class="firsts">')[2].partition('<a href="#')[2].partition('"')[0]
    filled = re.findall(r'<g class="slice"><rect [^>]*><text [^>]*>([^<]*)', page)

    assert filled
    assert {each.partition(" ")[0] for each in filled} == {cause}
    assert 'class="slice also"' in page


def test_bodies_that_are_alike_are_there_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each call refers to its request and its reply; of a long one only the beginning is there."""
    s = TraceBuilder(scenario="three sandboxes")
    web = s.pod("web", containers=[{"name": "c1", "image": "img:1", "args": ["x" * 5000]}])
    for attempt in range(3):
        s.wait(1).run_sandbox(web, attempt=attempt)
        s.call("Version", {"version": "v1"}, {"runtime_name": "one", "runtime_version": str(attempt)})
    trace = tmp_path / "three.jsonl"
    trace.write_bytes(s.text())
    in_process(capsys, "check", trace, "--record", tmp_path / "kept")

    page = in_process(capsys, "report", tmp_path / "kept", "--format=html").out

    written = re.findall(r'<script type="application/json" class="bodies">(.*?)</script>', page)[-1]
    different, items = json.loads(written)
    words = [different[place] for bodies in items.values() for name, place in bodies if name == "request"]
    assert len({str(each) for each in different}) == len(different) < len(words) * 2
    assert any(isinstance(each, str) and each.endswith("…") for each in different)
    assert {"version": "v1"} in words
