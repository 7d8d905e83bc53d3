"""Scenarios over a socket: side by side on one runtime, each with a record of its own pods and no others."""

import asyncio
import io
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from pathlib import Path

import pytest
from cri_api.v1 import api_pb2 as cri
from on_loop import on_loop

from kubelet_conformance.contract.verdicts import Verdict
from kubelet_conformance.runtime_checks.judging import judged, the_runtimes
from kubelet_conformance.runtime_checks.running import RuntimeRun, run_and_remove, run_one
from kubelet_conformance.runtime_checks.runtime import Runtime
from kubelet_conformance.runtime_checks.scenario import RuntimeScenario
from kubelet_conformance.runtime_checks.scenarios import every_runtime_scenario
from kubelet_conformance.targets.choice import TargetError, UnknownTargetError
from kubelet_conformance.targets.runtime import (
    DirectRuntime,
    Wanted,
    on_virtual_time,
    opened,
    opened_in_process,
)
from kubelet_conformance.trace.format.reader import Reader
from kubelet_conformance.trace.format.records import Reply

QUICK = (
    "it_says_who_it_is",
    "a_new_sandbox_is_ready",
    "attempts_follow_one_another",
    "labels_of_a_sandbox_come_back",
    "what_is_not_there_is_no_error",
    "a_removed_sandbox_takes_its_containers_along",
    "containers_need_a_ready_sandbox",
    "a_container_is_created_and_then_started",
    "what_is_printed_is_in_the_log",
    "an_absent_image_is_no_error",
    "survivors_of_a_sandbox_are_stopped_with_it",
)
FOREIGN = cri.PodSandboxMetadata(name="foreign", namespace="default", uid="somebody-else")


def scenario(name: str) -> RuntimeScenario:
    """The runtime scenario of that name."""
    return next(each for each in every_runtime_scenario() if each.name == name)


def a_fake() -> AbstractAsyncContextManager[DirectRuntime]:
    """A fake over gRPC."""
    return opened(Wanted("fake-grpc", "", "run-1", 10**18))


async def run_foreign_sandbox(target: DirectRuntime) -> None:
    """Somebody else runs a sandbox."""
    config = cri.PodSandboxConfig(metadata=FOREIGN, labels={"secret": "label"})
    await target.services.RunPodSandbox(cri.RunPodSandboxRequest(config=config))


@on_loop
async def test_scenarios_side_by_side_keep_every_contract(tmp_path: Path) -> None:
    """Run at the same time on one runtime, scenarios do not disturb each other's verdicts."""
    run, scenarios = RuntimeRun(), [scenario(name) for name in QUICK]

    async with a_fake() as target:
        await run_and_remove(run, target, scenarios, "run-1", "1.32")
    check, played = judged(run.outcomes, list(the_runtimes().values()), None, tmp_path)
    verdicts = {one.outcome.verdict for one in check.results.values()}

    assert [each.scenario.name for each in run.outcomes] == list(QUICK)
    assert verdicts == {Verdict.KEPT, Verdict.NOT_EXERCISED}
    assert [each.unmet or each.failed for each in played if each.unmet or each.failed] == []
    assert run.left == []


@on_loop
async def test_what_belongs_to_others_is_not_recorded() -> None:
    """A list's answer, as the scenario gets it and as it is recorded, holds the scenario's own pods alone."""
    async with a_fake() as target:
        await run_foreign_sandbox(target)
        trace = (await run_one(target, scenario("a_new_sandbox_is_ready"), "run-1", "1.32")).trace
    with Reader("scenario", io.BytesIO(trace)) as reader:
        listed = [one for one in reader if getattr(getattr(one, "call", None), "rpc", "") == "ListPodSandbox"]

    assert b"secret" not in trace
    assert b"somebody-else" not in trace
    assert any(b"a-new-sandbox-is-ready-web" in bytes(getattr(one, "response").raw) for one in listed)  # noqa: B009


@on_loop
async def test_what_others_made_stays() -> None:
    """A run removes what it made, by its own label, and nothing else."""
    async with a_fake() as target:
        await run_foreign_sandbox(target)
        await run_and_remove(RuntimeRun(), target, [], "run-1", "1.32")
        listed = await target.services.ListPodSandbox(cri.ListPodSandboxRequest())

    assert [one.metadata.name for one in listed.items] == ["foreign"]


