"""One run of checks against one runtime: opened, run one by one or side by side, cleaned up after."""

import asyncio
import io
import traceback
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc
from cri_api.v1 import api_pb2 as cri

from kubelet_conformance.contract.deferred_gc import deferred_gc
from kubelet_conformance.reports.output import complain
from kubelet_conformance.runtime_checks.runtime import RUN_LABEL, Runtime
from kubelet_conformance.runtime_checks.scenario import RuntimeScenario
from kubelet_conformance.targets.choice import TargetError
from kubelet_conformance.targets.controls import NotPossibleError
from kubelet_conformance.targets.runtime import (
    DirectRuntime,
    Wanted,
    is_in_process,
    on_virtual_time,
    opened,
    opened_in_process,
)
from kubelet_conformance.trace.format.header import FORMAT_VERSION, Channels, Header
from kubelet_conformance.trace.format.recorder import RecordedReply, Recorder

CONCURRENCY = 8
SCENARIO_SECONDS_MAX = 120.0
"""A runtime scenario that is not over by then is given up."""
GATES = {"EventedPLEG": True}
"""Whether a runtime offers events is asked of itself."""
_REMEDIES = {
    "RunPodSandbox": "see that its network (CNI) and its sandbox image are there",
    "CreateContainer": "name another image with --image",
    "StartContainer": "the image must have a shell, sh: name one with --image",
}
_SWEEP_SECONDS_MAX = 20.0
_SWEEP_PAUSE_SECONDS = 0.5
_LOOKS_IN_HASTE = 3
_SWEEP_CALL_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The outcome of one runtime scenario, played or not possible.

    Attributes:
        scenario: the runtime scenario.
        trace: the record, as a trace; empty if nothing was called.
        unmet: the call that failed where it had to succeed, and so ended the scenario.
        failed: what went wrong in the suite itself.
        impossible: why the runtime could not be brought into the situation.
    """

    scenario: RuntimeScenario
    trace: bytes = b""
    unmet: str = ""
    failed: str = ""
    impossible: str = ""


@dataclass(slots=True)
class RuntimeRun:
    """The outcome of a run.

    Attributes:
        name: what the runtime calls itself.
        version: its version, in its own words.
        outcomes: the outcome of each runtime scenario.
        left: what could not be removed, in words.
        interrupted: it was broken off; `outcomes` are those of what was over by then.
    """

    name: str = ""
    version: str = ""
    outcomes: list[CheckResult] = field(default_factory=list["CheckResult"])
    left: list[str] = field(default_factory=list[str])
    interrupted: bool = False


def run_scenarios(
    wanted: Wanted, scenarios: Iterable[RuntimeScenario], kubernetes: str, concurrency: int = CONCURRENCY
) -> RuntimeRun:
    """Play the runtime scenarios on the desired runtime.

    Raises:
        TargetError: It cannot be called.
        UnknownTargetError: Nothing is named so.
    """
    run = RuntimeRun()
    try:
        if is_in_process(wanted.target):
            _in_process(run, opened_in_process(wanted.target), scenarios, kubernetes)
        else:
            asyncio.run(_over_socket(run, wanted, scenarios, kubernetes, concurrency))
    except KeyboardInterrupt:
        run.interrupted = True
        if not run.outcomes:
            raise
    return run


@deferred_gc()
def _in_process(
    run: RuntimeRun,
    make: Callable[[], DirectRuntime],
    scenarios: Iterable[RuntimeScenario],
    kubernetes: str,
) -> None:
    """Play each scenario on a runtime of its own, in virtual time that begins at 0."""

    async def one(scenario: RuntimeScenario) -> None:
        target = make()
        run.name, run.version = target.name, target.version
        run.outcomes.append(await run_one(target, scenario, "run", kubernetes, virtual=True))
        run.left += [f"{scenario.name}: {each}" for each in await _sweep(target, "run")]

    for scenario in scenarios:
        on_virtual_time(one(scenario))


async def _over_socket(
    run: RuntimeRun, wanted: Wanted, scenarios: Iterable[RuntimeScenario], kubernetes: str, concurrency: int
) -> None:
    async with opened(wanted) as target:
        await run_and_remove(run, target, scenarios, wanted.run_id, kubernetes, concurrency)


async def run_and_remove(  # noqa: PLR0913, PLR0917 - what is played, where, and what it leaves
    run: RuntimeRun,
    target: DirectRuntime,
    scenarios: Iterable[RuntimeScenario],
    run_id: str,
    kubernetes: str,
    concurrency: int = CONCURRENCY,
) -> None:
    """Play runtime scenarios and remove what they left at the runtime, also when the run is broken off."""
    run.name, run.version = target.name, target.version
    try:
        await _see_that_containers_run(target, run_id)
        await _run_all(run.outcomes, target, scenarios, run_id, kubernetes, concurrency)
    except BaseException:
        for each in await _sweep(target, run_id, in_haste=True):
            complain(left_behind(each))
        raise
    run.left = await _sweep(target, run_id)


def left_behind(what: str) -> str:
    """The message about what could not be removed."""
    return f"left behind at the runtime: {what}; remove it by hand"


def header_of(target: DirectRuntime, scenario: str, kubernetes: str, *, virtual: bool) -> Header:
    """The header of a runtime scenario's trace: `from_start`, as all that it contains was made in it."""
    return Header(
        trace=FORMAT_VERSION,
        clock="virtual" if virtual else "wall",
        channels=Channels(cri="full"),
        kubernetes=kubernetes,
        feature_gates=GATES,
        runtime=f"{target.name} {target.version}",
        from_start=True,
        scenario=scenario,
    )


