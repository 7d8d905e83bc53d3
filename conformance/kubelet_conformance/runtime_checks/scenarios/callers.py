"""Several callers at once, and callers that leave."""

from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager, nullcontext

from cri_api.v1 import api_pb2 as cri

from kubelet_conformance.runtime_checks.runtime import Runtime
from kubelet_conformance.runtime_checks.scenario import runtime_scenario

_LONG = 60
_GRACE = 4
_LEAVES = 1.0
_SOON = 10.0
_BEGUN_SECONDS = 0.5
_HASTE = 0.01
"""In so short a time no real runtime runs a sandbox or creates a container."""


@runtime_scenario("CRI-33")
async def a_slow_stop_delays_no_other_pod(runtime: Runtime) -> None:
    """While a container of one pod takes its time to stop, do everything that a pod needs in another."""
    slow = await runtime.running(runtime.target.commands.run(stop_delay=_LONG), name="slow")
    await runtime.wait(_BEGUN_SECONDS)
    async with runtime.meanwhile(slow.stop(_GRACE)) as stopping:
        await runtime.wait(_BEGUN_SECONDS)
        other = await runtime.sandbox("other")
        container = await other.running()
        await container.execute(runtime.target.commands.execute(0))
        await container.status()
        await container.stop(0)
        await other.stop()
        await runtime.look()
        met = not stopping.done()
        runtime.expect("CRI-33", "calls for another pod are answered while a stop lasts", met=met)


@runtime_scenario("CRI-33")
async def a_slow_command_delays_no_other_call(runtime: Runtime) -> None:
    """While a command runs in one pod, and another in the same container, start a second pod."""
    busy = await runtime.running(name="busy")
    lasting = busy.execute(runtime.target.commands.execute(0, seconds=_GRACE))
    async with runtime.meanwhile(lasting) as command:
        await runtime.wait(_BEGUN_SECONDS)
        await busy.execute(runtime.target.commands.execute(0))
        await runtime.running(name="other")
        met = not command.done()
        runtime.expect("CRI-33", "calls are answered while a command runs in a container", met=met)


@runtime_scenario("CRI-32")
async def a_stop_goes_on_without_its_caller(runtime: Runtime) -> None:
    """Leave a StopContainer before its timeout is over; the container ends all the same."""
    container = await runtime.running(runtime.target.commands.run(stop_delay=_LONG))
    await runtime.wait(_BEGUN_SECONDS)
    await runtime.ended(container.stop(_GRACE, timeout=_LEAVES))
    met = await runtime.until(container.has_ended, _GRACE + _SOON / 2)
    runtime.expect("CRI-32", "a stop whose caller has left is finished", met=met)


@runtime_scenario("CRI-32")
async def a_stop_can_be_made_again(runtime: Runtime) -> None:
    """Leave a StopContainer with a very long timeout, and make another, as a restarted kubelet does."""
    container = await runtime.running(runtime.target.commands.run(stop_delay=_LONG))
    await runtime.wait(_BEGUN_SECONDS)
    await runtime.ended(container.stop(_LONG, timeout=_LEAVES))
    again = cri.StopContainerRequest(container_id=container.id, timeout=1)
    met = await runtime.attempt("StopContainer", again, timeout=_SOON) == "OK"
    met = met and await container.has_ended()
    runtime.expect("CRI-32", "a stop can be made again after its caller has left", met=met)


def _slowed(runtime: Runtime, rpc: str) -> AbstractContextManager[object]:
    """A fake is made to take its time; a real runtime takes it anyway."""
    slow = runtime.target.slow
    return nullcontext() if slow is None else slow(rpc, _LEAVES)


async def _come_true(
    runtime: Runtime, again: Callable[[], Awaitable[str]], found: Callable[[], Awaitable[bool]]
) -> bool:
    """Make the call again until it succeeds, or until its outcome is found in the lists."""

    async def is_done() -> bool:
        return await found() or await again() == "OK"

    return await runtime.until(is_done, _SOON)


@runtime_scenario("CRI-32")
async def a_sandbox_can_be_run_again(runtime: Runtime) -> None:
    """Leave a RunPodSandbox half way, and make it again: it succeeds, or the sandbox is there."""
    config = runtime.config()
    request = cri.RunPodSandboxRequest(config=config)
    with _slowed(runtime, "RunPodSandbox"):
        await runtime.attempt("RunPodSandbox", request, timeout=_HASTE)

    async def found() -> bool:
        return bool(
            await runtime.list_sandboxes(label_selector={"io.kubernetes.pod.uid": config.metadata.uid})
        )

    met = await _come_true(runtime, lambda: runtime.attempt("RunPodSandbox", request), found)
    runtime.expect("CRI-32", "a sandbox whose caller has left can be run, or is there", met=met)
    for one in await runtime.list_sandboxes(label_selector={"io.kubernetes.pod.uid": config.metadata.uid}):
        runtime.adopted(one.id, config)


@runtime_scenario("CRI-32")
async def a_container_can_be_created_again(runtime: Runtime) -> None:
    """Leave a CreateContainer half way, and make it again: it succeeds, or the container is there."""
    sandbox = await runtime.sandbox()
    request = sandbox.request()
    with _slowed(runtime, "CreateContainer"):
        await runtime.attempt("CreateContainer", request, timeout=_HASTE)

    async def found() -> bool:
        return bool(await runtime.list_containers(pod_sandbox_id=sandbox.id))

    met = await _come_true(runtime, lambda: runtime.attempt("CreateContainer", request), found)
    runtime.expect("CRI-32", "a container whose caller has left can be created, or is there", met=met)


@runtime_scenario("CRI-32", needs=("state_loss",))
async def a_sandbox_that_takes_too_long_is_there_in_the_end(runtime: Runtime) -> None:
    """Leave every RunPodSandbox of a pod half way: one of them is finished for the next caller to find."""
    config = runtime.config()
    uid = {"io.kubernetes.pod.uid": config.metadata.uid}
    met = False
    with _slowed(runtime, "RunPodSandbox"):
        for _ in range(5):
            request = cri.RunPodSandboxRequest(config=config)
            await runtime.attempt("RunPodSandbox", request, timeout=_LEAVES / 2)
            await runtime.wait(_LEAVES)
            met = met or bool(await runtime.list_sandboxes(label_selector=uid))
    for one in await runtime.list_sandboxes(label_selector=uid):
        runtime.adopted(one.id, config)
    runtime.expect("CRI-32", "a sandbox that takes longer than its callers wait is made in the end", met=met)


@runtime_scenario("CRI-21")
async def sandboxes_that_were_left_keep_no_addresses(runtime: Runtime) -> None:
    """Leave some RunPodSandbox calls half way, remove what came of them, and run other sandboxes."""
    with _slowed(runtime, "RunPodSandbox"):
        for number in range(6):
            request = cri.RunPodSandboxRequest(config=runtime.config(f"left-{number}"))
            await runtime.attempt("RunPodSandbox", request, timeout=_HASTE)
        await runtime.wait(2 * _LEAVES)
    for one in await runtime.list_sandboxes():
        await runtime.adopted(one.id, runtime.config(one.metadata.name)).stop()
    for number in range(2):
        await (await runtime.sandbox(f"new-{number}")).status()