def test_a_run_that_is_broken_off_leaves_nothing() -> None:
    """When scenarios are cancelled in the middle, what they made is removed all the same."""
    left: list[str] = []

    async def main() -> None:
        target, begun = opened_in_process("fake")(), asyncio.Event()

        async def without_end(runtime: Runtime) -> None:
            await (await runtime.sandbox()).running()
            begun.set()
            await asyncio.Event().wait()

        scenarios = [RuntimeScenario("without_end", without_end, ())]
        run = asyncio.ensure_future(run_and_remove(RuntimeRun(), target, scenarios, "run-1", "1.32"))
        await begun.wait()
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run
        listed = await target.services.ListPodSandbox(cri.ListPodSandboxRequest())
        containers = await target.services.ListContainers(cri.ListContainersRequest())
        left.extend(one.id for one in (*listed.items, *containers.containers))

    on_virtual_time(main())

    assert left == []


@on_loop
async def test_a_scenario_that_ends_early_is_reported_and_cleaned_up() -> None:
    """A call that fails where it has to succeed ends its scenario; its place, error and trace are kept."""

    async def too_soon(runtime: Runtime) -> None:
        sandbox = await runtime.sandbox()
        await sandbox.stop()
        await sandbox.create()

    async with a_fake() as target:
        outcome = await run_one(target, RuntimeScenario("too_soon", too_soon, ("CRI-11",)), "run-1", "1.32")

    assert "a call that has to succeed failed: FAILED_PRECONDITION" in outcome.unmet
    assert (outcome.failed, outcome.impossible) == ("", "")
    assert b"RemovePodSandbox" in outcome.trace


@on_loop
async def test_a_mistake_in_a_scenario_is_the_suites_own() -> None:
    """An exception that is no failed call is reported as a failure of the suite, with where it happened."""

    async def mistaken(_: Runtime) -> None:
        raise ZeroDivisionError("oh")

    async with a_fake() as target:
        outcome = await run_one(target, RuntimeScenario("mistaken", mistaken, ()), "run-1", "1.32")

    assert outcome.failed.startswith("ZeroDivisionError: oh\n")
    assert outcome.trace


@on_loop
async def test_what_a_runtime_lacks_makes_a_scenario_impossible(tmp_path: Path) -> None:
    """A contract whose every scenario is impossible is not applicable, for the reason of that."""
    async with a_fake() as target:
        poor = replace(target, lacks={"events": "it has no events"})
        outcome = await run_one(poor, scenario("every_transition_is_reported"), "run-1", "1.32")
    check, _ = judged([outcome], [the_runtimes()["CRI-30"]], None, tmp_path)
    result = check.results["CRI-30"]

    assert (result.outcome.verdict, result.reasons) == (Verdict.NOT_APPLICABLE, ["it has no events"])


@pytest.mark.parametrize(
    ("target", "error", "said"),
    [
        ("unix:///nowhere/cri.sock", TargetError, "there is no such socket"),
        ("unix://relative.sock", UnknownTargetError, "no runtime is named"),
        ("nonsense", UnknownTargetError, "choose unix:///PATH, containerd, fake"),
        ("bug:NOT-A-BUG-grpc", UnknownTargetError, "no bug is named"),
    ],
)
@on_loop
async def test_what_cannot_be_called_is_refused(target: str, error: type[Exception], said: str) -> None:
    """A target that is none, or that nobody serves, is refused in one sentence."""
    with pytest.raises(error, match=said):
        async with opened(Wanted(target, "img:1", "run-1", 0)):
            raise AssertionError("it was opened")


@on_loop
async def test_streams_end_with_their_scenario() -> None:
    """A scenario that listens receives events of its own pods alone, and leaves no stream open."""

    async def listening(runtime: Runtime) -> None:
        async with runtime.events() as came:
            await run_foreign_sandbox(runtime.target)
            await (await runtime.sandbox()).running()

            async def has_received() -> bool:
                return len(came) == 4

            assert await runtime.until(has_received, 10)

    async with a_fake() as target:
        outcome = await run_one(target, RuntimeScenario("listening", listening, ("CRI-30",)), "run-1", "1.32")
    with Reader("scenario", io.BytesIO(outcome.trace)) as reader:
        replies = [one for one in reader if isinstance(one, Reply) and one.call.rpc == "GetContainerEvents"]

    assert (outcome.failed, outcome.unmet) == ("", "")
    assert b"somebody-else" not in outcome.trace
    assert [one.error.code for one in replies if one.error is not None] == ["CANCELLED"]
