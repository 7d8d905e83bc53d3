"""ExecSync: exit codes, timeouts, output limits, and the container state that it needs."""

from contextlib import suppress

import grpc
from cri_api.v1 import api_pb2 as cri

from kubelet_conformance.runtime_checks.runtime import Runtime
from kubelet_conformance.runtime_checks.scenario import runtime_scenario

_LONG = 12
_OUTPUT_BYTES_MAX = 16 << 20


@runtime_scenario("CRI-26")
async def an_exit_code_is_an_answer(runtime: Runtime) -> None:
    """Execute commands that end with 0 and otherwise, and one that takes a while without a limit."""
    container = await runtime.running()
    commands = runtime.target.commands
    for code in (0, 3):
        request = cri.ExecSyncRequest(container_id=container.id, cmd=commands.execute(code), timeout=10)
        ended = await runtime.attempt("ExecSync", request)
        reply = await container.execute(commands.execute(code)) if ended == "OK" else None
        met = reply is not None and reply.exit_code == code
        runtime.expect("CRI-26", f"a command that ends with {code} is answered by that code", met=met)
    await container.execute(commands.execute(0, seconds=1.5))


@runtime_scenario("CRI-26")
async def a_command_is_killed_at_its_limit(runtime: Runtime) -> None:
    """Execute a command that outlasts its timeout; the container goes on."""
    await _outlast(runtime, runtime.target.commands.last(_LONG))


@runtime_scenario("CRI-26")
async def a_command_is_killed_with_what_it_began(runtime: Runtime) -> None:
    """Execute a command that waits for another beyond its timeout, both with the same output."""
    await _outlast(runtime, runtime.target.commands.execute(0, seconds=_LONG))


async def _outlast(runtime: Runtime, command: list[str]) -> None:
    container = await runtime.running()
    request = cri.ExecSyncRequest(container_id=container.id, cmd=command, timeout=1)
    ended = await runtime.attempt("ExecSync", request)
    runtime.expect("CRI-26", "a command at its limit is DEADLINE_EXCEEDED", met=ended == "DEADLINE_EXCEEDED")
    state = (await container.status()).state
    met = state == cri.CONTAINER_RUNNING
    runtime.expect("CRI-26", "the container runs on when a command in it is killed", met=met)


@runtime_scenario("CRI-26")
async def output_has_a_limit(runtime: Runtime) -> None:
    """Execute a command that prints more than 16 MiB."""
    container = await runtime.running()
    command = runtime.target.commands.execute(0, output_bytes=_OUTPUT_BYTES_MAX + (1 << 20))
    request = cri.ExecSyncRequest(container_id=container.id, cmd=command, timeout=_LONG)
    size = 0
    with suppress(grpc.RpcError):
        size = len((await runtime.call("ExecSync", request)).stdout)
    met = 0 < size <= _OUTPUT_BYTES_MAX
    runtime.expect("CRI-26", "at most 16 MiB of output are returned", met=met)


@runtime_scenario("CRI-27")
async def commands_need_a_running_container(runtime: Runtime) -> None:
    """Execute a command in a container that was not started, and in one that has ended."""
    sandbox, commands = await runtime.sandbox(), runtime.target.commands
    created = await sandbox.create(name="created")
    ended = await sandbox.running(commands.exit(0, after=0.5), name="ended")
    await ended.end()
    for container in (created, ended):
        request = cri.ExecSyncRequest(container_id=container.id, cmd=commands.execute(0), timeout=5)
        await runtime.attempt("ExecSync", request)
