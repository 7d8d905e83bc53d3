"""Judge the traces of runtime scenarios, by the contracts that bind a runtime."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from kubelet_conformance.contract.baseline import Baseline
from kubelet_conformance.contract.catalogue import row
from kubelet_conformance.contract.checking import Check, Judged, Trace, judge_file
from kubelet_conformance.contract.deferred_gc import deferred_gc
from kubelet_conformance.contract.definition import Contract
from kubelet_conformance.contract.verdicts import Outcome, Verdict
from kubelet_conformance.contracts import every_contract
from kubelet_conformance.run_record.played_run import Played
from kubelet_conformance.run_record.temporary_folder import TemporaryFolder
from kubelet_conformance.runtime_checks.running import CheckResult, run_scenarios
from kubelet_conformance.runtime_checks.scenario import RuntimeScenario
from kubelet_conformance.targets.runtime import Wanted


def the_runtimes() -> dict[str, Contract]:
    """The contracts that bind a runtime, by id."""
    return {each.id: each for each in every_contract().values() if each.row.addressee == "runtime"}


def scenarios_for(scenarios: Iterable[RuntimeScenario], contracts: Iterable[str]) -> list[RuntimeScenario]:
    """The runtime scenarios that exercise one of these contracts."""
    wanted = set(contracts)
    return [scenario for scenario in scenarios if not wanted.isdisjoint(scenario.contracts)]


@deferred_gc()
def judged(
    outcomes: Sequence[CheckResult], contracts: Sequence[Contract], baseline: Baseline | None, folder: Path
) -> tuple[Check, tuple[Played, ...]]:
    """The verdicts over all runtime scenarios; their traces are written into `folder`.

    A contract whose runtime scenarios were all impossible is not applicable, for that reason.
    """
    without = _impossible(outcomes, contracts)
    check = Check(contracts, baseline)
    played: list[Played] = []
    for each in outcomes:
        path = folder / f"{each.scenario.name}.jsonl"
        if each.trace:
            path.write_bytes(each.trace)
            chosen = [contract for contract in contracts if contract.id not in without]
            played.append(Played(each.scenario.name, judge_file(str(path), chosen), each.unmet, each.failed))
            check.add(played[-1].judged)
        elif each.failed:
            nothing = Judged(Trace(str(path), None, None, None, each.scenario.name, 0), {}, ())
            played.append(Played(each.scenario.name, nothing, each.unmet, each.failed))
    for contract, reason in without.items():
        check.results[contract].add(Outcome(Verdict.NOT_APPLICABLE, reason=reason), "unknown")
    return check, tuple(played)


def _impossible(outcomes: Sequence[CheckResult], contracts: Sequence[Contract]) -> dict[str, str]:
    """By contract, why no runtime scenario could exercise it."""
    reasons: dict[str, str] = {}
    for contract in contracts:
        of_it = [each for each in outcomes if contract.id in each.scenario.contracts]
        if of_it and all(each.impossible for each in of_it):
            reasons[row(contract.id).id] = "; ".join(dict.fromkeys(each.impossible for each in of_it))
    return reasons


def run_in_process(
    runtime: str, scenarios: Iterable[RuntimeScenario], kubernetes: str
) -> dict[str, tuple[bytes, Played]]:
    """Play runtime scenarios on a fake in process: by title, each one's trace and its judgement."""
    run = run_scenarios(Wanted(runtime, "", "run", 0), scenarios, kubernetes)
    outcomes = {each.scenario.name: each for each in run.outcomes}
    with TemporaryFolder() as folder:
        _, played = judged(run.outcomes, list(the_runtimes().values()), None, Path(folder))
    return {outcomes[each.scenario].scenario.title: (outcomes[each.scenario].trace, each) for each in played}
