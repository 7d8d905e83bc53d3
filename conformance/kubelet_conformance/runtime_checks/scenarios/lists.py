"""Lists and their filters."""

from collections.abc import Iterable

from cri_api.v1 import api_pb2 as cri

from kubelet_conformance.runtime_checks.runtime import Runtime
from kubelet_conformance.runtime_checks.scenario import runtime_scenario

_UID = "io.kubernetes.pod.uid"
_NAME = "io.kubernetes.container.name"
_NOBODY = "0" * 64


def _found(runtime: Runtime, what: str, listed: Iterable[object], wanted: Iterable[str]) -> None:
    """The list has to hold these ids and no others."""
    ids = sorted(getattr(one, "id", "") for one in listed)
    runtime.expect(
        "CRI-09", f"a list by {what} holds what meets it and nothing else", met=ids == sorted(wanted)
    )


@runtime_scenario("CRI-09")
async def sandboxes_are_found_by_every_part_of_a_filter(runtime: Runtime) -> None:
    """List two sandboxes, one of them stopped, by id, state and labels, and by several of these."""
    live, dead = await runtime.sandbox("live"), await runtime.sandbox("dead")
    await dead.stop()
    ready = cri.PodSandboxStateValue(state=cri.SANDBOX_READY)
    notready = cri.PodSandboxStateValue(state=cri.SANDBOX_NOTREADY)
    of_live = {_UID: live.config.metadata.uid}
    find = runtime.list_sandboxes
    _found(runtime, "id", await find(id=live.id), [live.id])
    _found(runtime, "state", await find(state=ready, label_selector=of_live), [live.id])
    _found(runtime, "another state", await find(state=notready, label_selector=of_live), [])
    _found(runtime, "id and another state", await find(id=live.id, state=notready), [])
    _found(runtime, "labels", await find(label_selector=dict(dead.config.labels)), [dead.id])
    _found(runtime, "an unknown label", await find(label_selector=of_live | {"nobody": "set this"}), [])
    _found(runtime, "an unknown id", await find(id=_NOBODY), [])
    await runtime.look()


@runtime_scenario("CRI-09")
async def containers_are_found_by_every_part_of_a_filter(runtime: Runtime) -> None:
    """List containers of two sandboxes, running and ended, by every part of a filter and by several."""
    first, second = await runtime.sandbox("first"), await runtime.sandbox("second")
    runs = await first.running(name="runs")
    ends = await first.running(runtime.target.commands.exit(0, after=0.5), name="ends")
    other = await second.running(name="runs")
    await ends.end()
    running = cri.ContainerStateValue(state=cri.CONTAINER_RUNNING)
    exited = cri.ContainerStateValue(state=cri.CONTAINER_EXITED)
    find = runtime.list_containers
    _found(runtime, "id", await find(id=runs.id), [runs.id])
    _found(runtime, "sandbox", await find(pod_sandbox_id=first.id), [runs.id, ends.id])
    _found(runtime, "sandbox and state", await find(pod_sandbox_id=first.id, state=exited), [ends.id])
    _found(runtime, "id and another sandbox", await find(id=other.id, pod_sandbox_id=first.id), [])
    _found(runtime, "id and another state", await find(id=ends.id, state=running), [])
    of_pod = {_UID: second.config.metadata.uid}
    _found(runtime, "labels", await find(label_selector=of_pod | {_NAME: "runs"}), [other.id])
    _found(
        runtime, "labels that nothing has both of", await find(label_selector=of_pod | {_NAME: "ends"}), []
    )
    _found(runtime, "the pod", await find(label_selector=of_pod), [other.id])
    _found(runtime, "an unknown id", await find(id=_NOBODY), [])
    _found(runtime, "an unknown sandbox", await find(pod_sandbox_id=_NOBODY), [])
    await runtime.look()
