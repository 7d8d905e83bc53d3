"""See whether a runtime can run a container at all, before stories make something of it that it cannot."""

from __future__ import annotations

from typing import Any

import grpc

from kubelet_conformance.runtime_checks.runtime import Runtime
from kubelet_conformance.targets.choice import TargetError
from kubelet_conformance.targets.direct import DirectRuntime
from kubelet_conformance.trace.recorder import RecordedReply, Recorder

_REMEDIES = {
    "RunPodSandbox": "see that its network (CNI) and its sandbox image are there",
    "CreateContainer": "name another image with --image",
    "StartContainer": "the image must have a shell, sh: name one with --image",
}


async def see_that_containers_run(target: DirectRuntime, run_id: str) -> None:
    """Run a container that ends at once, by its shell. Raises `TargetError` with a remedy if that fails."""
    recorder = Recorder(target.now)
    runtime = Runtime(target, recorder, "trial", run_id)
    try:
        container = await (await runtime.sandbox()).running(target.commands.exit(0))
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
