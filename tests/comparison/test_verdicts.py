"""`compare` of records of runs shows what is worse and better in the others, and where they part there."""

import json
import tarfile
from importlib import resources
from pathlib import Path
from typing import Any

import msgspec
import pytest
from command import in_process
from jsonschema import Draft202012Validator

from kubelet_conformance.contract.verdicts import Verdict
from kubelet_conformance.plugin.play import perform
from kubelet_conformance.run_record.files import as_json
from kubelet_conformance.run_record.model import (
    ContractResult,
    Kind,
    Proof,
    Run,
    ScenarioResult,
    Target,
    TraceResult,
)
from kubelet_conformance.run_record.record import RUN
from kubelet_conformance.scenarios import every_scenario
from kubelet_conformance.targets.choice import Choice
from kubelet_conformance.targets.opening import open_stage

VERDICTS = {
    "SANDBOX-01": (Verdict.KEPT, Verdict.BROKEN),
    "SANDBOX-02": (Verdict.BROKEN, Verdict.KEPT),
    "SANDBOX-03": (Verdict.NOT_EXERCISED, Verdict.KEPT),
    "SANDBOX-04": (Verdict.KEPT, Verdict.NOT_EXERCISED),
    "SANDBOX-05": (Verdict.NOT_EXERCISED, Verdict.BROKEN),
    "SANDBOX-06": (Verdict.KEPT, Verdict.KEPT),
    # What is broken and then not exercised is not mended.
    "SANDBOX-07": (Verdict.BROKEN, Verdict.NOT_EXERCISED),
}
BROKE = Proof(trace="traces/x.jsonl", seq=(1,), text="it is <b>|1`")
PLAYED, BUG = "sidecar_end.sidecars_go_last_and_in_reverse", "bug:K8S-53727"


def kept(folder: Path, side: int) -> Path:
    """A record with one side of these verdicts, whose scenarios end otherwise on the other side."""
    contracts = tuple(
        ContractResult(
            id=name,
            area="SANDBOX",
            level="MUST",
            verdict=sides[side],
            activations=1,
            evidence=(BROKE,) if sides[side] is Verdict.BROKEN else (),
        )
        for name, sides in VERDICTS.items()
    )
    scenarios = (
        ScenarioResult(name="a|b", trace="traces/x.jsonl", died="it ended" if side else ""),
        # On a node that scenarios share, its own time is what it took.
        ScenarioResult(name="shared", trace="traces/node.jsonl", seconds=20.0 - 10 * side),
    )
    run = Run(
        kind=Kind.RUN,
        target=Target(kubelet="reference"),
        totals={},
        contracts=contracts,
        scenarios=scenarios,
        traces=(
            TraceResult(path="traces/x.jsonl", scenario="a|b", seconds=10.0 + 5 * side),
            TraceResult(path="traces/node.jsonl", seconds=100.0 + 50 * side),
        ),
    )
    folder.mkdir()
    (folder / RUN).write_text(as_json(msgspec.to_builtins(run)))
    return folder


@pytest.fixture
def records(tmp_path: Path) -> tuple[Path, Path]:
    """A record and a worse one."""
    return kept(tmp_path / "before", 0), kept(tmp_path / "after", 1)


def packed(folder: Path, ending: str) -> Path:
    """The record as one file, with what is not of a record beside it."""
    pack = folder.with_name(f"{folder.name}.tar.{ending}")
    with tarfile.open(pack, "w:gz") if ending == "gz" else tarfile.open(pack, "w:xz") as written:
        written.add(folder, ".")
    return pack


def in_json(text: str) -> Any:
    """The report for programs, which fits its schema."""
    schema = resources.files("kubelet_conformance.reports").joinpath("compare.schema.json").read_text("utf-8")
    report = json.loads(text)
    validator: Any = Draft202012Validator(json.loads(schema))
    validator.validate(report)
    return report


