"""Stories that kubelets of the past have got wrong, and that no other area tells."""

from __future__ import annotations

from kubelet_conformance.node import Node, container, exec_hook, exec_probe, pod, witness


@witness("WORK-03", "WORK-05")
async def test_exit_does_not_undo_a_deletion(node: Node) -> None:
    """A pod deleted in a slow step goes when that is done, though a container of it ends meanwhile."""
    web = node.want(pod(container("c1"), container("c2")))
    with node.slow("CreateContainer", 9, container="c2"):
        await web.until_called("StartContainer", "c1")
        await web.until_called("CreateContainer", "c2", done=False)
        web.delete()
        await node.wait(2)
        web.annotate({"colour": "green"})
        await node.wait(1)
        web.exit("c1", 1)
        await web.until_gone()


@witness("WORK-17")
async def test_start_that_timed_out_is_looked_at_first(node: Node) -> None:
    """An instance whose start timed out, and was done, is found and not made a second time."""
    web = await node.run()
    with node.fault("StartContainer", effect="after", code="DEADLINE_EXCEEDED", times=1):
        web.exit(code=1)
        await web.until_called("StartContainer", count=2)
        web.annotate({"colour": "green"})
    await web.until_running("c1", attempt=1)
    await node.wait(20)


@witness("RESTARTKUBELET-05", "PHASE-11")
async def test_success_outlives_its_record(node: Node) -> None:
    """A pod that has succeeded is not run again, though nobody has a record of its container."""
    job = node.want(pod(container("c1", "exit 0 1"), name="job", restart="Never"))
    await job.until_phase("Succeeded")
    await node.kubelet.kill()
    node.runtime.remove_container(job.container().id)
    await node.wait(2)
    await node.kubelet.start()
    await node.wait(10)


@witness("RESTARTKUBELET-05", "PHASE-13")
async def test_deadline_is_the_end_of_a_pod(node: Node) -> None:
    """A pod that was ended at its deadline is not started by a kubelet that comes back."""
    web = await node.run(activeDeadlineSeconds=5)
    await web.until_phase("Failed")
    await node.restart_kubelet()
    await node.wait(10)


@witness("RESTARTKUBELET-01", "ADMIT-05", "STATIC-10")
async def test_labels_that_cannot_be_read_cost_no_pod(node: Node) -> None:
    """A static pod that selects its node goes on while a new kubelet cannot reach the API server."""
    web = node.want_static(pod(nodeSelector={"kubernetes.io/hostname": node.name}))
    await web.until_running("c1")
    await node.kubelet.kill()
    with node.outage():
        await node.kubelet.start()
        await node.wait(15)


@witness("TERM-18", "TERM-32", "PHASE-13")
async def test_deleted_at_its_deadline_goes_when_it_has_stopped(node: Node) -> None:
    """A pod deleted while it stops for its deadline goes only when its containers have ended."""
    web = await node.run(container(command="run stopdelay=12"), activeDeadlineSeconds=5)
    await web.until_called("StopContainer", done=False)
    web.delete()
    await web.until_gone()


@witness("TERM-18", "TERM-24", "WORK-04")
async def test_deleted_while_its_sandbox_is_made(node: Node) -> None:
    """A pod deleted while its sandbox is being made goes when that sandbox has been stopped."""
    with node.slow("RunPodSandbox", 6):
        web = node.want(pod())
        await web.until_called("RunPodSandbox", done=False)
        await node.wait(1)
        web.delete()
        await web.until_gone()


@witness("START-02", "PHASE-03", "CSTAT-04")
async def test_end_right_after_the_start_is_no_failed_start(node: Node) -> None:
    """A container that ends the moment it was started has run, and waits for its back-off."""
    web = node.want(pod(container(command="exit 1 0")))
    await web.until_waiting("c1", "CrashLoopBackOff")
    await node.wait(30)


@witness("PROBE-13", "PROBE-05")
async def test_readiness_is_probed_to_the_end(node: Node) -> None:
    """While a deleted pod stops its liveness is not probed any more, its readiness is."""
    node.runtime.set_file("ready", there=True)
    probes = {
        "livenessProbe": exec_probe("x 0 0", periodSeconds=2),
        "readinessProbe": exec_probe("xf ready", periodSeconds=2, failureThreshold=1),
    }
    web = await node.run(container(command="run stopdelay=20", **probes))
    await web.until_condition("Ready")
    web.delete()
    await node.wait(5)
    node.runtime.set_file("ready", there=False)
    await web.until_condition("Ready", status="False")
    await web.until_gone()


@witness("PROBE-13")
async def test_liveness_is_not_probed_after_the_deadline(node: Node) -> None:
    """While a pod stops for its deadline its liveness is not probed any more."""
    stubborn = container(command="run stopdelay=15", livenessProbe=exec_probe("x 0 0", periodSeconds=2))
    web = await node.run(stubborn, activeDeadlineSeconds=8)
    await web.until_phase("Failed")


@witness("PROBE-03", "CSTAT-09", "PROBE-02")
async def test_every_instance_has_to_start(node: Node) -> None:
    """An instance that follows one whose liveness failed is probed for its startup before all else."""
    for file in ("up", "well"):
        node.runtime.set_file(file, there=True)
    web = await node.run(
        container(
            startupProbe=exec_probe("xf up", periodSeconds=3, failureThreshold=20),
            livenessProbe=exec_probe("xf well", periodSeconds=1, failureThreshold=2),
        )
    )
    await node.wait(8)
    for file in ("up", "well"):
        node.runtime.set_file(file, there=False)
    await web.until_running("c1", attempt=1)
    node.runtime.set_file("well", there=True)
    await node.wait(8)
    node.runtime.set_file("up", there=True)
    await node.wait(8)


@witness("PROBE-15", "PROBE-07", "PROBE-22")
async def test_slow_probe_is_a_failed_one(node: Node) -> None:
    """A container whose liveness probe never answers in time is restarted."""
    slow = exec_probe("x 0 5", periodSeconds=4, timeoutSeconds=1, failureThreshold=2)
    web = await node.run(container(livenessProbe=slow))
    await web.until_running("c1", attempt=1)


@witness("RESTART-02", "RESTART-17", "LOOP-10")
async def test_death_beside_living_containers(node: Node) -> None:
    """When one of several containers dies again and again the others go on."""
    web = await node.run(container("c1"), container("c2"), container("c3"))
    for code in (1, 2):
        web.exit("c3", code)
        await web.until_running("c3", attempt=code)
    await node.wait(10)


@witness("HOOK-05", "TERM-05")
async def test_short_hook_does_not_hold_up_the_stop(node: Node) -> None:
    """The stop of a container follows its preStop hook at once."""
    web = await node.run(container(lifecycle={"preStop": exec_hook("x 0 1")}), grace=60)
    web.delete()
    await web.until_gone()
