"""What the house asks of container runtimes, called directly."""

from kubelet_conformance.runtime_checks import Runtime, runtime_scenario


@runtime_scenario("CRI-05", "TOY-2")
async def sandbox_is_stopped_three_times(runtime: Runtime) -> None:
    """The log shipper stops what the kubelet has stopped, and what it has stopped itself."""
    sandbox = await runtime.sandbox()
    for _ in range(3):
        await sandbox.stop()
        await sandbox.status()
