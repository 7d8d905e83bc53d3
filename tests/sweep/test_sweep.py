"""The fault sweep: one fault at one call of a scenario, and what must hold all the same."""

import json
from pathlib import Path

import pytest
from command import in_process
from virtual_live_run import VirtualLiveRun

from kubelet_conformance.campaigns.live_sweep import LiveSweep
from kubelet_conformance.campaigns.sweep.kinds import KINDS, blows_at
from kubelet_conformance.campaigns.sweep.plan import FaultPattern, Plan, UnknownFaultError
from kubelet_conformance.campaigns.sweep.play import SCENARIO, SETTLES, Undisturbed, play, undisturbed
from kubelet_conformance.campaigns.sweep.points import Point, Role
from kubelet_conformance.contract.checking import Check
from kubelet_conformance.contracts import every_contract
from kubelet_conformance.node import Node, pod, witness
from kubelet_conformance.run_record.model import Kind
from kubelet_conformance.run_record.reader import opened
from kubelet_conformance.scenarios import every_scenario
from kubelet_conformance.targets.choice import Choice
from kubelet_conformance.targets.opening import open_stage

BUG = "K8S-53207"
SCENARIO_NAME = "sandbox.killed_sandbox_is_replaced"
CRASH = "restart.crashed_container_is_run_again_alone"
STAGE = open_stage(Choice())
CONTRACTS = tuple(every_contract().values())


async def _one_pod(node: Node) -> None:
    """A pod runs, and is deleted."""
    web = await node.run()
    web.delete()
    await web.until_gone()


async def _to_stay(node: Node) -> None:
    """A pod runs on."""
    node.want(pod())
    await node.wait(5)


async def _in_haste(node: Node) -> None:
    """The scenario asserts what holds only if no call fails."""
    web = node.want(pod())
    await node.wait(5)

    assert web.phase == "Running"


def test_points_are_the_calls_that_matter() -> None:
    """Changes, writes and the reads after them are points, and one poll is."""
    points = undisturbed(_one_pod, "one", STAGE).points
    by_role = {role: [str(point) for point in points if point.role is role] for role in Role}

    assert by_role[Role.CHANGE][:3] == ["RunPodSandbox#1", "CreateContainer#1", "StartContainer#1"]
    assert "StopContainer#1" in by_role[Role.CHANGE]
    assert by_role[Role.WRITE][0] == "patch pods/status#1"
    assert by_role[Role.WRITE][-1] == "delete pods#1"
    assert len(by_role[Role.POLL]) == 1
    assert len(set(points)) == len(points)


@pytest.mark.slow
def test_every_fault_applies_and_costs_nothing() -> None:
    """At a call of each name in a plain scenario each fault applies, and the reference recovers from it."""
    base = undisturbed(_one_pod, "one", STAGE)
    points = {point.call: point for point in base.points}.values()
    played = [play(_one_pod, base, blow, STAGE, CONTRACTS) for point in points for blow in blows_at(point)]

    assert all(one.applied for one in played)
    assert {one.blow.rpartition(" ")[2] for one in played} == set(KINDS)
    assert [(one.blow, one.breaks) for one in played if one.breaks] == []


@pytest.mark.slow
def test_a_kubelet_that_does_not_recover_is_told() -> None:
    """A change is never looked at again if its inspection fails: that shows only where one fails."""
    stage = open_stage(Choice(kubelet=f"bug:{BUG}"))
    base = undisturbed(_to_stay, "one", stage)
    refused = blows_at(Point("ContainerStatus", 1, Role.READ))[0]

    assert base.failed == ""
    assert SETTLES in {one.what for one in play(_to_stay, base, refused, stage, CONTRACTS).breaks}


def test_a_scenario_says_once_what_is_not_due() -> None:
    """What a scenario asserts counts, unless it is marked as one to be left undisturbed."""
    base = Undisturbed("haste", (Point("RunPodSandbox", 1, Role.CHANGE),))
    blow = FaultPattern.parse("RunPodSandbox#1 lost")
    lost = next(each for each in blows_at(base.points[0]) if blow.fits(each))
    marked = witness(undisturbed="it gives the kubelet five seconds")(_marked_haste)

    assert SCENARIO in {one.what for one in play(_in_haste, base, lost, STAGE, CONTRACTS).breaks}
    assert play(marked, base, lost, STAGE, CONTRACTS).breaks == []


async def _marked_haste(node: Node) -> None:
    await _in_haste(node)


@pytest.mark.parametrize("text", ["dead", "StopContainer#x lost", "StopContainer los", ""])
def test_unknown_faults_are_refused(text: str) -> None:
    """A fault that is none is refused, with those there are."""
    with pytest.raises(UnknownFaultError, match=r"expected .* KIND one of refused, failed"):
        FaultPattern.parse(text)


def test_the_parts_of_a_sweep_are_the_sweep() -> None:
    """Shards and a resumed rest leave nothing out, and a sample takes each scenario in turn."""
    bases = [Undisturbed(name, (Point("StopContainer", 1, Role.CHANGE),)) for name in "abc"]
    every = Plan().all_plays(bases)
    parts = [Plan(shard=shard, shards=3).plays(every) for shard in (1, 2, 3)]
    sample = Plan(sample=4, seed=5).plays(every)

    assert sorted(str(one) for part in parts for one in part) == sorted(map(str, every))
    assert Plan(skipped=20).plays(every) == every[20:]
    assert sorted(base.scenario for base, _ in sample[:3]) == ["a", "b", "c"]
    assert Plan(sample=4, seed=5).plays(every) == sample != Plan(sample=4, seed=6).plays(every)


