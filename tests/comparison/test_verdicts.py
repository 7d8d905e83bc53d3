"""`compare --verdicts` shows what is worse and better in the second of two records."""

import json
from pathlib import Path

import msgspec
import pytest
from command import in_process

from kubelet_conformance.contract.verdicts import Verdict
from kubelet_conformance.run_record.files import as_json
from kubelet_conformance.run_record.model import (
    ContractResult,
    Kind,
    Run,
    ScenarioResult,
    Target,
    TraceResult,
)
from kubelet_conformance.run_record.record import RUN

VERDICTS = {
    "SANDBOX-01": (Verdict.KEPT, Verdict.BROKEN),
    "SANDBOX-02": (Verdict.BROKEN, Verdict.KEPT),
    "SANDBOX-03": (Verdict.NOT_EXERCISED, Verdict.KEPT),
    "SANDBOX-04": (Verdict.KEPT, Verdict.NOT_EXERCISED),
    "SANDBOX-05": (Verdict.NOT_EXERCISED, Verdict.BROKEN),
    "SANDBOX-06": (Verdict.KEPT, Verdict.KEPT),
}


def kept(folder: Path, side: int) -> Path:
    """A record with one side of these verdicts, whose scenarios end otherwise on the other side."""
    contracts = tuple(
        ContractResult(id=name, area="SANDBOX", level="MUST", verdict=sides[side], activations=1)
        for name, sides in VERDICTS.items()
    )
    run = Run(
        kind=Kind.RUN,
        target=Target(kubelet="reference"),
        totals={},
        contracts=contracts,
        scenarios=(ScenarioResult(name="a|b", trace="traces/x.jsonl", died="it ended" if side else ""),),
        traces=(TraceResult(path="traces/x.jsonl", scenario="a|b", seconds=10.0 + 5 * side),),
    )
    folder.mkdir()
    (folder / RUN).write_text(as_json(msgspec.to_builtins(run)))
    return folder


@pytest.fixture
def records(tmp_path: Path) -> tuple[Path, Path]:
    """A record and a worse one."""
    return kept(tmp_path / "before", 0), kept(tmp_path / "after", 1)


def test_what_is_worse_fails(capsys: pytest.CaptureFixture[str], records: tuple[Path, Path]) -> None:
    """Contracts that are broken now and scenarios that end badly now are worse; the exit code is 1."""
    ended = in_process(capsys, "compare", *records, "--verdicts", "--format", "json")
    report = json.loads(ended.out)
    names = {
        title: [each["name"] for each in report[title]]
        for title in report
        if title not in {"schema", "sides"}
    }

    assert ended.code == 1
    assert names == {
        "worse": ["SANDBOX-01", "SANDBOX-05", "a|b"],
        "better": ["SANDBOX-02"],
        "newly_exercised": ["SANDBOX-03"],
        "no_longer_exercised": ["SANDBOX-04"],
        "takes_another_time": ["a|b"],
    }


def test_nothing_worse_is_fine(capsys: pytest.CaptureFixture[str], records: tuple[Path, Path]) -> None:
    """A record compared with itself has not changed."""
    ended = in_process(capsys, "compare", records[0], records[0], "--verdicts")

    assert (ended.code, ended.out) == (0, "NOT WORSE: nothing has changed\n")


def test_markdown_is_for_a_pull_request(
    capsys: pytest.CaptureFixture[str], records: tuple[Path, Path]
) -> None:
    """What is worse is open, the rest folded; what a name holds cannot end a cell."""
    report = in_process(capsys, "compare", *records, "--verdicts", "--format", "markdown").out

    assert report.startswith("# WORSE: 3 worse, 1 better, 1 newly exercised, 1 no longer exercised")
    assert "## worse (3)\n\n| | before | after |\n|---|---|---|\n| `SANDBOX-01` | kept | broken |\n" in report
    assert "| `a/b` | ended well | the kubelet ended by itself |\n" in report
    assert report.count("<details>") == report.count("</details>") == 4


@pytest.mark.parametrize(
    "arguments", [("--format", "markdown"), ("--verdicts", "--scenario", "x"), ("--verdicts", "--known", "x")]
)
def test_options_that_do_not_fit(
    capsys: pytest.CaptureFixture[str], records: tuple[Path, Path], arguments: tuple[str, ...]
) -> None:
    """Options of the other comparison are refused."""
    assert in_process(capsys, "compare", *records, *arguments).code == 2
