"""Situations that kubelets of the past have got wrong, and that no other area covers."""

from kubelet_conformance.node import Node, container, exec_hook, exec_probe, pod, witness


@witness("WORK-03", "TERM-18", undisturbed="it waits for what a fault lets pass unseen")
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


@witness("SANDBOX-02")
async def test_start_that_timed_out_is_looked_at_first(node: Node) -> None:
    """A container whose start took effect but timed out is found, and not made a second time."""
    with node.fault("StartContainer", effect="after", code="DEADLINE_EXCEEDED", times=1):
        web = node.want(pod())
        await web.until_called("StartContainer")
        web.annotate({"colour": "green"})
    await web.until_running("c1")
    await node.wait(20)


@witness("RESTARTKUBELET-05", "WORK-14")
async def test_success_outlives_its_record(node: Node) -> None:
    """A pod that has succeeded is not run again, though every record of its container is gone."""
    job = node.want(pod(container("c1", "exit 0 1"), name="job", restart="Never"))
    await job.until_phase("Succeeded")
    await node.kubelet.kill()
    node.runtime.remove_container(job.container().id)
    await node.wait(2)
    await node.kubelet.start()
    await node.wait(10)


@witness(
    "RESTARTKUBELET-05",
    "WORK-14",
    "PHASE-13",
    "WORK-13",
    "EVENTS-08",
    undisturbed="its pod has a deadline, which a fault may use up",
)
async def test_deadline_is_the_end_of_a_pod(node: Node) -> None:
    """A pod that was ended at its deadline is not started by a kubelet that comes back."""
    web = await node.run(activeDeadlineSeconds=5)
    await web.until_phase("Failed")
    await node.restart_kubelet()
    await node.wait(10)


@witness("RESTARTKUBELET-01")
async def test_labels_that_cannot_be_read_cost_no_pod(node: Node) -> None:
    """A static pod that selects its node goes on while a new kubelet cannot reach the API server."""
    web = node.want_static(pod(nodeSelector={"kubernetes.io/hostname": node.name}))
    await web.until_running("c1")
    await node.kubelet.kill()
    with node.outage():
        await node.kubelet.start()
        await node.wait(15)


@witness("TERM-18", "TERM-32", "PHASE-13", undisturbed="its pod has a deadline, which a fault may use up")
async def test_deleted_at_its_deadline_goes_when_it_has_stopped(node: Node) -> None:
    """A pod deleted while it stops for its deadline goes only when its containers have ended."""
    web = await node.run(container(command="run stopdelay=12"), activeDeadlineSeconds=5)
    await web.until_called("StopContainer", done=False)
    web.delete()
    await web.until_gone()


@witness("START-02", "RESTART-13", "PHASE-03", "CSTAT-04")
async def test_end_right_after_the_start_is_no_failed_start(node: Node) -> None:
    """A container that ends the moment it was started has run, unlike one that cannot be started."""
    web = node.want(pod(container(command="exit 1 0")))
    await web.until_held_back()
    await node.wait(30)
    with node.fault("StartContainer", code="UNKNOWN", message="no such command"):
        await web.until_waiting("c1", "RunContainerError", within=60)


@witness("PROBE-13", "PROBE-05")
async def test_readiness_is_probed_to_the_end(node: Node) -> None:
    """While a deleted pod stops its liveness is not probed any more, its readiness is."""
    node.runtime.set_file("ready", there=True)
    web = await node.run(
        container(
            command="run stopdelay=20",
            livenessProbe=exec_probe("x 0 0", periodSeconds=2),
            readinessProbe=exec_probe("xf ready", periodSeconds=2, failureThreshold=1),
        )
    )
    await web.until_condition("Ready")
    web.delete()
    await node.wait(5)
    node.runtime.set_file("ready", there=False)
    await web.until_condition("Ready", status="False")
    await web.until_gone()


@witness("PROBE-06", "PROBE-07")
async def test_failures_of_a_former_instance_do_not_count(node: Node) -> None:
    """Each instance has to fail its liveness probe as often in a row as the threshold says."""
    failing = exec_probe("x 1 0", periodSeconds=2, failureThreshold=3)
    web = await node.run(container(livenessProbe=failing))
    await web.until_running("c1", attempt=2)


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


