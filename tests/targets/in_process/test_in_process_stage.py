"""The target in this process: whatever becomes of a scenario or of its kubelet, a whole trace is left."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import grpc
import pytest
from cri_api.v1 import api_pb2 as cri
from on_loop import in_virtual_time

from kubelet_conformance.node import Node, container
from kubelet_conformance.targets.choice import Choice, UnknownTargetError
from kubelet_conformance.targets.controls import ScenarioError, Target
from kubelet_conformance.targets.in_process.recorded_runtime import Tap
from kubelet_conformance.targets.opening import open_stage
from kubelet_conformance.trace.format.recorder import Failed, RecordedReply, Recorder
from kubelet_fakes.runtime import CallError
from kubelet_reference.kubelet.housekeeping import Housekeeping


def play(scenario: Callable[[Node], Awaitable[None]], **settings: object) -> list[dict[str, Any]]:
    """The lines of the trace of a scenario."""

    async def on(target: Target) -> None:
        await scenario(Node(target))

    return lines(open_stage(Choice()).play(on, "scenario", settings, "1.32"))


def lines(trace: bytes) -> list[dict[str, Any]]:
    """A trace, header and all."""
    return [json.loads(line) for line in trace.splitlines()]


def test_life_is_framed() -> None:
    """A trace states its target and scenario, and goes from the kubelet's start to its end."""

    async def scenario(node: Node) -> None:
        await node.wait(3)

    header, *records = play(scenario)

    assert (header["clock"], header["scenario"], header["kubernetes"], header["seed"]) == (
        "virtual",
        "scenario",
        "1.32",
        0,
    )
    assert (records[0]["kind"], records[0]["op"]) == ("kubelet", "started")
    assert [(each["kind"], each["t"]) for each in records[-2:]] == [("kubelet", 3), ("end", 3)]


def test_faults_of_all_kinds_are_on_the_record() -> None:
    """A fault of a call, of a request or of a probe hits what it names, and its text is on the record."""
    texts = ["StartContainer#1 before UNKNOWN", "patch pods/status#1 after 504", "httpGet /live#2 before"]

    async def scenario(node: Node) -> None:
        probe = {"httpGet": {"path": "/live", "port": 80}, "periodSeconds": 1}
        with node.inject(texts[0]), node.inject(texts[1]), node.inject(texts[2]):
            await node.run(container(livenessProbe=probe))
            await node.wait(3)

    records = play(scenario)[1:]
    said = [each["what"].removeprefix("the API server: ") for each in records if each["kind"] == "fault"]
    starts = [each for each in records if each.get("rpc") == "StartContainer" and each["kind"] == "reply"]
    patches = [each["code"] for each in records if each["kind"] == "api" and each["verb"] == "patch"]
    probes = [each["outcome"] for each in records if each["kind"] == "probe"]

    assert said[:3] == texts
    assert ["error" in each for each in starts] == [True, False]
    assert (patches[:2], probes[:3]) == ([504, 200], ["200", "refused", "200"])


def test_settings_reach_the_kubelet() -> None:
    """Fields of the kubelet's configuration that a scenario asks for are set."""

    async def scenario(node: Node) -> None:
        web = await node.run()
        second = node.want({"metadata": {"name": "late"}, "spec": {"containers": [container()]}})
        await second.until_phase("Failed", within=10)
        assert web.phase == "Running"

    assert play(scenario, max_pods=1)


def test_failed_scenario_leaves_its_trace() -> None:
    """A scenario that raises gives its trace up to there, and its own exception as the cause."""

    async def scenario(node: Node) -> None:
        await node.run()
        raise ValueError("boom")

    with pytest.raises(ScenarioError, match="ValueError: boom") as caught:
        play(scenario)

    assert isinstance(caught.value.__cause__, ValueError)
    assert lines(caught.value.trace)[-1]["kind"] == "end"


def test_kubelet_that_dies_by_itself_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """A mistake that ends the kubelet fails the scenario, though the scenario itself went well."""

    async def wrong(_: Housekeeping) -> None:
        raise ZeroDivisionError("a mistake")

    async def scenario(node: Node) -> None:
        await node.wait(30)

    monkeypatch.setattr(Housekeeping, "run_once", wrong)
    with pytest.raises(ScenarioError, match="a mistake"):
        play(scenario)


def test_restarted_kubelet_is_a_new_one() -> None:
    """A kubelet that is killed leaves containers alone; the next one finds them."""

    async def scenario(node: Node) -> None:
        web = await node.run()
        await node.restart_kubelet(down=5)
        await node.wait(5)
        assert len(web.containers("c1")) == 1

    ops = [(each["op"], each["t"]) for each in play(scenario) if each.get("kind") == "kubelet"]

    assert [op for op, _ in ops] == ["started", "killed", "started", "killed"]
    assert ops[2][1] - ops[1][1] == 5


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        (
            Choice(kubelet="crio"),
            "choose reference, reference-process, the PATH of a kubelet, FILE.toml",
        ),
        (Choice(kubelet="bug:K8S-1"), "no bug is named 'K8S-1'"),
        (Choice(runtime="containerd"), "choose fake"),
        (Choice(kubernetes="1.9"), "Kubernetes 1.9 is not known; this suite knows 1.24 to"),
        (Choice(kubernetes="new"), "'new' is no Kubernetes version; write it like 1.32"),
    ],
)
def test_unknown_targets_are_refused(choice: Choice, message: str) -> None:
    """A kubelet, runtime or version that there is not is refused with what there is."""
    with pytest.raises(UnknownTargetError, match=message):
        open_stage(choice)


class Silent:
    """A runtime that does not answer."""

    async def Version(self, request: cri.VersionRequest, **_: float | None) -> cri.VersionResponse:
        """Never answer."""
        del request
        await asyncio.Event().wait()
        return cri.VersionResponse()


class Failing:
    """A runtime that is away."""

    async def Version(self, request: cri.VersionRequest, **_: float | None) -> cri.VersionResponse:
        """Fail."""
        del request
        raise CallError(grpc.StatusCode.UNAVAILABLE, "away")


@in_virtual_time
async def test_call_whose_caller_leaves_has_no_reply() -> None:
    """A call that is cancelled while it is under way stays open in the trace."""
    recorder = Recorder(lambda: 0.0)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(Tap(Silent(), recorder).Version(cri.VersionRequest()), 1)

    assert len(recorder.records) == 1


def test_failed_call_tells_of_its_effect() -> None:
    """A fault that keeps a call from taking place is recorded as one, and raised all the same."""

    async def scenario(node: Node) -> None:
        with node.fault("Status", effect="before", code="UNAVAILABLE", times=1):
            await node.wait(20)
        with node.fault("Status", effect="after", code="UNAVAILABLE", times=1):
            await node.wait(20)

    errors = [each for each in play(scenario) if "error" in each]

    assert [each["rpc"] for each in errors] == ["Status", "Status"]
    assert [each.get("effect", True) for each in errors] == [False, True]


@in_virtual_time
async def test_reply_is_recorded_before_it_is_given() -> None:
    """An answer is in the record before its caller gets it."""
    recorder = Recorder(lambda: 0.0)
    seen: list[int] = []
    try:
        await Tap(Failing(), recorder).Version(cri.VersionRequest())
    except CallError:
        seen.append(len(recorder.records))
    reply = recorder.records[-1]

    assert seen == [2]
    assert isinstance(reply, RecordedReply)
    assert reply.outcome == Failed("UNAVAILABLE", "away")
