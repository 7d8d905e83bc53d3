"""Log files."""

from cri_api.v1 import api_pb2 as cri

from kubelet_conformance.runtime_checks.runtime import Runtime
from kubelet_conformance.runtime_checks.scenario import runtime_scenario

_PRINTED = "a line of the scenario"
_WRITTEN_SECONDS = 5.0


@runtime_scenario("CRI-36", needs=("files",))
async def what_is_printed_is_in_the_log(runtime: Runtime) -> None:
    """Start a container that prints a line, look for its log at once, and for the line soon."""
    container = await runtime.running(runtime.target.commands.run(says=_PRINTED))
    runtime.look_at_log(container.log)

    async def is_written() -> bool:
        return _PRINTED in (runtime.target.files.read(container.log) or "")

    met = await runtime.until(is_written, _WRITTEN_SECONDS)
    runtime.look_at_log(container.log)
    runtime.expect("CRI-36", f"the log holds {_PRINTED!r}", met=met)


@runtime_scenario("CRI-29", needs=("files",))
async def a_log_is_rotated(runtime: Runtime) -> None:
    """Move a log away and have it reopened; do the same where the container has ended."""
    sandbox, commands = await runtime.sandbox(), runtime.target.commands
    runs = await sandbox.running(commands.run(says=_PRINTED), name="runs")
    ends = await sandbox.running(commands.exit(0, after=0.5, says=_PRINTED), name="ends")
    await ends.end()
    for container in (runs, ends):
        runtime.move_log(container.log)
        request = cri.ReopenContainerLogRequest(container_id=container.id)
        await runtime.attempt("ReopenContainerLog", request)
        runtime.look_at_log(container.log)
