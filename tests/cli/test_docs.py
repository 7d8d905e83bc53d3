"""What the user guide shows is true."""

import json
import re
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import Any

import msgspec
import pytest
from command import in_process
from jsonschema import Draft202012Validator
from playing_run import runs_of

from kubelet_conformance.cli.commands.check import traces_of
from kubelet_conformance.contract.baseline import BASELINE_BYTES_MAX, Baseline
from kubelet_conformance.contract.catalogue import rows
from kubelet_conformance.contract.judge import EVIDENCE_MAX
from kubelet_conformance.contract.verdicts import MERGED_EVIDENCE_MAX
from kubelet_conformance.contracts import every_contract
from kubelet_conformance.plugin.play import play
from kubelet_conformance.reports.trace_text.breaks import BREAKS_SHOWN
from kubelet_conformance.targets.choice import Choice
from kubelet_conformance.targets.opening import open_stage
from kubelet_conformance.trace.format import reader, records, replies
from kubelet_conformance.trace.world import world
from kubelet_fixtures import traces

ROOT = Path(__file__).resolve().parent.parent.parent
DOCS = ROOT / "docs"
MIB = 1024 * 1024


def blocks(page: str, language: str) -> list[str]:
    """The code blocks of a page in a language."""
    text = (DOCS / page).read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def test_json_of_the_guide_is_valid() -> None:
    """The report in the guide fits the published schema."""
    schema = resources.files("kubelet_conformance.run_record").joinpath("run.schema.json").read_text("utf-8")
    validator: Any = Draft202012Validator(json.loads(schema))
    [example] = blocks("reports.md", "json")

    validator.validate(json.loads(example))


def test_baseline_of_the_guide_is_one(tmp_path: Path) -> None:
    """The baseline in the guide names contracts that are judged, as they have to be named."""
    [example] = blocks("check-a-trace.md", "toml")
    path = tmp_path / "known.toml"
    path.write_text(example)

    assert len(Baseline.read(str(path), every_contract()).deviations) == 2


