"""StopContainer: how long it waits, and when it kills."""

from cri_api.v1 import api_pb2 as cri

from kubelet_conformance.runtime_checks.runtime import Runtime
from kubelet_conformance.runtime_checks.scenario import runtime_scenario

_LONG = 60
_GRACE = 2
_AT_ONCE = 0.05
_BEGUN_SECONDS = 0.5
"""By then a shell has set up what it does when it is asked to stop."""


@runtime_scenario("CRI-13", "CRI-14", "CRI-16")
async def a_stop_waits_for_its_timeout(runtime: Runtime) -> None:
    """Stop a container whose process does not end when it is asked to."""
    container = await runtime.running(runtime.target.commands.run(stop_delay=_LONG))
    await runtime.wait(_BEGUN_SECONDS)
    took = await container.stop(_GRACE)
    await container.status()
    met = took >= _GRACE - _AT_ONCE
    runtime.expect("CRI-13", f"the process has the {_GRACE} s of the timeout to end by itself", met=met)


@runtime_scenario("CRI-13", "CRI-16")
async def a_stop_ends_with_the_process(runtime: Runtime) -> None:
    """Stop a container whose process ends when it is asked to, with a code of its own."""
    container = await runtime.running(runtime.target.commands.run(stop_code=5))
    await runtime.wait(_BEGUN_SECONDS)
    took = await container.stop(_LONG // 2)
    code = (await container.status()).exit_code
    runtime.expect("CRI-13", "a stop returns as soon as the process has ended", met=took < _LONG // 4)
    runtime.expect("CRI-16", "a process that was asked to end has its own exit code", met=code == 5)  # noqa: PLR2004 - the one above


@runtime_scenario("CRI-13", "CRI-14")
async def no_timeout_kills_at_once(runtime: Runtime) -> None:
    """Stop a container with a timeout of 0."""
    container = await runtime.running(runtime.target.commands.run(stop_delay=_LONG))
    await container.stop(0)
    await container.status()
    await runtime.look()


@runtime_scenario("CRI-13")
async def a_later_stop_may_be_shorter(runtime: Runtime) -> None:
    """Stop a container with a long timeout, and while that lasts with none."""
    container = await runtime.running(runtime.target.commands.run(stop_delay=_LONG))
    await runtime.wait(_BEGUN_SECONDS)
    began = runtime.now
    async with runtime.meanwhile(container.stop(_LONG // 3)):
        await runtime.wait(_BEGUN_SECONDS)
        await runtime.attempt("StopContainer", cri.StopContainerRequest(container_id=container.id))
    met = runtime.now - began < _LONG // 4
    runtime.expect("CRI-13", "a later stop with a shorter timeout ends the earlier one too", met=met)
    await container.status()


@runtime_scenario("CRI-13", "CRI-14")
async def what_does_not_run_may_be_stopped(runtime: Runtime) -> None:
    """Stop a container that was never started, one that has ended, and one that was stopped."""
    sandbox, commands = await runtime.sandbox(), runtime.target.commands
    created = await sandbox.create(name="created")
    ended = await sandbox.running(commands.exit(0, after=0.5), name="ended")
    await ended.end()
    stopped = await sandbox.running(name="stopped")
    await stopped.stop(0)
    for container in (created, ended, stopped):
        request = cri.StopContainerRequest(container_id=container.id, timeout=_GRACE)
        met = await runtime.attempt("StopContainer", request) == "OK"
        await container.status()
        name = container.config.metadata.name
        runtime.expect("CRI-13", f"StopContainer of a container that is {name} is no error", met=met)
