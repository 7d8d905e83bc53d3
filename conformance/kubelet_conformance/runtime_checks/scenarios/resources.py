"""Resource limits of a container."""

from cri_api.v1 import api_pb2 as cri

from kubelet_conformance.runtime_checks.runtime import MadeContainer, Runtime
from kubelet_conformance.runtime_checks.scenario import runtime_scenario

_MIB = 1 << 20


async def _see_limit(runtime: Runtime, container: MadeContainer, limit: int) -> None:
    """Expect this memory limit in the status and inside the container."""
    await container.status()
    command = runtime.target.commands.memory_limit()
    if command is None:
        return
    printed = (await container.execute(command, limit=10)).stdout.decode().strip()
    if printed.isdecimal():
        awaited = f"the container's memory is limited to {limit} bytes"
        runtime.expect("CRI-28", awaited, met=int(printed) == limit)


@runtime_scenario("CRI-28")
async def limits_change_at_once(runtime: Runtime) -> None:
    """Raise a limit on memory; then ask for a change of which one part is impossible."""
    sandbox = await runtime.sandbox()
    asked = sandbox.request()
    asked.config.linux.resources.memory_limit_in_bytes = 64 * _MIB
    container = await sandbox.create(request=asked)
    await container.start()
    await container.status()

    raised = cri.LinuxContainerResources(memory_limit_in_bytes=128 * _MIB)
    request = cri.UpdateContainerResourcesRequest(container_id=container.id, linux=raised)
    await runtime.call("UpdateContainerResources", request)
    await _see_limit(runtime, container, 128 * _MIB)

    mixed = cri.LinuxContainerResources(memory_limit_in_bytes=192 * _MIB, cpu_shares=-1, cpuset_cpus="9999")
    request = cri.UpdateContainerResourcesRequest(container_id=container.id, linux=mixed)
    if await runtime.attempt("UpdateContainerResources", request) != "OK":
        await _see_limit(runtime, container, 128 * _MIB)
