"""The report for programs: exactly the published form."""

import json
from importlib import resources
from pathlib import Path
from typing import Any

import msgspec
import pytest
from jsonschema import Draft202012Validator
from lines import HEADER, end, trace
from trace_builder import TraceBuilder

from kubelet_conformance.contract.baseline import Baseline, clause_names
from kubelet_conformance.contract.checking import Check, judge_file
from kubelet_conformance.contract.verdicts import Verdict
from kubelet_conformance.contracts import every_contract
from kubelet_conformance.run_record.files import as_json
from kubelet_conformance.run_record.results import Scoring, check_result
from kubelet_conformance.trace.format.errors import TraceError

SCHEMA: dict[str, Any] = json.loads(
    resources.files("kubelet_conformance.run_record").joinpath("run.schema.json").read_text("utf-8")
)
VALIDATOR: Any = Draft202012Validator(SCHEMA)


def check_report(check: Check, *, strict: bool = False) -> dict[str, Any]:
    """The report for programs of a check."""
    report: dict[str, Any] = json.loads(as_json(msgspec.to_builtins(check_result(check, Scoring(strict)))))
    return report


def checked(path: Path, s: TraceBuilder, *contracts: str, baseline: Baseline | None = None) -> Check:
    """A check of one trace by these contracts, or all."""
    path.write_bytes(s.text())
    every = every_contract()
    check = Check([every[each] for each in contracts] if contracts else every.values(), baseline)
    check.add(judge_file(str(path), check.contracts))
    return check


@pytest.fixture
def broken() -> TraceBuilder:
    """A second sandbox is run while the first stands."""
    s = TraceBuilder(scenario="two", runtime="containerd 2.1")
    web = s.pod()
    s.run_sandbox(web)
    s.wait(1).run_sandbox(web, attempt=1)
    return s


def test_form_is_exact(tmp_path: Path, broken: TraceBuilder) -> None:
    """Every promised field is there, with the values of the run."""
    path = tmp_path / "t.jsonl"
    found = check_report(checked(path, broken, "SANDBOX-04"))
    [contract] = found["contracts"]
    [evidence] = contract["evidence"]

    assert found["schema"] == 3
    assert found["traces"] == [
        {
            "path": str(path),
            "kubernetes": "1.32",
            "kubernetes_in_header": "1.32",
            "runtime": "containerd 2.1",
            "scenario": "two",
            "records": len(broken.records) + 1,
            "seconds": 3601.008,
            "truncated_after_line": None,
            "stalls": 0,
            "stalled_seconds": 0,
        }
    ]
    assert found["totals"] == {
        "kept": 0,
        "broken": 1,
        "known_deviation": 0,
        "not_exercised": 0,
        "not_applicable": 0,
        "error": 0,
    }
    assert {
        key: contract[key] for key in ("id", "level", "verdict", "activations", "breaks", "versions")
    } == {
        "id": "SANDBOX-04",
        "level": "MUST",
        "verdict": "broken",
        "activations": 1,
        "breaks": 1,
        "versions": {"1.32": "broken"},
    }
    assert (evidence["trace"], evidence["scenario"], evidence["deviation"]) == (str(path), "two", None)
    assert len(evidence["seq"]) == 2
    assert "was not stopped" in evidence["text"]
    assert found["exit_code"] == 1


def test_every_report_is_valid(tmp_path: Path, broken: TraceBuilder) -> None:
    """Reports of good, broken, empty and unreadable inputs, with baseline and waits, fit the schema."""
    broken.record("expect", contract="SANDBOX-01", awaited="x", met=False)
    known = tmp_path / "known.toml"
    clause = clause_names(every_contract()["SANDBOX-01"])[0]
    known.write_text(f'[[deviation]]\nid = "SANDBOX-01"\nclause = "{clause}"\nreason = "r"\n')
    baseline = Baseline.read(str(known), every_contract())
    whole = checked(tmp_path / "t.jsonl", broken, baseline=baseline)
    whole.errors.append(TraceError("x", 3, "wrong", "mend it"))
    whole.errors.append(TraceError("y", None, "gone", "name another"))
    reports = [
        check_report(check, strict=True) for check in (whole, Check(every_contract().values()), Check([]))
    ]

    Draft202012Validator.check_schema(SCHEMA)
    for report in reports:
        VALIDATOR.validate(json.loads(as_json(report)))
    assert reports[0]["baseline"]["stale"]
    assert reports[0]["waits"]
    assert [each["line"] for each in reports[0]["unreadable"]] == [3, None]
    assert [report["exit_code"] for report in reports] == [2, 3, 3]


WRONG: dict[str, dict[str, Any]] = {
    "schema": {"schema": 4},
    "a total is missing": {"totals": {"kept": 1}},
    "unknown verdict": {"totals": {"passed": 1}},
    "contract without verdict": {"contracts": [{"id": "TERM-01", "level": "MUST"}]},
}


@pytest.mark.parametrize("change", WRONG.values(), ids=WRONG)
def test_schema_refuses_other_forms(change: dict[str, Any]) -> None:
    """The schema is no empty promise."""
    right = check_report(Check([]))

    assert VALIDATOR.is_valid(right)
    assert not VALIDATOR.is_valid(right | change)


def test_contracts_and_totals_agree(tmp_path: Path) -> None:
    """Each judged contract is there once, in the order of the catalogue, and the totals count them."""
    found = check_report(checked(tmp_path / "t.jsonl", TraceBuilder()))
    verdicts = [each["verdict"] for each in found["contracts"]]

    assert {each["id"] for each in found["contracts"]} == set(every_contract())
    assert found["totals"] == {verdict.value: verdicts.count(verdict.value) for verdict in Verdict}
    assert sum(found["totals"].values()) == len(verdicts)


def test_text_is_plain_ascii(tmp_path: Path) -> None:
    """Whatever a trace says comes out as escapes of JSON, and back as it was."""
    odd = "\x1b[31m\u202eé\x00\u2028"
    path = tmp_path / "t.jsonl"
    path.write_bytes(trace(end(1), header=HEADER | {"runtime": odd}))
    check = Check([])
    check.add(judge_file(str(path), []))
    text = as_json(check_report(check))

    assert text.isascii()
    assert text.replace("\n", "").isprintable()
    assert json.loads(text)["traces"][0]["runtime"] == odd
