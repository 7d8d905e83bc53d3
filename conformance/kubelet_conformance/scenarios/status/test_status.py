"""Statuses: how they are written, and what they keep."""

from kubelet_conformance.node import Node, container, exec_probe, pod, witness


@witness("STATUS-01", "STATUS-08", "STATUS-11", "STATUS-16")
async def test_unchanged_status_is_not_written(node: Node) -> None:
    """A status is written when something has changed, and then no more."""
    with node.slow("CreateContainer", 0.3):
        web = await node.run(container("c1"), container("c2"))
    await web.until_condition("Ready")
    await node.wait(130)


@witness("STATUS-02", "STATUS-09")
async def test_last_of_many_changes_wins(node: Node) -> None:
    """However fast a probe's result flips, the last one stands in the end."""
    web = await node.run(
        container(readinessProbe=exec_probe("xf ready", periodSeconds=1, failureThreshold=1))
    )
    for _ in range(4):
        node.runtime.set_file("ready", there=True)
        await web.until_condition("Ready", within=5)
        node.runtime.set_file("ready", there=False)
        await web.until_condition("Ready", status="False", within=5)
    web.exit(code=1)
    await web.until_running("c1", attempt=1)


@witness("STATUS-03")
async def test_foreign_phase_is_put_right(node: Node) -> None:
    """A phase that another writer set is put right with the next batch."""
    web = await node.run()
    await web.until_condition("Ready")
    node.api.update_status("default", "web", {"phase": "Pending"})
    await web.until_phase("Running", within=30)


@witness("STATUS-04", "STATUS-08")
async def test_successor_of_the_same_name_is_not_touched(node: Node) -> None:
    """The status of a pod that was force deleted is not written to the new pod of its name."""
    old = await node.run(container(command="run stopdelay=8"))
    old.delete(0)
    new = node.want(pod())
    await new.until_running("c1")
    await old.until_stopped()
    await node.wait(12)


@witness("STATUS-05")
async def test_pod_that_is_gone_gets_no_status(node: Node) -> None:
    """A pod whose object vanished is stopped, and its status is not written any more."""
    web = await node.run(container(command="run stopdelay=3"))
    web.delete(0)
    await web.until_stopped()
    await node.wait(25)


@witness("STATUS-06")
async def test_foreign_conditions_are_kept(node: Node) -> None:
    """A condition that is not the kubelet's stays as it is while the kubelet writes its own."""
    web = await node.run()
    foreign = {"type": "example.com/checked", "status": "True", "reason": "Audit"}
    node.api.update_status("default", "web", {"conditions": [foreign]})
    await node.wait(2)
    web.exit(code=1)
    await web.until_running("c1", attempt=1)


@witness("STATUS-08", "STATUS-16", "CONFIG-06")
async def test_start_time_outlives_container_and_sandbox(node: Node) -> None:
    """A pod keeps its start time, and gets the address of its new sandbox, when that is replaced."""
    web = await node.run()
    web.exit(code=1)
    await web.until_running("c1", attempt=1)
    node.runtime.kill_sandbox(web.sandbox().id)
    await web.until_running("c1", attempt=2)
    await node.wait(5)


@witness("STATUS-16")
async def test_host_network_pod_has_the_nodes_address(node: Node) -> None:
    """A pod on the host's network has the host's address."""
    web = await node.run(hostNetwork=True)
    web.exit(code=1)
    await web.until_running("c1", attempt=1)


@witness("STATUS-10")
async def test_ended_container_stays_ended(node: Node) -> None:
    """A container that is not to come again stays terminated while its siblings go on."""
    web = await node.run(container("c1"), container("c2"), container("c3"), restart="OnFailure")
    web.exit("c1", 0)
    await web.until_terminated("c1")
    web.exit("c2", 1)
    await web.until_running("c2", attempt=1)
    await node.wait(5)


@witness("STATUS-12")
async def test_long_messages_are_cut(node: Node) -> None:
    """What containers say at their end shares twelve kibibytes."""
    talker = f"exit 1 1 message={'x' * 4000}"
    names = [f"c{number}" for number in range(1, 6)]
    job = node.want(pod(*(container(name, talker) for name in names), restart="Never"))
    await job.until_phase("Failed")


@witness("STATUS-13", "LOOP-12", "PROBE-10", "STATUS-02")
async def test_readiness_is_told_at_once(node: Node) -> None:
    """A change of readiness is written at once, long before the next resync."""
    web = await node.run(
        container(readinessProbe=exec_probe("xf ready", periodSeconds=2, failureThreshold=2))
    )
    node.runtime.set_file("ready", there=True)
    await web.until_condition("Ready", within=6)
    node.runtime.set_file("ready", there=False)
    await web.until_condition("Ready", status="False", within=9)


@witness("TERM-18", "TERM-19")
async def test_status_of_a_deleted_pod_is_dropped(node: Node) -> None:
    """Nothing is written any more for a pod that is gone."""
    web = await node.run()
    web.delete()
    await web.until_gone()
    await node.wait(25)


@witness("STATUS-15", with_api_server=False)
async def test_node_without_api_server(node: Node) -> None:
    """A kubelet without an API server runs its static pods and writes nothing."""
    web = node.want_static(pod(container(command="seq 1@3 run")))
    await web.until_started("c1", attempt=1)
    await node.wait(5)


