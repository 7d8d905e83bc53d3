"""The runtime scenarios on the fake in process exercise every contract of a runtime, and it keeps all."""

import io
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from kubelet_bugs import every_bug
from kubelet_conformance.contract.catalogue import rows
from kubelet_conformance.contract.checking import Check
from kubelet_conformance.contract.verdicts import Verdict
from kubelet_conformance.run_record.played_run import Played
from kubelet_conformance.runtime_checks.judging import judged, scenarios_for, the_runtimes
from kubelet_conformance.runtime_checks.running import RuntimeRun, run_scenarios
from kubelet_conformance.runtime_checks.scenarios import every_runtime_scenario
from kubelet_conformance.targets.runtime import Wanted
from kubelet_conformance.trace.format.header import Channels
from kubelet_conformance.trace.format.reader import Reader
from kubelet_conformance.trace.format.records import Call, Kubelet, PodChange

RUNTIME_BUGS = sorted(bug.id for bug in every_bug().values() if bug.is_of_runtimes)


def results_on(target: str) -> tuple[RuntimeRun, Check, tuple[Played, ...], dict[str, bytes]]:
    """All runtime scenarios run on a target in process, and their verdicts."""
    run = run_scenarios(Wanted(target, "", "run", 0), every_runtime_scenario(), "1.32")
    with TemporaryDirectory() as folder:
        check, played = judged(run.outcomes, list(the_runtimes().values()), None, Path(folder))
    return run, check, played, {each.scenario.name: each.trace for each in run.outcomes}


@cache
def on_the_fake() -> tuple[RuntimeRun, Check, tuple[Played, ...], dict[str, bytes]]:
    """The right runtime."""
    return results_on("fake")


def test_every_contract_of_a_runtime_is_exercised_and_kept() -> None:
    """Each CRI contract that binds a runtime and is not excluded has scenarios, which the fake keeps."""
    judging = {each.id for each in rows().values() if each.addressee == "runtime"}
    _, check, played, _ = on_the_fake()
    others = {key: one.outcome.verdict for key, one in check.results.items()}

    assert set(others) == {each for each in judging if not rows()[each].excluded}
    assert set(others.values()) == {Verdict.KEPT}
    assert [(each.scenario, each.unmet, each.failed) for each in played if each.unmet or each.failed] == []


@pytest.mark.parametrize("name", [scenario.name for scenario in every_runtime_scenario()])
def test_a_scenario_exercises_what_it_declares(name: str) -> None:
    """No scenario declares a contract that its trace does not exercise."""
    scenario = next(each for each in every_runtime_scenario() if each.name == name)
    played = next(each for each in on_the_fake()[2] if each.scenario == name)
    idle = [each for each in scenario.contracts if not played.judged.outcomes[each].activations]

    assert not idle
    assert scenario.run.__doc__


def test_scenarios_have_names_of_their_own() -> None:
    """A name tells one scenario, and so its trace, from all others."""
    names = [scenario.name for scenario in every_runtime_scenario()]

    assert len(set(names)) == len(names)


def test_nothing_is_left() -> None:
    """What a scenario made is gone at its end; the last lists of each trace are empty."""
    run, _, _, traces = on_the_fake()

    assert run.left == []
    for name, trace in traces.items():
        world = _end_of(trace, name)
        assert world == {"ListContainers": b"{}", "ListPodSandbox": b"{}"}, name


def _end_of(trace: bytes, name: str) -> dict[str, bytes]:
    """The last full answers of both lists."""
    last: dict[str, bytes] = {}
    with Reader(name, io.BytesIO(trace)) as reader:
        for record in reader:
            response = getattr(record, "response", None)
            rpc = getattr(getattr(record, "call", None), "rpc", "")
            if rpc in {"ListContainers", "ListPodSandbox"} and response is not None:
                last[rpc] = bytes(response.raw)
    return last


def test_a_trace_has_calls_and_no_kubelet() -> None:
    """The header says what the record can be trusted for: all calls, and pods that nobody wanted."""
    trace = on_the_fake()[3]["a_new_sandbox_is_ready"]
    with Reader("scenario", io.BytesIO(trace)) as reader:
        kinds = {type(record) for record in reader}
        header = reader.header

    assert (header.channels, header.from_start, header.clock) == (Channels(cri="full"), True, "virtual")
    assert (header.runtime, header.scenario) == ("fake 1.0.0", "a_new_sandbox_is_ready")
    assert Call in kinds
    assert not kinds & {Kubelet, PodChange}


def test_a_run_is_the_same_every_time() -> None:
    """In process all is on virtual time: a second run gives the same bytes."""
    assert results_on("fake")[3] == on_the_fake()[3]


@pytest.mark.parametrize("bug", RUNTIME_BUGS)
def test_each_runtime_with_a_bug_is_caught(bug: str) -> None:
    """Called directly, a runtime with a bug breaks a contract that the bug declares to break."""
    _, check, played, _ = results_on(f"bug:{bug}")
    broken = {key for key, one in check.results.items() if one.outcome.verdict is Verdict.BROKEN}
    declared = set(every_bug()[bug].breaks)

    assert broken & declared, (broken, declared)
    assert [each.failed for each in played if each.failed] == []


def test_scenarios_are_chosen_by_contract() -> None:
    """A contract's scenarios are those that declare it, in order."""
    chosen = scenarios_for(every_runtime_scenario(), ["CRI-25"])

    assert [scenario.name for scenario in chosen] == ["an_image_goes_with_all_its_tags"]
