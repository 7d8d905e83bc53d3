"""Sandboxes: run, reported, stopped, removed."""

import json

from cri_api.v1 import api_pb2 as cri

from kubelet_conformance.runtime_checks.runtime import Runtime
from kubelet_conformance.runtime_checks.scenario import runtime_scenario

_NOBODY = "0" * 64
"""An id that no runtime gives out."""


@runtime_scenario("CRI-03", "CRI-21", "CRI-34")
async def a_new_sandbox_is_ready(runtime: Runtime) -> None:
    """Run a sandbox and read it at once."""
    sandbox = await runtime.sandbox()
    await sandbox.status()
    await runtime.look()


@runtime_scenario("CRI-03", "CRI-35")
async def a_sandbox_that_cannot_be_run_leaves_nothing(runtime: Runtime) -> None:
    """Ask for a runtime handler that is not configured."""
    await runtime.call("Status", cri.StatusRequest())
    config = runtime.config()
    asked = cri.RunPodSandboxRequest(config=config, runtime_handler="nobody-configured-this")
    refused = await runtime.attempt("RunPodSandbox", asked) != "OK"
    runtime.expect("CRI-35", "a runtime handler that is not configured is refused", met=refused)
    left = await runtime.list_sandboxes(label_selector={"io.kubernetes.pod.uid": config.metadata.uid})
    usable = any(one.state == cri.SANDBOX_READY for one in left)
    runtime.expect("CRI-03", "a sandbox that could not be run is not READY", met=not (refused and usable))


@runtime_scenario("CRI-04", "CRI-10")
async def attempts_follow_one_another(runtime: Runtime) -> None:
    """Run a pod's sandbox again and again, each attempt once, and one attempt twice."""
    for attempt in range(3):
        sandbox = await runtime.sandbox(attempt=attempt)
        await sandbox.status()
        await runtime.attempt("RunPodSandbox", cri.RunPodSandboxRequest(config=sandbox.config))
        await sandbox.stop()
    await runtime.look()


@runtime_scenario("CRI-18")
async def labels_of_a_sandbox_come_back(runtime: Runtime) -> None:
    """Give a sandbox labels and annotations of unusual kinds."""
    config = runtime.config()
    config.labels.update({"empty": "", "a.b.c/d-e_f": "A.b-C_9"})
    large = json.dumps({f"key {number}": "ü\n\t\"'" * 20 for number in range(100)})
    config.annotations.update({"large/json": large, "empty": "", "lines": "a\nb\r\n"})
    sandbox = await runtime.sandbox(config=config)
    await sandbox.status()
    await runtime.look()


@runtime_scenario("CRI-21", "CRI-22")
async def namespaces_come_back(runtime: Runtime) -> None:
    """Run a sandbox in the node's network, one with shared processes, and a plain one."""
    for name, network, pid in (
        ("plain", cri.POD, cri.CONTAINER),
        ("host", cri.NODE, cri.CONTAINER),
        ("shared", cri.POD, cri.POD),
    ):
        config = runtime.config(name)
        options = config.linux.security_context.namespace_options
        options.network, options.pid = network, pid
        if network == cri.NODE:
            config.hostname = ""
        sandbox = await runtime.sandbox(config=config)
        await sandbox.status()


@runtime_scenario("CRI-05", "CRI-20", "CRI-43")
async def a_stopped_sandbox_runs_nothing(runtime: Runtime) -> None:
    """Stop a sandbox in which a container runs that would take long to end, and read both, twice."""
    sandbox = await runtime.sandbox()
    container = await sandbox.running(runtime.target.commands.run(stop_delay=60))
    for _ in range(2):
        await runtime.ended(sandbox.stop())
        await sandbox.status()
        await container.status()
    await runtime.look()


@runtime_scenario("CRI-05", "CRI-06", "CRI-07", "CRI-08", "CRI-15")
async def what_is_not_there_is_no_error(runtime: Runtime) -> None:
    """Stop, remove and read what was never made."""
    await runtime.attempt("StopPodSandbox", cri.StopPodSandboxRequest(pod_sandbox_id=_NOBODY))
    await runtime.attempt("RemovePodSandbox", cri.RemovePodSandboxRequest(pod_sandbox_id=_NOBODY))
    await runtime.attempt("PodSandboxStatus", cri.PodSandboxStatusRequest(pod_sandbox_id=_NOBODY))
    await runtime.attempt("StopContainer", cri.StopContainerRequest(container_id=_NOBODY, timeout=1))
    await runtime.attempt("RemoveContainer", cri.RemoveContainerRequest(container_id=_NOBODY))
    await runtime.attempt("ContainerStatus", cri.ContainerStatusRequest(container_id=_NOBODY))


@runtime_scenario("CRI-06", "CRI-07", "CRI-15")
async def a_removed_sandbox_takes_its_containers_along(runtime: Runtime) -> None:
    """Remove a stopped sandbox with a container that ended and one that never started, and do it again."""
    sandbox = await runtime.sandbox()
    container = await sandbox.running()
    await sandbox.create(name="c2")
    await sandbox.stop()
    remove = cri.RemovePodSandboxRequest(pod_sandbox_id=sandbox.id)
    await runtime.attempt("RemovePodSandbox", remove)
    await runtime.look()
    await runtime.attempt("RemovePodSandbox", remove)
    await runtime.attempt("PodSandboxStatus", cri.PodSandboxStatusRequest(pod_sandbox_id=sandbox.id))
    await runtime.attempt("ContainerStatus", cri.ContainerStatusRequest(container_id=container.id))
    await runtime.attempt("RemoveContainer", cri.RemoveContainerRequest(container_id=container.id))
    await runtime.attempt("StopPodSandbox", cri.StopPodSandboxRequest(pod_sandbox_id=sandbox.id))


@runtime_scenario("CRI-06")
async def a_sandbox_is_removed_by_force(runtime: Runtime) -> None:
    """Remove a sandbox in which a container runs, without having stopped it."""
    sandbox = await runtime.sandbox()
    await sandbox.running()
    await runtime.attempt("RemovePodSandbox", cri.RemovePodSandboxRequest(pod_sandbox_id=sandbox.id))
    await runtime.look()


@runtime_scenario("CRI-11")
async def containers_need_a_ready_sandbox(runtime: Runtime) -> None:
    """Create a container in a sandbox that was stopped, and in one that was never run."""
    sandbox = await runtime.sandbox()
    await sandbox.create()
    await sandbox.stop()
    await runtime.attempt("CreateContainer", sandbox.request(name="c2"))
    asked = sandbox.request(name="c3")
    asked.pod_sandbox_id = _NOBODY
    await runtime.attempt("CreateContainer", asked)
