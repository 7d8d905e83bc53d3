"""Garbage: which records of dead containers and sandboxes are removed, and when."""

from kubelet_conformance.node import Node, container, exec_hook, pod, witness


@witness("GC-01", "GC-10")
async def test_newest_dead_record_is_kept(node: Node) -> None:
    """Of a container that keeps ending the newest record stays and the one before it goes."""
    web = node.want(pod(container("c1", "exit 1 1")))
    await web.until_started("c1", attempt=3)
    await node.until(lambda: len(web.containers("c1")) == 1, "one record is left", within=10)


@witness("GC-04", "TERM-12")
async def test_unknown_record_is_stopped_first(node: Node) -> None:
    """A gone pod's container in an unknown state is stopped, its hook first, before its record is removed."""
    web = await node.run(container("c1", lifecycle={"preStop": exec_hook("x 0 1")}))
    await node.kubelet.kill()
    node.runtime.lose_track(web.container("c1").id)
    node.runtime.kill_sandbox(web.sandbox().id)
    web.delete(grace=0)
    await node.kubelet.start()
    await node.until(lambda: not web.containers(), "its record is removed", within=150)


@witness("TERM-12", undisturbed="it waits for what a fault lets pass unseen")
async def test_hook_of_an_unknown_record_finds_its_port(node: Node) -> None:
    """The port that the hook of a record names is known from the record alone."""
    other = await node.run(container(readinessProbe={"tcpSocket": {"port": 8080}}), name="other")
    await other.until_condition("Ready")
    asks = {"host": other.status["podIP"], "path": "/bye", "port": "admin"}
    ports = [{"containerPort": 80}, {"name": "admin", "containerPort": 8080}]
    web = await node.run(container("c1", lifecycle={"preStop": {"httpGet": asks}}, ports=ports), grace=20)
    await node.kubelet.kill()
    node.runtime.lose_track(web.container("c1").id)
    node.runtime.kill_sandbox(web.sandbox().id)
    web.delete(grace=0)
    await node.kubelet.start()
    await node.until(lambda: bool(node.runtime.headers("/bye")), "its hook", within=150, contract="TERM-12")
    await node.until(lambda: not web.containers(), "its record is removed", within=150, contract="GC-02")


@witness("GC-02", kubernetes=(1, 27))
async def test_records_go_before_the_object(node: Node) -> None:
    """A deleted pod whose object others still hold leaves no records."""
    manifest = pod(name="held")
    manifest["metadata"]["finalizers"] = ["example.com/hold"]
    held = node.want(manifest)
    await held.until_running("c1")
    held.delete(grace=2)
    await node.until(lambda: not held.containers(), "its record is removed", within=150, contract="GC-02")
    held.update(metadata={"finalizers": None})
    await held.until_gone(within=30)


@witness("GC-05", "SANDBOX-04", undisturbed="it waits for what a fault lets pass unseen")
async def test_replaced_sandbox_is_removed(node: Node) -> None:
    """A sandbox that was replaced is removed when none of its containers is left."""
    web = await node.run()
    node.runtime.kill_sandbox(web.sandbox().id)
    await web.until_running("c1", attempt=1)
    web.exit("c1", code=1)
    await web.until_running("c1", attempt=2)
    await node.until(lambda: len(web.sandboxes()) == 1, "the old sandbox is removed", within=150)


@witness("GC-08", undisturbed="it waits for what a fault lets pass unseen")
async def test_container_that_never_ran_is_removed(node: Node) -> None:
    """Of several instances that could not be started the oldest are removed with the next round."""
    with node.fault("StartContainer", times=2):
        web = await node.run()
    first = web.containers("c1")[0]
    await node.until(lambda: first not in web.containers("c1"), "the first is removed", within=150)


@witness("GC-09")
async def test_running_container_is_never_garbage(node: Node) -> None:
    """A container that runs outlasts every round of garbage collection, and a lost removal is made up for."""
    web = node.want(pod(container("c1"), container("c2", "seq 1@1 1@1 run")))
    await web.until_running("c1", "c2")
    with node.fault("RemoveContainer", times=3):
        await web.until_running("c2", attempt=2)
        await node.wait(130)
    await web.until_running("c1", attempt=0)


@witness("CLEANUP-06")
async def test_unreadable_runtime_kills_nothing(node: Node) -> None:
    """While the runtime cannot be listed nothing is killed, not even orphaned containers."""
    web = await node.run()
    orphan = await node.run(name="orphan")
    await node.kubelet.kill()
    orphan.delete(grace=0)
    await node.kubelet.start()
    await node.wait(1)
    with node.fault("ListPodSandbox"):
        await node.wait(6)
    await orphan.until_stopped()
    await web.until_running("c1", attempt=0)


@witness("GC-05")
async def test_failed_round_is_made_up_for(node: Node) -> None:
    """Records that one round of garbage collection could not remove go with a later one."""
    web = await node.run()
    with node.fault("RemovePodSandbox", times=1):
        web.delete()
        await web.until_gone()
        await node.until(lambda: not web.sandboxes(), "its sandbox is removed", within=200)


