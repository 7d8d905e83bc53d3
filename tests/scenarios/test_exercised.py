"""Every contract is put to the test on the reference by a scenario that says so, and kept."""

import json
from pathlib import Path

import msgspec
import pytest
from command import in_process

from kubelet_conformance.contract.checking import Check
from kubelet_conformance.contract.verdicts import Verdict
from kubelet_conformance.contracts import every_contract
from kubelet_conformance.node import scenario_of
from kubelet_conformance.plugin.play import play
from kubelet_conformance.run_record.played_run import Played
from kubelet_conformance.run_record.results import Scoring, check_result
from kubelet_conformance.runtime_checks.scenarios import every_runtime_scenario
from kubelet_conformance.scenarios import every_scenario
from kubelet_conformance.targets.choice import Choice
from kubelet_conformance.targets.opening import open_stage

pytestmark = pytest.mark.slow

OLD = "1.26"
"""The version that keeps what the newest does not have any more."""
FEWEST_SCENARIOS = 120
CALLED = frozenset(each for scenario in every_runtime_scenario() for each in scenario.contracts)
"""What the scenarios exercise that call a runtime directly; see tests/runtime_checks."""


def _played(folder: Path, kubernetes: str) -> dict[str, Played]:
    stage = open_stage(Choice(kubernetes=kubernetes))
    contracts = list(every_contract().values())
    return {
        name: play(scenario, name, stage, contracts, folder / f"{name}.jsonl", kubernetes)
        for name, scenario in every_scenario().items()
        if not kubernetes or scenario_of(scenario).is_meant_for(kubernetes)
    }


@pytest.fixture(scope="module")
def newest(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Played]:
    """What came of every scenario on the reference as the version that it is meant for, 1.32 mostly."""
    return _played(tmp_path_factory.mktemp("newest"), "")


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Played]:
    """What came of every scenario on the reference as Kubernetes 1.26."""
    return _played(tmp_path_factory.mktemp("old"), OLD)


def _ill(played: dict[str, Played]) -> list[str]:
    return [
        f"{name}: {' '.join(one.broken)} {one.unmet.splitlines()[:1] or one.failed.splitlines()[-1:]}"
        for name, one in played.items()
        if one.broken or one.unmet or one.failed
    ]


def test_reference_keeps_everything(newest: dict[str, Played]) -> None:
    """No scenario makes the reference break a contract, or times out in a wait."""
    assert _ill(newest) == []


def test_check_says_what_was_said(capsys: pytest.CaptureFixture[str], newest: dict[str, Played]) -> None:
    """The command `check` comes to the same verdicts on the traces, for the same reasons."""
    done = Check(every_contract().values())
    for _, one in sorted(newest.items()):
        done.add(one.judged)
    ended = in_process(capsys, "check", Path(done.traces[0].path).parent, "--format", "json")

    found = msgspec.json.encode(check_result(done, Scoring()).contracts)
    assert json.loads(ended.out)["contracts"] == json.loads(found)


def test_old_reference_keeps_everything(old: dict[str, Played]) -> None:
    """No scenario makes the reference break a contract as Kubernetes 1.26, or times out in a wait."""
    assert _ill(old) == []


@pytest.mark.parametrize("minor", [24, 25, *range(27, 32), *range(33, 37)])
def test_reference_keeps_everything_as_any_version(tmp_path: Path, minor: int) -> None:
    """As any other version, too, the reference breaks no contract, and no wait of a scenario times out."""
    assert _ill(_played(tmp_path, f"1.{minor}")) == []


def test_every_contract_has_a_witness(newest: dict[str, Played], old: dict[str, Played]) -> None:
    """Each contract is declared by a scenario that exercises it, and kept there."""
    witnessed = {
        contract
        for played in (newest, old)
        for name, one in played.items()
        for contract in scenario_of(every_scenario()[name]).witnesses
        if contract in one.judged.outcomes and one.judged.outcomes[contract].verdict is Verdict.KEPT
    }

    missing = [each.id for each in every_contract().values() if each.id not in witnessed | CALLED]
    assert missing == []


def test_witnesses_are_contracts() -> None:
    """A scenario declares ids of the catalogue only."""
    from kubelet_conformance.contract.catalogue import rows  # noqa: PLC0415 - for this test alone

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