@pytest.mark.parametrize("ending", ["", "gz", "xz"])
def test_what_is_worse_fails(
    capsys: pytest.CaptureFixture[str], records: tuple[Path, Path], ending: str
) -> None:
    """Contracts that are broken now and scenarios that end badly now are worse; the exit code is 1."""
    sides = [packed(each, ending) if ending else each for each in records]
    ended = in_process(capsys, "compare", *sides, sides[0], "--format", "json")
    report = in_json(ended.out)
    worse, same = (
        {title: [each["name"] for each in those] for title, those in of["verdicts"].items() if those}
        for of in report["compared"]
    )

    assert ended.code == report["exit_code"] == 1
    assert worse == {
        "worse": ["SANDBOX-01", "SANDBOX-05", "a|b"],
        "better": ["SANDBOX-02"],
        "newly_exercised": ["SANDBOX-03"],
        "no_longer_exercised": ["SANDBOX-04", "SANDBOX-07"],
        "timing_shifted": ["shared", "a|b"],
    }
    assert same == {}
    assert report["contracts"][0] == {"id": "SANDBOX-01", "verdicts": ["kept", "broken", "kept"]}


def test_nothing_worse_is_fine(capsys: pytest.CaptureFixture[str], records: tuple[Path, Path]) -> None:
    """A record compared with itself has not changed."""
    ended = in_process(capsys, "compare", records[0], records[0])

    assert (ended.code, ended.out) == (0, "NOT WORSE: nothing has changed\n")


def test_markdown_is_for_a_pull_request(
    capsys: pytest.CaptureFixture[str], records: tuple[Path, Path]
) -> None:
    """What is worse is open, the rest folded; what a name or a sentence holds cannot end a cell."""
    report = in_process(capsys, "compare", *records, "--format", "markdown").out

    assert report.startswith("# WORSE: 3 worse, 1 better, 1 newly exercised, 2 no longer exercised")
    assert "## worse (3)\n\n|  | before | after | what happened |\n" in report
    assert "| `SANDBOX-01` | kept | broken | it is &lt;b>&#124;1\\` |\n" in report
    assert "| `a/b` | ended well | the kubelet ended by itself | it ended |\n" in report
    assert report.count("<details>") == report.count("</details>") == 4


def test_the_page_has_a_column_for_each_record(
    capsys: pytest.CaptureFixture[str], records: tuple[Path, Path]
) -> None:
    """Each says what it says of each contract, and filters find what differs; markup is text."""
    page = in_process(capsys, "compare", *records, records[1], "--format", "html").out
    row = page.partition('id="SANDBOX-01"')[2].partition("</summary>")[0]

    assert "2 of 2 are worse than" in page
    assert 'data-verdict="kept broken"' in row
    assert 'data-change="differs worse"' in row
    assert row.count("is-broken") == 2
    assert "it is <b>" not in page


def played(folder: Path, kubelet: str, *broken: str) -> Path:
    """The packed record of a run of two scenarios, of which the first breaks these contracts."""
    names = PLAYED, "hooks.pre_stop_hooks_run_side_by_side"
    (folder / "traces").mkdir(parents=True)
    for each in names:
        trace = perform(every_scenario()[each], each, open_stage(Choice(kubelet)), "1.32").trace
        (folder / "traces" / f"{each}.jsonl").write_bytes(trace)
    verdict = Verdict.BROKEN if broken else Verdict.KEPT
    contract = ContractResult(id="SIDECAR-10", area="SIDECAR", level="MUST", verdict=verdict, activations=1)
    scenarios = tuple(
        ScenarioResult(name=each, trace=f"traces/{each}.jsonl", broken=broken if each == PLAYED else ())
        for each in names
    )
    run = Run(kind=Kind.RUN, target=Target(), totals={}, contracts=(contract,), scenarios=scenarios)
    (folder / RUN).write_text(as_json(msgspec.to_builtins(run)))
    return packed(folder, "gz")


def test_steps_are_compared_where_verdicts_changed(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Two records of runs show where they part in what is worse, and in other scenarios if asked to."""
    sides = played(tmp_path / "one", "reference"), played(tmp_path / "other", BUG, "SIDECAR-10")
    changed = in_process(capsys, "compare", *sides)
    every = in_json(in_process(capsys, "compare", *sides, "--scenario", "*", "--format", "json").out)
    folded = in_process(capsys, "compare", *sides, "--format", "markdown").out
    page = in_process(capsys, "compare", *sides, "--format", "html").out

    assert changed.code == 1
    assert f"different  {PLAYED}: web/s3\n" in changed.out
    assert changed.out.splitlines()[-1] == "WORSE: 1 worse"
    assert len(every["compared"][0]["steps"]["equal"]) == 1
    assert "<details><summary>sidecar\\_end.sidecars" in folded
    assert "Part at <bdi>web/s3" in page