def test_trace_of_the_guide_is_one(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """The trace in the guide is valid; it is too short to exercise much."""
    [example] = blocks("trace-format.md", "json")
    path = tmp_path / "t.jsonl"
    path.write_text(example)

    assert in_process(capsys, "check", path).code in {0, 3}


def test_break_of_the_check_page_is_real(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A trace in which the old sandbox is never stopped breaks SANDBOX-04 as the page shows, rule and all."""
    lines = (traces() / "kubernetes-1.32" / "sandbox_dies.jsonl").read_text(encoding="utf-8").splitlines()
    stops = {each["id"] for each in map(json.loads, lines) if each.get("rpc") == "StopPodSandbox"}
    kept = [line for line in lines if json.loads(line).get("id") not in stops]
    (tmp_path / "broken.jsonl").write_text("\n".join(kept) + "\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    [shown] = blocks("check-a-trace.md", "text")
    ended = in_process(capsys, "check", "broken.jsonl", "--contract", "SANDBOX-04")

    assert ended.code == 1
    assert shown in ended.out


def test_row_of_the_guide_is_in_the_catalogue() -> None:
    """The annotated row is the real one, and every field of it is explained."""
    [example] = blocks("write-a-contract.md", "json")
    text = (DOCS / "write-a-contract.md").read_text(encoding="utf-8")
    row = json.loads(example)

    found = msgspec.to_builtins(rows()[row["id"]])
    assert row == {name: value for name, value in found.items() if name not in {"excluded", "package"}}
    assert [name for name in row if f"| `{name}` |" not in text] == []
    assert len(row) == 11


PATH = re.compile(r"`((?:…|conformance|reference|fakes|fixtures|tests|docs|contracts?)/[\w./-]*)`")


def test_paths_of_the_guide_exist() -> None:
    """Every file and folder of this project that a page names is there."""
    suite = ROOT / "conformance" / "kubelet_conformance"
    missing = [
        f"{page.name}: {path}"
        for page in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.glob("*.md")))
        for path in PATH.findall(page.read_text(encoding="utf-8"))
        if not (ROOT / path).exists() and not (suite / path.removeprefix("…/")).exists()
    ]

    assert missing == []


def test_bounds_of_the_guide_are_those_of_the_code() -> None:
    """Every number that the guide promises stands in the code."""
    text = "".join((DOCS / page).read_text(encoding="utf-8") for page in ("check-a-trace.md", "reports.md"))
    promised = [
        f"{reader.LINE_BYTES_MAX // MIB} MiB",
        f"{reader.OPEN_CALLS_MAX:,}, and {reader.OPEN_CALL_BYTES_MAX // MIB} MiB of lines",
        f"{records.NAME_CHARS_MAX} characters",
        f"{world.PODS_MAX:,}",
        f"{world.CONTAINERS_MAX:,} each",
        f"{world.RECORDS_OF_POD_MAX:,} each",
        f"{BASELINE_BYTES_MAX // MIB} MiB",
        f"the latest {reader.REMEMBERED_IDS:,}",
        f"the latest {replies.REMEMBERED_REPLIES:,}, and {replies.REMEMBERED_REPLY_BYTES // MIB} MiB in all",
        f"at most {EVIDENCE_MAX} of one trace and {MERGED_EVIDENCE_MAX} in all",
    ]

    assert [each for each in promised if each.replace(",", " ", 1) not in text and each not in text] == []
    assert BREAKS_SHOWN == 3


def lines_of(name: str) -> Iterator[str]:
    """The lines of a shipped trace with the change that the first page makes."""
    for line in (traces() / "kubernetes-1.32" / name).read_text(encoding="utf-8").splitlines(keepends=True):
        yield line.replace('"attempt":1', '"attempt":7') if '"rpc":"RunPodSandbox"' in line else line


def test_first_page_breaks_what_it_says(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """The change that the first page makes breaks SANDBOX-02, with the lines that the page shows."""
    path = tmp_path / "broken.jsonl"
    path.write_text("".join(lines_of("sandbox_dies.jsonl")))
    [shown] = blocks("index.md", "text")
    ended = in_process(capsys, "check", path)

    assert ended.code == 1
    assert "BROKEN  SANDBOX-02" in ended.out
    assert all(line.strip() in ended.out for line in shown.splitlines())


@pytest.mark.slow
def test_shipped_traces_are_kept(capsys: pytest.CaptureFixture[str]) -> None:
    """The main job: no contract is broken by the traces of real kubelets, and the exit code is 0."""
    files, errors = traces_of([str(traces())])
    ended = in_process(capsys, "check", traces())

    assert (len(files), errors) == (60, [])
    assert (ended.code, ended.err) == (0, "")
    assert re.search(r"^OK: \d+ kept, 0 broken, .* 0 error in 60 traces$", ended.out, re.MULTILINE)


def test_zoo_json_of_the_guide_is_valid() -> None:
    """The zoo's report in the guide fits its published schema."""
    schema = resources.files("kubelet_conformance.reports").joinpath("zoo.schema.json").read_text("utf-8")
    validator: Any = Draft202012Validator(json.loads(schema))
    [example] = blocks("zoo.md", "json")

    validator.validate(json.loads(example))


def test_break_of_the_guide_is_real(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command that the guide shows breaks what it says, in those words."""
    [shown] = blocks("run.md", "text")
    [command] = [each for each in blocks("run.md", "sh") if "bug:" in each]
    ended = runs_of(capsys, monkeypatch)(*command.split()[2:])

    assert ended.code == 1
    assert [line for line in shown.splitlines() if line not in ended.out] == []


def test_options_of_the_guide_are_all(capsys: pytest.CaptureFixture[str]) -> None:
    """Every option of `run` is explained, and no other."""
    offered = in_process(capsys, "run", "--help").out
    text = (DOCS / "run.md").read_text(encoding="utf-8")
    table = text.partition("## Options")[2].partition("\n## ")[0]

    assert set(re.findall(r"^\| `(--[a-z-]+)", table, re.MULTILINE)) == set(
        re.findall(r"^  (--[a-z-]+)", offered, re.MULTILINE)
    )


def test_programs_of_the_guide_run(capsys: pytest.CaptureFixture[str]) -> None:
    """The programs with the fakes print what their comments say."""
    for program in blocks("fakes.md", "python"):
        exec(compile(program, "fakes.md", "exec"), {"__name__": "guide"})  # noqa: S102 - our own page

    assert capsys.readouterr().out == "600.0\n3\n"


def test_scenarios_of_the_guide_are_kept(tmp_path: Path) -> None:
    """The scenarios in the guide are played to their end and break nothing."""
    every = list(every_contract().values())
    for number, text in enumerate(blocks("write-a-scenario.md", "python")):
        names: dict[str, Any] = {}
        exec(compile(text, "write-a-scenario.md", "exec"), names)  # noqa: S102 - our own page
        [(name, scenario)] = [each for each in names.items() if each[0].startswith("test_")]
        played = play(scenario, name, open_stage(Choice()), every, tmp_path / f"{number}.jsonl")

        assert (played.broken, played.unmet, played.failed) == ([], "", "")