async def run_one(
    target: DirectRuntime, scenario: RuntimeScenario, run_id: str, kubernetes: str, *, virtual: bool = False
) -> CheckResult:
    """Play one runtime scenario, and clean up after it."""
    lacking = [target.lacks[need] for need in scenario.needs if need in target.lacks]
    if lacking:
        return CheckResult(scenario, impossible="; ".join(lacking))
    began = target.now()
    recorder = Recorder(lambda: round(target.now() - began, 6))
    unmet = failed = impossible = ""
    runtime = Runtime(target, recorder, scenario.name, run_id)
    if target.listen is not None:
        target.listen(runtime.record_event)
    try:
        async with asyncio.timeout(SCENARIO_SECONDS_MAX):
            await runtime.look()
            await scenario.run(runtime)
            await runtime.look()
    except NotPossibleError as error:
        impossible = str(error)
    except (grpc.RpcError, TimeoutError) as error:
        unmet = f"{_place(error)}{_said(error)}"
    except Exception as error:  # noqa: BLE001 - the other scenarios are played all the same
        failed = f"{_place(error)}{type(error).__name__}: {error}\n{traceback.format_exc()}"
    await runtime.clean_up()
    await runtime.ended(runtime.look())
    file = io.BytesIO()
    recorder.write(file, header_of(target, scenario.name, kubernetes, virtual=virtual))
    return CheckResult(scenario, file.getvalue(), unmet, failed, impossible)


async def _run_all(  # noqa: PLR0913, PLR0917 - what is played, where, and what comes of it
    outcomes: list[CheckResult],
    target: DirectRuntime,
    scenarios: Iterable[RuntimeScenario],
    run_id: str,
    kubernetes: str,
    concurrency: int,
) -> None:
    """Play scenarios, at most `concurrency` in parallel; those that must be alone are played afterwards.

    Adds the outcome of each that is over, and puts all in the order of the scenarios in the end.
    """
    every = list(scenarios)
    places = asyncio.Semaphore(concurrency)

    async def in_turn(scenario: RuntimeScenario) -> None:
        async with places:
            outcomes.append(await run_one(target, scenario, run_id, kubernetes))

    async with asyncio.TaskGroup() as group:
        for scenario in every:
            if not scenario.alone:
                group.create_task(in_turn(scenario))
    for scenario in every:
        if scenario.alone:
            await in_turn(scenario)
    outcomes.sort(key=lambda outcome: every.index(outcome.scenario))


