"""What contracts rest on: gathered by playing, and reported on pages of the guide."""

import re
from dataclasses import replace

import pytest
from catalogue_pages import AREAS, pages

from kubelet_conformance.campaigns.coverage import Gathered, Witness, gather
from kubelet_conformance.campaigns.coverage.report import coverage_report
from kubelet_conformance.contract.catalogue import rows
from kubelet_conformance.contracts import every_contract
from kubelet_conformance.reports.catalogue import Fate, entries
from kubelet_conformance.targets.bugs import bug_card, bug_ids

EXCLUDED_MAX = 0.05
"""The part of the rules on kubelets that may be left out."""


@pytest.fixture(scope="module")
def gathered() -> dict[str, Gathered]:
    """What every contract rests on, once all scenarios were played."""
    return {each.entry.row.id: each for each in gather()}


def covered(contract: str, *, bugs: tuple[str, ...] = (), **activations: int) -> Gathered:
    """A contract with these witnesses and bugs."""
    [entry] = [each for each in entries(every_contract()) if each.row.id == contract]
    witnesses = tuple(Witness(name, count) for name, count in activations.items())
    return Gathered(entry, witnesses, sum(activations.values()), bugs)


def test_gaps_are_named() -> None:
    """A contract may lack a witness, one that exercises it, or a bug; one that is left out lacks nothing."""
    whole = covered("SANDBOX-01", bugs=("K8S-1",), one=3)

    assert whole.gaps == ()
    assert replace(whole, bugs=()).gaps == ("no bug",)
    assert covered("SANDBOX-01", bugs=("K8S-1",)).gaps == ("no witness",)
    assert covered("SANDBOX-01", bugs=("K8S-1",), one=3, idle=0).gaps == ("not exercised by idle",)
    assert covered("LOOP-02").gaps == ()


@pytest.mark.slow
def test_all_is_gathered(gathered: dict[str, Gathered]) -> None:
    """Each row of the catalogue is there, with what scenarios and bugs declare of it."""
    sandbox = gathered["SANDBOX-02"]

    assert list(gathered) == list(rows())
    assert "sandbox.killed_sandbox_is_replaced" in [each.name for each in sandbox.witnesses]
    assert sandbox.activations >= sum(each.activations for each in sandbox.witnesses) > 0
    assert sandbox.bugs
    assert any(
        each.name.startswith("runtime: ") and each.activations for each in gathered["CRI-05"].witnesses
    )


@pytest.mark.slow
def test_every_contract_has_what_it_needs(gathered: dict[str, Gathered]) -> None:
    """Each implemented contract has witnesses that all put it to the test, and a bug that breaks it."""
    assert {name: each.gaps for name, each in gathered.items() if each.gaps} == {}


@pytest.mark.slow
def test_few_rules_are_left_out(gathered: dict[str, Gathered]) -> None:
    """Less than a twentieth of the rules on kubelets is excluded, each with a reason."""
    bound = [each.entry for each in gathered.values() if each.entry.row.addressee != "runtime"]
    left_out = [each for each in bound if each.fate is Fate.EXCLUDED]

    assert len(left_out) < EXCLUDED_MAX * len(bound)
    assert [each.row.id for each in left_out if not each.reason] == []


@pytest.mark.slow
def test_pages_have_an_anchor_for_each_id(gathered: dict[str, Gathered]) -> None:
    """Every rule has its heading on the page of its area, and every link of the tables leads to one."""
    written = pages(list(gathered.values()), map(bug_card, bug_ids()))
    anchors = {
        f"{path}#{name.lower()}"
        for path, text in written.items()
        for name in re.findall(r"^## ([A-Z]+-\d+)$", text, re.MULTILINE)
    }
    links = {
        link for path in ("coverage.md", "bugs.md") for link in re.findall(r"\]\((cat[^)]*)\)", written[path])
    }

    assert anchors == {f"catalogue/{name.partition('-')[0].lower()}.md#{name.lower()}" for name in rows()}
    assert links == anchors
    assert set(AREAS) == {row.area for row in rows().values()}


def test_report_for_programs() -> None:
    """The report counts fates and gaps, and gives each witness with how often it exercises the contract."""
    report = coverage_report([covered("SANDBOX-01", one=3), covered("LOOP-02")])

    assert report["totals"] == {
        "contracts": 2,
        "implemented": 1,
        "planned": 0,
        "excluded": 1,
        "with_gaps": 1,
    }
    assert report["contracts"][0]["witnesses"] == {"one": 3}
    assert report["contracts"][0]["gaps"] == ["no bug"]
