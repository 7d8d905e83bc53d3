"""Every contract is put to the test on the reference by a scenario that says so, and kept."""

import json
import re
from collections import Counter
from itertools import islice
from pathlib import Path

import msgspec
import pytest
from catalogue_pages import AREAS, pages
from command import in_process
from sampling import sampled
from shared_plays import SharedPlays

from kubelet_conformance.campaigns.coverage import (
    Coverage,
    Gathered,
    coverage_of,
    kept_counts,
    runtime_counts,
)
from kubelet_conformance.contract.catalogue import rows
from kubelet_conformance.contract.checking import Check
from kubelet_conformance.contracts import every_contract
from kubelet_conformance.node import scenario_of
from kubelet_conformance.reports.catalogue import Fate
from kubelet_conformance.run_record.results import Scoring, check_result
from kubelet_conformance.scenarios import every_scenario
from kubelet_conformance.targets.bugs import bug_card, bug_ids

pytestmark = pytest.mark.slow

EXCLUDED_MAX = 0.05
"""The part of the rules on kubelets that may be left out."""
FEWEST_SCENARIOS = 120
MANY_ROWS = 150
"""The decision tables have more."""
PARTS = 5
"""The traces that are checked again are of so many parts."""
VERSIONS = ["", *(f"1.{minor}" for minor in range(24, 37))]
"""What a scenario is meant for, mostly 1.32; the campaigns play it as each version."""


@pytest.mark.parametrize("kubernetes", sampled(VERSIONS, len(VERSIONS)))
def test_reference_keeps_everything(plays: SharedPlays, kubernetes: str) -> None:
    """No scenario makes the reference break a contract as any version, or times out in a wait."""
    ill = [
        f"{name}: {' '.join(one.broken)} {one.unmet.splitlines()[:1] or one.failed.splitlines()[-1:]}"
        for name, (_, one, _) in plays.every(kubernetes).items()
        if one.broken or one.unmet or one.failed or one.died
    ]

    assert ill == []


@pytest.mark.parametrize("part", sampled(range(PARTS), PARTS))
def test_check_says_what_was_said(
    capsys: pytest.CaptureFixture[str], plays: SharedPlays, tmp_path: Path, part: int
) -> None:
    """The command `check` comes to the same verdicts on the traces, for the same reasons."""
    done = Check(every_contract().values())
    for name, one in islice(sorted(plays.every().items()), part, None, PARTS):
        done.add(one.played.judged)
        (tmp_path / one.trace.name).symlink_to(one.trace)
        assert one.trace.stem == name
    ended = in_process(capsys, "check", tmp_path, "--format", "json")

    found = msgspec.json.encode(check_result(done, Scoring()).contracts)
    assert json.loads(ended.out)["contracts"] == json.loads(found)


@pytest.fixture(scope="module")
def coverage(plays: SharedPlays) -> Coverage:
    """What all scenarios together come to."""
    played = plays.every()
    counts = {name: kept_counts(one.played) for name, one in played.items()}
    decided = Counter[str]()
    for one in played.values():
        decided.update(one.decided)
    return coverage_of(runtime_counts() | counts, decided)


@pytest.fixture(scope="module")
def gathered(coverage: Coverage) -> dict[str, Gathered]:
    """What every contract rests on."""
    return {each.entry.row.id: each for each in coverage.contracts}


def test_every_row_of_a_decision_table_is_taken(coverage: Coverage) -> None:
    """Each row, in the reference and in the suite, decides in some scenario."""
    assert coverage.untaken == ()
    assert sum(coverage.decisions.values()) > len(coverage.decisions) > MANY_ROWS


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


def test_every_contract_has_what_it_needs(gathered: dict[str, Gathered]) -> None:
    """Each implemented contract has witnesses that all put it to the test, and a bug that breaks it."""
    assert {name: each.gaps for name, each in gathered.items() if each.gaps} == {}


def test_few_rules_are_left_out(gathered: dict[str, Gathered]) -> None:
    """Less than a twentieth of the rules on kubelets is excluded, each with a reason."""
    bound = [each.entry for each in gathered.values() if each.entry.row.addressee != "runtime"]
    left_out = [each for each in bound if each.fate is Fate.EXCLUDED]

    assert len(left_out) < EXCLUDED_MAX * len(bound)
    assert [each.row.id for each in left_out if not each.reason] == []


def test_pages_have_an_anchor_for_each_id(gathered: dict[str, Gathered]) -> None:
    """Every rule has its heading on the page of its area, and every link of the tables leads to one."""
    written = pages(list(gathered.values()), map(bug_card, bug_ids()))
    anchors = {
        f"{path}#{name.lower()}"
        for path, text in written.items()
        for name in re.findall(r"^## ([A-Z]+-\d+): .+ \{ #[a-z]+-\d+ \}$", text, re.MULTILINE)
    }
    links = {
        link for path in ("coverage.md", "bugs.md") for link in re.findall(r"\]\((cat[^)]*)\)", written[path])
    }

    assert anchors == {f"catalogue/{name.partition('-')[0].lower()}.md#{name.lower()}" for name in rows()}
    assert links == anchors
    assert set(AREAS) == {row.area for row in rows().values()}


def test_witnesses_are_contracts() -> None:
    """A scenario declares ids of the catalogue only."""
    unknown = {
        name: [each for each in scenario_of(scenario).witnesses if each not in rows()]
        for name, scenario in every_scenario().items()
    }
    assert {name: ids for name, ids in unknown.items() if ids} == {}


def test_scenarios_say_what_they_hold() -> None:
    """There are enough scenarios, and each says in its docstring which truth is under test."""
    silent = [name for name, scenario in every_scenario().items() if not (scenario.__doc__ or "").strip()]

    assert silent == []
    assert len(every_scenario()) >= FEWEST_SCENARIOS
