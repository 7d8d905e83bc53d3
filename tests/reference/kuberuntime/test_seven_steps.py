"""One pass over a pod: its steps in order, and what ends it."""

from on_loop import run_by
from runtime_world import RuntimeWorld, a_container, a_pod, in_runtime_world

from kubelet_reference.api.results import ProbeOutcome


@run_by(in_runtime_world)
async def test_new_pod(w: RuntimeWorld) -> None:
    """A new pod gets a sandbox, its status is read, and each container is looked up, made and started."""
    result = await w.sync(a_pod(a_container("c1"), a_container("c2")))

    assert result.error is None
    assert [call.rpc for call in w.runtime.calls[2:]] == [
        "RunPodSandbox",
        "PodSandboxStatus",
        *("ImageStatus", "ImageStatus", "CreateContainer", "StartContainer"),
        *("ImageStatus", "ImageStatus", "CreateContainer", "StartContainer"),
    ]
    assert w.done[0] == "RunPodSandbox #0"
    assert w.events()[:3] == [
        'Pulled: Container image "img:1" already present on machine',
        "Created: Created container: c1",
        "Started: Started container c1",
    ]


@run_by(in_runtime_world)
async def test_dead_sandbox_is_replaced(w: RuntimeWorld) -> None:
    """Containers are stopped, then the sandbox; init records go, and all begins anew (SANDBOX-04, 05)."""
    pod = a_pod(initContainers=[a_container("i1", "exit", "0", "0")])
    for _ in range(2):
        await w.sync(pod)
        await w.clock.sleep(1)
    await w.sandbox_dies(pod)
    w.forget()

    await w.sync(pod)

    assert w.done == [
        "StopContainer c1#0 30",
        "StopPodSandbox",
        "RemoveContainer i1#0",
        "RunPodSandbox #1",
        "CreateContainer i1#1",
        "StartContainer i1#1",
    ]
    assert w.events("SandboxChanged") == ["Pod sandbox changed, it will be killed and re-created."]


@run_by(in_runtime_world)
async def test_failed_kill_ends_the_pass(w: RuntimeWorld) -> None:
    """After a failed stop nothing is made in that pass (SYNC-06, SYNC-24)."""
    pod = a_pod(a_container("c1"), a_container("c2"))
    await w.sync(pod)
    w.probes[(await w.newest(pod, "c1")).id] = ProbeOutcome.FAILURE
    w.forget()
    w.runtime.faults.add("StopContainer", times=1)

    result = await w.sync(pod)

    assert w.done == ["StopContainer c1#0 30"]
    assert result.error == (
        'failed to "KillContainer" for "c1" with KillContainerError: '
        '"rpc error: code = Unknown desc = injected"'
    )


@run_by(in_runtime_world)
async def test_failed_sandbox(w: RuntimeWorld) -> None:
    """A failed RunPodSandbox is reported; nothing else is tried, and the attempt stays 0 (SANDBOX-10)."""
    w.runtime.faults.add("RunPodSandbox", times=1)

    result = await w.sync(a_pod())

    assert w.done == ["RunPodSandbox #0"]
    assert w.events("FailedCreatePodSandBox") == [
        "Failed to create pod sandbox: rpc error: code = Unknown desc = injected"
    ]
    assert "Failed to create sandbox" in result.problem


@run_by(in_runtime_world)
async def test_failed_sandbox_of_an_ending_pod(w: RuntimeWorld) -> None:
    """If the pod is to end anyway, a failed RunPodSandbox is nobody's concern (SYNC-14, SYNC-19)."""
    w.runtime.faults.add("RunPodSandbox", times=1)
    w.ending.append("u1")

    result = await w.sync(a_pod())

    assert result.error is None
    assert w.events() == []
    assert w.metrics.registry.get_sample_value("kubelet_started_pods_errors_total") == 0


@run_by(in_runtime_world)
async def test_ephemeral_first_and_once(w: RuntimeWorld) -> None:
    """An ephemeral container starts before others, sees its target, and starts once (EPH-01, 03, 07)."""
    await w.sync(a_pod())
    debug = a_container("dbg", "exit", "3", "0", targetContainerName="c1")
    pod = a_pod(ephemeralContainers=[debug])
    await w.exits(pod, "c1", 1)
    w.forget()

    await w.sync(pod)
    await w.clock.sleep(1)
    await w.sync(pod)

    made = [each for each in w.done if each.startswith("Create")]

    assert made == ["CreateContainer dbg#0", "CreateContainer c1#1"]
    options = w.calls("CreateContainer")[0].request.config.linux.security_context.namespace_options
    assert w.runtime.instances[options.target_id] == "c1#0"


@run_by(in_runtime_world)
async def test_crash_loop(w: RuntimeWorld) -> None:
    """The first restart is immediate, the second waits 10 s from the end, and says so (BACKOFF-01, 06)."""
    pod = a_pod(a_container("c1", "exit", "1", "1"))
    for _ in range(2):
        await w.sync(pod)
        await w.clock.sleep(2)

    refused = await w.sync(pod)
    await w.clock.sleep(9.5)
    await w.sync(pod)

    assert refused.error == (
        'failed to "StartContainer" for "c1" with CrashLoopBackOff: '
        '"back-off 10s restarting failed container=c1 pod=web_default(u1)"'
    )
    assert w.events("BackOff") == ["Back-off restarting failed container c1 in pod web_default(u1)"]
    assert [each for each in w.done if each.startswith("Create")] == [
        "CreateContainer c1#0",
        "CreateContainer c1#1",
        "CreateContainer c1#2",
    ]
    count = w.metrics.registry.get_sample_value
    assert count("kubelet_started_containers_total", {"container_type": "container"}) == 3


@run_by(in_runtime_world)
async def test_lists_are_the_same_while_nothing_changes(w: RuntimeWorld) -> None:
    """An unchanged runtime gives the very same tuple of pods."""
    await w.sync(a_pod())
    first, second = await w.side.reader.list_pods(), await w.side.reader.list_pods()
    await w.sync(a_pod(uid="u2", metadata={"name": "other"}))
    third = await w.side.reader.list_pods()

    assert first is second
    assert [pod.uid for pod in third] == ["u1", "u2"]
    assert [pod.uid for pod in await w.side.reader.list_running_pods()] == ["u1", "u2"]