@witness("GC-03", maximum_dead_containers=2)
async def test_only_so_many_dead_containers_stay(node: Node) -> None:
    """Of more dead containers than may stay the oldest of all are removed."""
    both = container("c1"), container("c2")
    jobs = [await node.run(*both, name=f"job-{number}", restart="Never") for number in range(3)]
    for job in jobs:
        job.exit("c1", 0)
        await job.until_terminated("c1")
        await node.wait(2)
    await node.until(lambda: not jobs[0].containers("c1"), "the oldest is removed", within=150)
    await node.wait(65)


@witness("GC-03", maximum_dead_containers=0)
async def test_no_dead_container_stays(node: Node) -> None:
    """Where none may stay the record of an ended pod is removed, though it is the only one."""
    job = node.want(pod(container("c1", "exit 0 1"), name="job", restart="Never"))
    await job.until_phase("Succeeded")
    await node.wait(80)


@witness("GC-06", undisturbed="it waits for what a fault lets pass unseen")
async def test_record_stays_with_its_log(node: Node) -> None:
    """As long as the log of a dead container cannot be removed its record stays; then both go."""
    web = node.want(pod(container("c1", "seq 1@1 1@1 run say=hello")))
    await web.until_started("c1")
    with node.damaged(f"/var/log/pods/default_web_{web.uid}/c1/0.log"):
        await web.until_running("c1", attempt=2)
        await node.wait(65)
    first = web.containers("c1")[0]
    await node.until(lambda: first not in web.containers("c1"), "the first is removed", within=150)


@witness("GC-07", "CLEANUP-03", "GC-06")
async def test_files_of_a_deleted_pod_go(node: Node) -> None:
    """The logs and the folder of a pod go once it is gone, and not as long as anything of it runs."""
    web = await node.run(container("c1", "run stopdelay=6 say=hello"))
    other = await node.run(name="other")
    web.delete(0)
    await web.until_stopped()
    await node.wait(130)
    await other.until_running("c1", attempt=0)


@witness("CLEANUP-04")
async def test_ended_pod_keeps_its_folder(node: Node) -> None:
    """A pod that has ended keeps its folder until it is deleted."""
    job = node.want(pod(container(command="exit 0 1"), restart="Never", name="job"))
    await job.until_phase("Succeeded")
    await node.wait(20)
    job.delete()
    await job.until_gone()
    await node.wait(5)


@witness("GC-11")
async def test_failed_round_is_told(node: Node) -> None:
    """A failed garbage collection is reported by an event of the node."""
    await node.run()
    with node.fault("ListContainers"):
        await node.wait(80)


@witness("GC-12", eviction_hard={})
async def test_unused_images_make_room(node: Node) -> None:
    """When the disk of images fills up those go that no container was made from."""
    node.runtime.add_image("spare:1")
    await node.run()
    await node.wait(130)
    with node.pressure(imagefs_available="10%"):
        await node.wait(320)


@witness("GC-12", eviction_hard={})
async def test_unused_images_stay_while_there_is_room(node: Node) -> None:
    """As long as the disk is not too full no image goes, however long it has not been used."""
    node.runtime.add_image("spare:1")
    await node.run()
    with node.pressure(imagefs_available="16%"):
        await node.wait(620)
    removed = [each.request.image.image for each in node.observations.of("RemoveImage")]
    await node.expect("no image is removed", lambda: removed, "GC-12")


@witness("GC-02", undisturbed="an older record that a fault leaves goes with a later round")
async def test_nothing_is_kept_of_an_evicted_pod(node: Node) -> None:
    """A pod that was evicted keeps neither containers nor sandboxes, though it is not deleted."""
    web = await node.run(container("c1"), container("c2"))
    web.use(memory="1Gi")
    with node.pressure(memory_available="50Mi"):
        await web.until_phase("Failed", within=60)
        await node.wait(10)
    left = [each.name for each in web.containers()]
    await node.expect("its containers are removed", lambda: left, "GC-02")
    await node.wait(130)
    sandboxes = [each.id for each in web.sandboxes()]
    await node.expect("its sandbox is removed", lambda: sandboxes, "GC-02")


@witness("GC-02", "GC-04")
async def test_unknown_record_of_a_gone_pod_goes(node: Node) -> None:
    """A gone pod's container in an unknown state goes with the next round."""
    web = await node.run()
    await node.kubelet.kill()
    node.runtime.lose_track(web.container("c1").id)
    node.runtime.kill_sandbox(web.sandbox().id)
    web.delete(grace=0)
    await node.kubelet.start()
    await node.until(lambda: not web.containers(), "its record is removed", within=150, contract="GC-02")


@witness("GC-04")
async def test_unknown_record_that_cannot_be_stopped_stays(node: Node) -> None:
    """A gone pod's container in an unknown state stays as long as it cannot be stopped."""
    web = await node.run()
    await node.kubelet.kill()
    node.runtime.lose_track(web.container("c1").id)
    node.runtime.kill_sandbox(web.sandbox().id)
    web.delete(grace=0)
    with node.fault("StopContainer", times=1):
        await node.kubelet.start()
        await web.until_called("StopContainer", done=False)
        await node.wait(2)
    await node.until(lambda: not web.containers(), "its record is removed", within=150)