@pytest.mark.slow
def test_command_plays_and_counts(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """`run --sweep` says how many plays there are, plays them, and ends with 0 where nothing breaks."""
    counted = in_process(capsys, "run", "--sweep", "--scenario", SCENARIO_NAME, "--count")
    options = ("--scenario", SCENARIO_NAME, "--fault", "StopPodSandbox* lost", "--record", str(tmp_path))
    ended = in_process(capsys, "run", "--sweep", *options)

    assert " plays at " in counted.out
    assert ended.code == 0, ended.out
    assert ended.out.splitlines()[-1].startswith("OK: ")
    with opened(str(tmp_path)) as record:
        assert (record.run.kind, record.run.scenarios) == (Kind.SWEEP, ())
        assert record.run.plays > 0


@pytest.mark.slow
def test_shards_of_a_sweep_are_joined_and_reported(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A break is named with its fault, what was expected, and its command, in every form of the report."""
    monkeypatch.chdir(tmp_path)
    name, fault = "restart.crashed_container_is_run_again_alone", "ContainerStatus#2 refused"
    faults = ("--fault", fault, "--fault", "CreateContainer#1 refused")
    given = ("--scenario", name, *faults, "--kubelet", f"bug:{BUG}")
    for part in (1, 2):
        record = f"part-{part}.tar.gz"
        in_process(capsys, "run", "--sweep", *given, "--shard", f"{part}/2", "--record", record)
    merged = in_process(capsys, "merge", "part-1.tar.gz", "part-2.tar.gz", "--output", "whole")
    ended = in_process(capsys, "report", "whole")
    reports = {
        form: in_process(capsys, "report", "whole", "--format", form)
        for form in ("markdown", "html", "junit", "json", "badge")
    }

    assert merged.code == 0, merged.err
    assert ended.code == 1
    assert f"{name} {fault}" in ended.out
    assert "expected: what is desired runs or has ended" in ended.out
    assert f"--kubelet=bug:{BUG} --scenario={name} '--fault={fault}'" in ended.out
    assert {each.code for each in reports.values()} == {1}
    assert all(fault in reports[form].out for form in ("markdown", "html", "junit", "json"))
    assert json.loads(reports["json"].out)["plays"] == 2


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["--fault", "StopContainer dead"], "no fault is 'StopContainer dead'"),
        (["--scenario", SCENARIO_NAME, "--fault", "StopContainer#99 lost"], "no call of these scenarios"),
        (["--scenario", "no.such"], "there is no scenario no.such"),
        (["--shard", "3/2"], "is no part of a run"),
        (["--runtime", "containerd"], "a sweep makes the runtime misbehave"),
    ],
)
def test_bad_input_is_one_line(capsys: pytest.CaptureFixture[str], given: list[str], said: str) -> None:
    """What cannot be swept ends with 2 and one line."""
    ended = in_process(capsys, "run", "--sweep", *given)

    assert ended.code == 2
    assert said in ended.err
    assert len(ended.err.strip().splitlines()) == 1


@pytest.mark.slow
def test_baseline_of_a_scenario_knows_its_breaks_with_a_fault(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """What breaks a scenario as it is breaks it with a fault as well, and any other scenario."""
    known = tmp_path / "known.toml"
    entry = 'id = "PROBE-10"\nclause = "no-kill"\nscenario = "probes.other"\nreason = "soon"\n'
    known.write_text(f"[[deviation]]\n{entry}", "utf-8")
    play = ("--scenario", "probes.failing_readiness_never_kills", "--fault", "ExecSync#13 refused")
    kubelet = ("--kubelet", "bug:K8S-9649", "--baseline", str(known))
    ended = in_process(capsys, "run", "--sweep", "PROBE-10", *play, *kubelet)

    assert ended.code == 0, ended.out
    assert " 0 broken, 1 known deviation" in ended.out


@pytest.mark.slow
@pytest.mark.parametrize(("kubelet", "broken"), [("reference", False), (f"bug:{BUG}", True)])
def test_sweep_on_wall_time(tmp_path: Path, kubelet: str, *, broken: bool) -> None:
    """Faults come at the calls that the reference makes; those that are awaited for minutes do not come."""
    live = VirtualLiveRun(kubelet, tmp_path)
    plan = Plan((FaultPattern.parse("ContainerStatus refused"), FaultPattern.parse("ContainerStatus lost")))
    scenarios = {CRASH: every_scenario()[CRASH]}
    sweep = LiveSweep(live.session(tmp_path), scenarios, plan, Check(CONTRACTS))
    sweep.prepare(lambda _: None)
    sweep.run(lambda _: None)

    assert {blow.kind.name for _, blow in sweep.every} == {"refused"}
    assert sweep.played == len(sweep.check.traces) == len(sweep.plays) > 0
    assert (SETTLES in {one.what for each in sweep.found for one in each.breaks}) is broken


@pytest.mark.slow
def test_sweep_on_a_kubelet_in_a_process(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """The command plays it over the served API server; the fault stands before the call that it is about."""
    options = ("--scenario", SCENARIO_NAME, "--fault", "StopPodSandbox#1 refused", "--record", str(tmp_path))
    ended = in_process(capsys, "run", "--sweep", "--kubelet", "reference-process", *options)

    assert ended.code == 0, ended.out + ended.err
    (trace,) = (tmp_path / "traces").iterdir()
    records = [json.loads(line) for line in trace.read_text("utf-8").splitlines()]
    faults = [each["what"] for each in records if each.get("kind") == "fault"]
    assert faults == ["StopPodSandbox#1 before", "healed: StopPodSandbox#1 before"]
    assert records[0]["patient"], "`check` judges it as the sweep did"


def test_settling_is_named() -> None:
    """The names of our own expectations are no ids of contracts."""
    assert not {SETTLES, SCENARIO} & set(every_contract())