def _said(error: Any) -> str:  # noqa: ANN401 - the methods of grpc's errors are those of their kind
    """The message about an error."""
    if isinstance(error, TimeoutError):
        return f"not over after {SCENARIO_SECONDS_MAX:g} s"
    return f"a call that has to succeed failed: {error.code().name}: {error.details() or 'no words'}"


def _place(error: BaseException) -> str:
    """The last line of the scenario that was reached, such as `stops.py:12: `."""
    folder = Path(__file__).with_name("scenarios")
    frames = [one for one in traceback.extract_tb(error.__traceback__) if Path(one.filename).parent == folder]
    return f"{Path(frames[-1].filename).name}:{frames[-1].lineno}: " if frames else ""


async def _see_that_containers_run(target: DirectRuntime, run_id: str) -> None:
    """Run a container that ends at once, by its shell. Raises `TargetError` with a remedy if that fails."""
    recorder = Recorder(target.now)
    runtime = Runtime(target, recorder, "trial", run_id)
    try:
        container = await runtime.running(target.commands.exit(0))
        status = await container.end()
    except grpc.RpcError as error:
        failed: Any = error
        rpc = [each.call.rpc for each in recorder.records if isinstance(each, RecordedReply)][-1]
        remedy = _REMEDIES.get(rpc, "look into the log of the runtime")
        said = f"{failed.code().name}: {failed.details()}"
        raise TargetError(f"{target.name} runs no container: {rpc} is answered by {said}; {remedy}") from None
    finally:
        await runtime.clean_up()
    if status.exit_code:
        raise TargetError(
            f"{target.name} runs no shell: `sh` of {target.image} ends with {status.exit_code}"
            f" {status.message}; {_REMEDIES['StartContainer']}"
        )


async def _sweep(target: DirectRuntime, run_id: str, *, in_haste: bool = False) -> list[str]:
    """Remove every sandbox and container of the run; what could not be removed, in words.

    Calls that were broken off, as when the run is interrupted (`in_haste`), may still make something for a
    moment: then it looks until nothing was there for a while.
    """
    left, clean, deadline = list[str](), 0, target.now() + _SWEEP_SECONDS_MAX
    while True:
        try:
            left = await _removed(target, run_id)
        except grpc.RpcError as error:
            left = [f"the runtime does not say what is left: {error}"]
        clean = 0 if left else clean + 1
        if clean >= (_LOOKS_IN_HASTE if in_haste else 1) or target.now() >= deadline:
            return left
        await target.sleep(_SWEEP_PAUSE_SECONDS)


async def _removed(target: DirectRuntime, run_id: str) -> list[str]:
    """Remove what is listed; what was there, in words."""
    services, ours = target.services, {RUN_LABEL: run_id}
    of_sandboxes = cri.ListPodSandboxRequest(filter=cri.PodSandboxFilter(label_selector=ours))
    of_containers = cri.ListContainersRequest(filter=cri.ContainerFilter(label_selector=ours))
    sandboxes = (await services.ListPodSandbox(of_sandboxes, timeout=_SWEEP_CALL_SECONDS)).items
    containers = (await services.ListContainers(of_containers, timeout=_SWEEP_CALL_SECONDS)).containers

    async def sandbox_goes(one: str) -> None:
        stop, remove = (
            cri.StopPodSandboxRequest(pod_sandbox_id=one),
            cri.RemovePodSandboxRequest(pod_sandbox_id=one),
        )
        await services.StopPodSandbox(stop, timeout=_SWEEP_CALL_SECONDS)
        await services.RemovePodSandbox(remove, timeout=_SWEEP_CALL_SECONDS)

    await _side_by_side(sandbox_goes(one.id) for one in sandboxes)
    requests = (cri.RemoveContainerRequest(container_id=one.id) for one in containers)
    await _side_by_side(
        services.RemoveContainer(request, timeout=_SWEEP_CALL_SECONDS) for request in requests
    )
    names = [f"sandbox {one.metadata.name} {one.id}" for one in sandboxes]
    return names + [f"container {one.metadata.name} {one.id}" for one in containers]


async def _side_by_side(calls: Iterable[Awaitable[object]]) -> None:
    """Make them side by side; what fails is found again in the next round."""
    await asyncio.gather(*calls, return_exceptions=True)
