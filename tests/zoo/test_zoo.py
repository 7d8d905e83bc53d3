"""The zoo: every bug is caught by what it says it breaks, and by little else."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest
from sampling import sampled

from kubelet_bugs import Bug, every_bug, find_bug
from kubelet_conformance.contract.checking import Check, Judged
from kubelet_conformance.contract.deferred_gc import deferred_gc
from kubelet_conformance.contract.verdicts import Verdict
from kubelet_conformance.contracts import every_contract
from kubelet_conformance.node import scenario_of
from kubelet_conformance.plugin.play import judge, perform
from kubelet_conformance.reports.trace_text.causes import groups_of
from kubelet_conformance.run_record.model import ContractResult
from kubelet_conformance.run_record.played_run import Played
from kubelet_conformance.run_record.results import Scoring, check_result
from kubelet_conformance.runtime_checks.judging import run_in_process, scenarios_for, the_runtimes
from kubelet_conformance.runtime_checks.scenarios import every_runtime_scenario
from kubelet_conformance.scenarios import every_scenario
from kubelet_conformance.targets.choice import Choice
from kubelet_conformance.targets.opening import open_stage
from kubelet_conformance.targets.stage import Stage

MOST_BROKEN = 15
"""How many contracts one bug may break on the witnesses of those that it declares."""
SHORT_WAIT = 60.0
"""How long a wait takes at first, in seconds: most of what times out is broken long before."""


@dataclass(frozen=True, slots=True)
class Life:
    """One scenario played once: what it breaks, what timed out, and how the suite failed in it.

    `clauses` are those broken, each as the contract's id and, after a space, the clause's name if it has one.
    """

    broken: frozenset[str]
    clauses: frozenset[str]
    unmet: str
    failed: str
    judged: Judged

    @classmethod
    def of(cls, played: Played) -> Life:
        """What its trace shows."""
        outcomes = played.judged.outcomes.items()
        clauses = {
            f"{each} {clause}".strip() for each, found in outcomes for clause, _ in found.broken_clauses
        }
        return cls(frozenset(played.broken), frozenset(clauses), played.unmet, played.failed, played.judged)


@cache
def broken_clauses() -> dict[str, list[str]]:
    """The clauses that each bug is known to break, in the order of their ids."""
    path = Path(__file__).with_name("broken_clauses.toml")
    rows: dict[str, list[str]] = tomllib.loads(path.read_text(encoding="utf-8"))
    return rows


@cache
def stage(choice: Choice) -> Stage:
    """A stage, made once."""
    return open_stage(choice)


@deferred_gc()
def lived(choice: Choice, scenario: str, wait: float = math.inf) -> Life:
    """Play a scenario on a kubelet and a runtime, no wait of it longer, and judge it by every contract."""
    body = every_scenario()[scenario]
    version = scenario_of(body).nearest(choice.kubernetes)
    done = perform(body, scenario, stage(choice), version, wait_seconds_max=wait)
    judged, wrong = judge(Path(scenario), every_contract().values(), scenario, done.trace)
    return Life.of(Played(scenario, judged, done.unmet, wrong or done.failed))


def lives_of(bug: Bug) -> dict[str, Life]:
    """Play the witnesses of what a bug declares; anew with all their time where short waits hid a clause."""
    choice = wrong_choice(bug)
    wrong = {name: lived(choice, name, SHORT_WAIT) for name in witnesses(bug)}
    direct = called_directly(bug) if bug.is_of_runtimes else {}
    if clauses_of(wrong | direct) != broken_clauses()[bug.id]:
        wrong |= {name: lived(choice, name) for name, life in wrong.items() if life.unmet}
    return wrong | direct


def clauses_of(lives: Mapping[str, Life]) -> list[str]:
    """The clauses that are broken in any of these, in order."""
    return sorted(frozenset[str]().union(*(life.clauses for life in lives.values())))


def called_directly(bug: Bug) -> dict[str, Life]:
    """Run the runtime scenarios on the contracts that a bug of runtimes declares."""
    scenarios = scenarios_for(every_runtime_scenario(), bug.breaks)
    found = run_in_process(f"bug:{bug.id}", scenarios, bug.kubernetes)
    return {name: Life.of(played) for name, (_, played) in found.items()}


def likeliest_causes(lives: Iterable[Life]) -> list[ContractResult]:
    """The contracts that a report names first, one for each group of those that are broken."""
    check = Check(every_contract().values())
    for life in lives:
        check.add(life.judged)
    run = check_result(check, Scoring())
    return [group.contracts[0] for group in groups_of(run.having(Verdict.BROKEN), run)]


def wrong_choice(bug: Bug) -> Choice:
    """The kubelet, or the runtime, with the bug."""
    name = f"bug:{bug.id}"
    if bug.is_of_runtimes:
        return Choice(runtime=name, kubernetes=bug.kubernetes)
    return Choice(kubelet=name, kubernetes=bug.kubernetes)


def witnesses(bug: Bug) -> list[str]:
    """The scenarios that provoke a contract which the bug declares."""
    declared = {name: scenario_of(body) for name, body in every_scenario().items()}
    return [name for name, scenario in declared.items() if set(scenario.witnesses) & set(bug.breaks)]


@pytest.mark.slow
@pytest.mark.parametrize("bug", sampled(every_bug().values(), 4), ids=lambda bug: bug.id)
def test_bug_is_caught_by_what_it_declares(bug: Bug) -> None:
    """On the witnesses a bug breaks each contract that it declares, few others, and nothing in the suite.

    Of a bug of runtimes a report names a contract of the runtime as the likeliest cause of all else.
    The right kubelet and runtime break nothing in any scenario; see tests/scenarios and tests/runtime_checks.
    """
    wrong = lives_of(bug)
    broken = frozenset[str]().union(*(life.broken for life in wrong.values()))

    assert not {name: life.failed for name, life in wrong.items() if life.failed}
    assert set(bug.breaks) <= broken
    assert len(broken) <= MOST_BROKEN, sorted(broken)
    assert clauses_of(wrong) == broken_clauses()[bug.id]
    if bug.is_of_runtimes:
        blamed = [each.id for each in likeliest_causes(wrong.values()) if not each.binds_runtime]
        assert not blamed


def test_every_bug_declares_what_is_there() -> None:
    """Bugs declare contracts that have judges, with a scenario for each, or a runtime scenario."""
    witnessed = {each for body in every_scenario().values() for each in scenario_of(body).witnesses}
    called = {
        each for scenario in every_runtime_scenario() for each in scenario.contracts
    } & the_runtimes().keys()
    for bug in every_bug().values():
        provoked = witnessed | called if bug.is_of_runtimes else witnessed

        assert bug.breaks, bug.id
        assert set(bug.breaks) <= every_contract().keys() & provoked, bug.id


def test_bugs_are_found_by_any_of_their_names() -> None:
    """No name means two bugs, and each leads to its own."""
    for bug in every_bug().values():
        assert all(find_bug(name) is bug for name in (bug.id, *bug.aliases)), bug.id


def test_unknown_bug_is_met_with_those_that_resemble_it() -> None:
    """A mistyped name is answered by the right one."""
    with pytest.raises(LookupError, match="K8S-52641"):
        find_bug("K8S-52614")


def test_titles_are_sentences() -> None:
    """Each title says in one sentence what is wrong."""
    assert all(bug.title[0].isupper() and bug.title.endswith(".") for bug in every_bug().values())
