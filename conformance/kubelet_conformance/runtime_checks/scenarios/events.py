"""The stream of container events, and the statuses in it."""

from cri_api.v1 import api_pb2 as cri

from kubelet_conformance.runtime_checks.runtime import Runtime
from kubelet_conformance.runtime_checks.scenario import runtime_scenario

_EVENT_SECONDS = 5.0


@runtime_scenario("CRI-30", needs=("events",))
async def every_transition_is_reported(runtime: Runtime) -> None:
    """Listen while a pod with two containers runs and is removed; one of them ends by itself."""
    async with runtime.events() as came:
        sandbox = await runtime.sandbox()
        runs = await sandbox.running(name="runs")
        ends = await sandbox.running(runtime.target.commands.exit(3, after=0.5), name="ends")
        await ends.end()
        await runs.stop(1)
        for container in (runs, ends):
            await container.remove()
        await sandbox.stop()
        await sandbox.remove()

        def reported() -> list[tuple[str, int]]:
            return [(one.container_id, one.container_event_type) for one in came]

        async def is_over() -> bool:
            return (sandbox.id, cri.CONTAINER_DELETED_EVENT) in reported()

        met = await runtime.until(is_over, _EVENT_SECONDS)
        runtime.expect("CRI-30", "the removal of a sandbox is reported as DELETED of its id", met=met)
        stopped = [
            one.container_id for one in came if one.container_event_type == cri.CONTAINER_STOPPED_EVENT
        ]
        runtime.expect("CRI-30", "an end without a call is reported", met=ends.id in stopped)


@runtime_scenario("CRI-31", needs=("stamps",))
async def a_stamped_status_is_whole(runtime: Runtime) -> None:
    """Read a sandbox while its containers are created, run and have ended."""
    sandbox = await runtime.sandbox()
    await sandbox.status()
    await sandbox.create(name="created")
    await sandbox.running(name="runs")
    ends = await sandbox.running(runtime.target.commands.exit(0, after=0.5), name="ends")
    await ends.end()
    await runtime.wait(0.1)
    await sandbox.status()
    await sandbox.stop()
    await sandbox.status()