@witness("STATUS-19", "TERM-22")
async def test_completed_pod_can_be_deleted(node: Node) -> None:
    """A pod that ended long ago goes at once when it is deleted, though its status has nothing new."""
    job = node.want(pod(container(command="exit 0 1"), restart="Never", name="job"))
    await job.until_phase("Succeeded")
    await node.wait(20)
    job.delete()
    await job.until_gone(within=10)


@witness("STATUS-01", "LOOP-01", "EVENTS-05", undisturbed="it waits for what a fault lets pass unseen")
async def test_status_is_written_once_the_api_server_is_back(node: Node) -> None:
    """What could not be written is written when the API server is back, with nothing lost."""
    web = await node.run()
    with node.outage():
        web.exit(code=1)
        await web.until_started("c1", attempt=1)
        await node.wait(30)
    await web.until_running("c1", attempt=1, within=40)


@witness("STATUS-19")
async def test_deletion_of_a_completed_pod_is_carried_out(node: Node) -> None:
    """A pod that ended long ago is released by the kubelet, though a finalizer still holds its object."""
    manifest = pod(container(command="exit 0 1"), restart="Never", name="job")
    manifest["metadata"]["finalizers"] = ["example.com/hold"]
    job = node.want(manifest)
    await job.until_phase("Succeeded")
    await node.wait(21)
    job.delete()
    await node.wait(20)
    job.update(metadata={"finalizers": None})
    await job.until_gone(within=5)


@witness("STATUS-20", "STATUS-01")
async def test_write_that_failed_is_repeated(node: Node) -> None:
    """A status whose PATCH the API server could not take is written again soon."""
    with node.slow("PullImage", 40):
        with node.fault("patch pods/status", times=1):
            web = node.want(pod(container(image="registry/big:1")))
            await web.until_called("PullImage", done=False)
            await node.wait(1)
        await web.until_waiting("c1", "ContainerCreating", within=30)
        await web.until_running("c1")


@witness("STATUS-10", "RESTART-04", undisturbed="what has ended well is not run again by a later sync")
async def test_lost_container_does_not_come_back(node: Node) -> None:
    """A container of a pod that runs once stays shown as ended though it is made again, its state unknown."""
    job = await node.run(*(container(f"c{number}") for number in range(1, 5)), restart="Never")
    for name in ("c3", "c4"):
        job.exit(name, 1)
        await node.wait(3)
    node.runtime.lose_track(job.container("c1").id)
    await job.until_started("c1", attempt=1)
    await node.wait(5)


@witness("STATUS-13")
async def test_readiness_does_not_wait_for_the_worker(node: Node) -> None:
    """A change of readiness is written while the pod's worker waits for the image of another container."""
    probed = container("c1", readinessProbe=exec_probe("xf ready", periodSeconds=2, failureThreshold=1))
    web = await node.run(probed, container("c2", imagePullPolicy="Always"))
    with node.slow("PullImage", 60):
        web.exit("c2", 1)
        await web.until_called("PullImage", count=2, done=False)
        for there in (True, False):
            node.runtime.set_file("ready", there=there)
            await node.wait(8)
    await web.until_running("c2", attempt=1)


@witness("STATUS-14")
async def test_static_pod_that_comes_back_begins_anew(node: Node) -> None:
    """A static pod that was gone for a while, and comes back as it was, has a start time of its own."""
    web = node.want_static(pod())
    await web.until_phase("Running")
    await node.wait(5)
    node.manifests.remove("web.yaml")
    await web.until_stopped()
    await node.wait(60)
    node.want_static(pod())
    await web.until_running("c1")
    await node.wait(5)


@witness("STATUS-17", "PHASE-13", undisturbed="its pod has a deadline, which a fault may use up")
async def test_reason_of_a_phase_stays_with_it(node: Node) -> None:
    """Why a pod has failed is reported with its phase for as long as the pod is there."""
    job = await node.run(restart="Never", name="job", activeDeadlineSeconds=5, grace=1)
    await job.until_phase("Failed")
    mark = {"type": "example.com/seen", "status": "True"}
    node.api.update_status("default", "job", {"conditions": [mark]})
    await node.wait(15)
    await node.restart_kubelet()
    await node.wait(15)
    node.api.update_status("default", "job", {"reason": ""})
    await node.wait(15)


@witness("STATUS-18", kubernetes=(1, 34))
async def test_generation_is_told(node: Node) -> None:
    """A status reports which generation of the spec it was made from."""
    web = await node.run(container("c1"), container("c2"))
    web.set_image("c2", "img:2")
    await web.until_running("c2", attempt=1)
    await node.wait(25)


@witness("STATUS-07")
async def test_mark_of_an_eviction_stays_with_the_end(node: Node) -> None:
    """After a kubelet has evicted a pod and the node went down, the next one keeps the mark and the phase."""
    await node.run()
    await node.kubelet.kill()
    node.runtime.reboot()
    mark = {"type": "DisruptionTarget", "status": "True", "reason": "TerminationByKubelet"}
    evicted = {"phase": "Failed", "reason": "Evicted", "message": "The node was low on resource: memory."}
    node.api.update_status("default", "web", {**evicted, "conditions": [mark]})
    await node.kubelet.start()
    await node.wait(15)
