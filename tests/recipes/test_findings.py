"""The findings are about what there is, and the page of results says what its records do."""

import re
import tarfile
from pathlib import Path

import pytest
from results import page

from kubelet_conformance.contract.catalogue import rows
from kubelet_conformance.contract.checking import judge_file
from kubelet_conformance.contract.verdicts import Verdict
from kubelet_conformance.contracts import every_contract
from kubelet_conformance.run_record.merging import totals
from kubelet_conformance.run_record.model import ContractResult, Kind, Proof, Run, Target
from kubelet_conformance.scenarios import every_scenario
from kubelet_reference.config.manifest import read_pod

DOCS = Path(__file__).parents[2] / "docs"
FINDINGS = sorted(each for each in (DOCS / "findings").glob("*.md") if each.name != "index.md")


@pytest.mark.parametrize("path", FINDINGS, ids=lambda path: path.stem)
def test_finding_can_be_seen_as_it_says(path: Path) -> None:
    """Its manifests are such as a kubelet takes, and its scenarios and contracts are there."""
    text = path.read_text(encoding="utf-8")
    manifests = re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)
    [scenarios] = re.findall(r"^\| scenario \| (.*) \|$", text, re.MULTILINE)
    [contracts] = re.findall(r"^\| contracts? \| (.*) \|$", text, re.MULTILINE)

    assert [read_pod(each.encode()).metadata is not None for each in manifests]
    assert set(re.findall(r"`([\w.]+)`", scenarios)) <= set(every_scenario())
    assert set(re.findall(r"[A-Z]+-\d+", contracts)) <= set(rows())
    assert f"({path.name})" in (DOCS / "findings" / "index.md").read_text(encoding="utf-8")
    assert {"What was done", "What happened", "What is expected", "See it"} == set(
        re.findall(r"^## (.*)$", text, re.MULTILINE)
    )


def test_traces_show_their_findings(tmp_path: Path) -> None:
    """The traces that the pages name are those of the pack, and each breaks a contract of its page."""
    with tarfile.open(DOCS / "findings" / "traces.tar.xz") as pack:
        pack.extractall(tmp_path, filter="data")
    kept = {each.stem: each for each in (tmp_path / "traces").iterdir()}
    named = {
        path.stem: re.findall(r"^\| contracts? \| (.*) \|$", path.read_text(encoding="utf-8"), re.MULTILINE)[
            0
        ]
        for path in FINDINGS
        if f"`traces/{path.stem}.jsonl`" in path.read_text(encoding="utf-8")
    }

    assert named.keys() == kept.keys()
    for name, contracts in named.items():
        judges = [every_contract()[each] for each in re.findall(r"[A-Z]+-\d+", contracts)]
        outcomes = judge_file(str(kept[name]), judges).outcomes.values()
        assert Verdict.BROKEN in {each.verdict for each in outcomes}, name


def run_of(*contracts: ContractResult) -> Run:
    """A run with these results."""
    return Run(kind=Kind.RUN, target=Target(), totals=totals(contracts), contracts=contracts)


def result(contract: str, verdict: Verdict, reason: str = "") -> ContractResult:
    """The verdict on one contract, with what a baseline says of its break."""
    proofs = (Proof(trace="t", seq=(1,), text="x", deviation=reason),) if reason else ()
    area = contract.partition("-")[0]
    return ContractResult(
        id=contract, area=area, level="MUST", verdict=verdict, activations=1, evidence=proofs
    )


def test_page_of_results_has_a_column_for_each_record() -> None:
    """A contract has its verdict in each record, and a deviation its reason with a link to its issue."""
    reason = "It does so: kubernetes/kubernetes#1"
    one = run_of(result("SYNC-01", Verdict.KEPT), result("SYNC-02", Verdict.KEPT))
    other = run_of(result("SYNC-01", Verdict.KNOWN_DEVIATION, reason), result("CRI-01", Verdict.BROKEN))
    lines = page({"reference": one, "1.36.2": other}).splitlines()

    assert "python docs/results.py reference=RECORD 1.36.2=RECORD" in lines
    assert "| 1.36.2 | 0 | 1 | 1 | 0 |" in lines
    assert (
        "| 1.36.2 | SYNC-01 | It does so: "
        "[kubernetes/kubernetes#1](https://github.com/kubernetes/kubernetes/issues/1) |"
    ) in lines
    assert "| SYNC-01 | MUST | kept | [deviates](#deviations) |" in lines
    assert "| CRI-01 | MUST |  | **broken** |" in lines