@witness("PROBE-15", "PROBE-22")
async def test_slow_probe_is_a_failed_one(node: Node) -> None:
    """A container whose liveness probe never answers in time is restarted."""
    slow = exec_probe("x 0 5", periodSeconds=4, timeoutSeconds=1, failureThreshold=2)
    web = await node.run(container(livenessProbe=slow))
    await web.until_running("c1", attempt=1)


@witness("RESTART-02", "RESTART-17", "LOOP-10")
async def test_death_beside_living_containers(node: Node) -> None:
    """When one of several containers dies again and again the others go on, until their image changes."""
    web = await node.run(container("c1"), container("c2"), container("c3"))
    for code in (1, 2):
        await node.wait(5)
        web.exit("c3", code)
        await web.until_running("c3", attempt=code)
    await node.wait(10)
    web.set_image("c1", "img:2")
    await web.until_running("c1", attempt=1)


@witness("HOOK-05", "WORK-12", "TERM-05")
async def test_short_hook_does_not_hold_up_the_stop(node: Node) -> None:
    """The stop of a container follows its preStop hook at once."""
    web = await node.run(container(lifecycle={"preStop": exec_hook("x 0 1")}), grace=60)
    web.delete()
    await web.until_gone()


@witness("LOOP-09", "RESTART-01", "SANDBOX-02")
async def test_pod_whose_records_all_vanish_is_made_again(node: Node) -> None:
    """A pod of which the runtime has lost every record is made again."""
    web = await node.run()
    node.runtime.remove_sandbox(web.sandbox().id)
    await web.until_called("RunPodSandbox", count=2)
    await node.wait(15)


@witness("PHASE-02", "PHASE-15")
async def test_missing_image_is_no_failure(node: Node) -> None:
    """A pod that is not to be restarted stays Pending as long as its image cannot be pulled."""
    node.runtime.publish_image("img:none", there=False)
    job = node.want(pod(container(image="img:none"), restart="Never"))
    await job.until_waiting("c1", "ImagePullBackOff")
    await node.wait(30)


@witness("PHASE-02", "TERM-16")
async def test_deleted_pod_that_never_ran_has_not_succeeded(node: Node) -> None:
    """A pod whose container could never be made has not succeeded when it is deleted."""
    with node.fault("CreateContainer"):
        job = node.want(pod(restart="Never"))
        await job.until_waiting("c1", "CreateContainerError")
        job.delete()
        await job.until_gone()


@witness("PHASE-11", "WORK-05")
async def test_phase_that_another_ended_stays(node: Node) -> None:
    """A pod that another writer declares Failed is stopped, and stays Failed however it ends."""
    web = await node.run()
    node.api.update_status("default", "web", {"phase": "Failed"})
    web.annotate({"colour": "green"})
    await web.until_stopped()
    await node.wait(12)


@witness("STATUS-03")
async def test_phase_of_another_is_no_update(node: Node) -> None:
    """A pod that another writer declares Failed, and nothing else, is not synced for that."""
    web = await node.run()
    node.api.update_status("default", "web", {"phase": "Failed"})
    await node.wait(12)
    web.annotate({"colour": "green"})
    await node.wait(12)


@witness("WORK-10", "TERM-25", kubernetes=(1, 27))
async def test_kill_of_a_forgotten_pod_is_tried_again(node: Node) -> None:
    """A pod that was force deleted is stopped, though its first stop fails."""
    web = await node.run()
    with (
        node.fault("StopContainer", code="UNKNOWN", times=1),
        node.fault("StopPodSandbox", code="UNKNOWN", times=1),
    ):
        web.delete(0)
        await web.until_stopped()


@witness("SANDBOX-18", "WORK-24", "RESTARTKUBELET-06")
async def test_orphan_is_stopped_with_its_sandbox(node: Node) -> None:
    """A pod that was force deleted while the kubelet was down is stopped whole."""
    web = await node.run()
    await node.kubelet.kill()
    web.delete(0)
    await node.wait(2)
    await node.kubelet.start()
    await web.until_stopped()


@witness("INIT-12", "SANDBOX-05")
async def test_created_app_proves_nothing(node: Node) -> None:
    """A pod whose app container was created only, and whose sandbox died then, initializes itself again."""
    inits = (container("i1", "exit 0 1"), container("i2", "exit 0 1"))
    with node.fault("StartContainer", container="c1"):
        web = node.want(pod(init=inits))
        await web.until_called("StartContainer", "c1")
        node.runtime.kill_sandbox(web.sandbox().id)
        await web.until_called("RunPodSandbox", count=2)
    await web.until_running("c1")
