"""`compare` shows where two sides first part, and reports it for people and for programs."""

import json
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
from command import in_process
from jsonschema import Draft202012Validator

from kubelet_conformance.plugin.play import perform
from kubelet_conformance.scenarios import every_scenario
from kubelet_conformance.targets.choice import Choice
from kubelet_conformance.targets.opening import open_stage

NAME = "sidecar_end.sidecars_go_last_and_in_reverse"
BUG = "bug:K8S-53727"
OTHER = "hooks.pre_stop_hooks_run_side_by_side"
KNOWN = '[[difference]]\nscenario = "{}"\ncause = "version"\nreason = "It is so."\n'


def record(folder: Path, *scenarios: str, kubelet: str = "reference") -> Path:
    """A record of a kubelet, as `run --record` keeps it."""
    (folder / "traces").mkdir(parents=True)
    for each in scenarios:
        trace = perform(every_scenario()[each], each, open_stage(Choice(kubelet)), "1.32").trace
        (folder / "traces" / f"{each}.jsonl").write_bytes(trace)
    return folder


def compared(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> Any:
    """The report for programs, which fits its schema."""
    text = resources.files("kubelet_conformance.reports").joinpath("compare.schema.json").read_text("utf-8")
    report = json.loads(in_process(capsys, "compare", *arguments, "--format", "json").out)
    validator: Any = Draft202012Validator(json.loads(text))

    validator.validate(report)
    return report


def steps(report: Any) -> Any:
    """Where the two sides part."""
    [only] = report["compared"]
    return only["steps"]


def test_a_kubelet_equals_itself(capsys: pytest.CaptureFixture[str]) -> None:
    """Played twice, it parts nowhere, and the exit code is 0."""
    ended = in_process(capsys, "compare", "reference", "reference", "--scenario", "hooks.*")

    assert ended.code == 0
    assert ended.out.startswith("EQUAL: 20 equal, 0 different, 0 known, of 20 scenarios compared")


def test_a_bug_is_shown_at_its_first_step(capsys: pytest.CaptureFixture[str]) -> None:
    """One that stops the containers one after another parts at the stop that came late, on both sides."""
    ended = in_process(capsys, "compare", "reference", BUG, "--scenario", NAME)

    assert ended.code == 1
    assert f"different  {NAME}: web/s3\n    reference\n" in ended.out
    assert ">     9.00  StopContainer web/s3#0 timeout 16\n" in ended.out
    assert ">    10.00  StopContainer web/s3#0 timeout 20\n" in ended.out


def test_a_record_is_compared_with_what_is_played(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Of a record only its own scenarios are played, as the version that it is of."""
    report = compared(capsys, "reference", record(tmp_path / "run", NAME, OTHER))

    assert steps(report) == {"equal": [OTHER, NAME], "different": [], "not_compared": {}, "stale": []}


def test_two_single_traces_are_compared(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Two traces need no names in common."""
    ours, theirs = (
        record(tmp_path / each.replace(":", "-"), NAME, kubelet=each) / "traces" / f"{NAME}.jsonl"
        for each in ("reference", BUG)
    )

    assert steps(compared(capsys, ours, ours))["equal"] == [NAME]
    [parting] = steps(compared(capsys, ours, theirs))["different"]
    assert [any(step["parts"] for step in side) for side in parting["steps"]] == [True, True]


def test_what_one_side_has_alone_is_told(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """A scenario that one record lacks is not compared."""
    one, other = record(tmp_path / "one", NAME, OTHER), record(tmp_path / "other", NAME)

    assert list(steps(compared(capsys, one, other))["not_compared"]) == [OTHER]


def test_a_known_difference_is_accepted_and_a_stale_one_told(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """A listed scenario may differ; one that does not is an error."""
    known = tmp_path / "known.toml"
    known.write_text(KNOWN.format(NAME))
    arguments = ("--scenario", NAME, "--known", known)
    differs = in_process(capsys, "compare", "reference", BUG, *arguments)
    equals = in_process(capsys, "compare", "reference", "reference", *arguments)

    assert (differs.code, equals.code) == (0, 1)
    assert f"known      {NAME}: version: It is so.\n" in differs.out
    assert f"stale      {NAME}: " in equals.out


@pytest.mark.parametrize(
    ("versions", "codes"), [('"1.32"', (0, 1)), ('"1.26", "1.32"', (0, 1)), ('"1.26"', (1, 0))]
)
def test_a_difference_is_known_in_the_versions_that_it_names(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, versions: str, codes: tuple[int, int]
) -> None:
    """An entry of another version neither explains a difference nor is stale."""
    known = tmp_path / "known.toml"
    known.write_text(KNOWN.format(NAME) + f"kubernetes = [{versions}]\n")
    arguments = ("--scenario", NAME, "--known", known, "--kubernetes", "1.32")
    differs = in_process(capsys, "compare", "reference", BUG, *arguments)
    equals = in_process(capsys, "compare", "reference", "reference", *arguments)

    assert (differs.code, equals.code) == codes


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "no [[difference]]"),
        (KNOWN.format("no.scenario"), "there is no scenario no.scenario"),
        (KNOWN.format(NAME).replace("version", "chance"), "cause is one of"),
        (KNOWN.format(NAME) + "other = 1\n", "an entry has the fields"),
        (KNOWN.format(NAME) + 'kubernetes = "1.36"\n', "kubernetes is a list of versions"),
        ("[[", "cannot be read"),
    ],
)
def test_a_file_that_explains_nothing_is_bad_input(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, text: str, problem: str
) -> None:
    """What is wrong with it is said, with the form of an entry."""
    known = tmp_path / "known.toml"
    known.write_text(text)
    ended = in_process(capsys, "compare", "reference", "reference", "--known", known)

    assert ended.code == 2
    assert problem in ended.err


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("reference", "."), "holds no traces"),
        (("reference", "missing.jsonl"), "missing.jsonl"),
        (("reference", "missing.tar.gz"), "missing.tar.gz"),
        (("reference",), "name two sides"),
        (("reference", "bug:NONE"), "NONE"),
        (("reference", "reference", "--scenario", "no.scenario"), "there is no scenario no.scenario"),
    ],
)
def test_what_cannot_be_compared_is_bad_input(
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: tuple[str, ...],
    problem: str,
) -> None:
    """A side that is neither a record nor a kubelet is named."""
    monkeypatch.chdir(tmp_path)
    ended = in_process(capsys, "compare", *arguments)

    assert ended.code == 2
    assert problem in ended.err
