"""Init containers: one after the other, and before all else."""

from kubelet_conformance.node import Node, container, exec_probe, pod, witness


@witness("INIT-01", "INIT-02", "INIT-03", "INIT-10", "INIT-15", "INIT-16", "INIT-17")
async def test_init_containers_run_in_turn(node: Node) -> None:
    """Init containers run in the order of the spec, each after the one before has succeeded, apps at last."""
    inits = (container("i3", "exit 0 3"), container("i1", "exit 0 0"), container("i2", "exit 0 3"))
    web = node.want(pod(container("c2"), container("c1"), init=inits))
    await web.until_running("c1", "c2")
    web.exit("c1", 1)
    await web.until_running("c1", attempt=1)


@witness("INIT-03", "INIT-16")
async def test_long_init_is_waited_for(node: Node) -> None:
    """While an init container runs nothing else of its pod does."""
    web = node.want(pod(container("c1"), container("c2"), init=(container("i1", "exit 0 60"),)))
    await web.until_running("c1", "c2")


@witness("INIT-04")
async def test_vanished_record_of_a_completed_init(node: Node) -> None:
    """An init container is not run again because its record went, when a later one has one."""
    inits = (container("i1", "exit 0 1"), container("i2", "exit 0 1"), container("i3", "exit 0 10"))
    web = node.want(pod(init=inits))
    await web.until_running("i3", or_ended=True)
    node.runtime.remove_container(web.container("i1").id)
    node.runtime.remove_container(web.container("i2").id)
    await web.until_running("c1")


@witness("INIT-05", "INIT-04")
async def test_running_app_is_proof_of_initialization(node: Node) -> None:
    """While an app container runs no init container is run again, though no init record is left."""
    inits = (container("i1", "exit 0 1"), container("i2", "exit 0 1"))
    web = await node.run(container("c1"), container("c2"), init=inits)
    for name in ("i1", "i2"):
        node.runtime.remove_container(web.container(name).id)
    await node.wait(5)
    web.exit("c2", 1)
    await web.until_running("c2", attempt=1)


@witness("INIT-06")
async def test_init_begins_anew_without_records(node: Node) -> None:
    """When all records of a pod's containers went, it is initialized once more in the same sandbox."""
    inits = (container("i1", "exit 0 1"), container("i2", "exit 0 1"))
    web = await node.run(container("c1"), init=inits)
    for name in ("i1", "i2", "c1"):
        node.runtime.remove_container(web.container(name).id)
    await web.until_called("CreateContainer", "i1", count=2)
    await web.until_called("StartContainer", "c1", count=2)
    await node.wait(3)


@witness(
    "INIT-07", "INIT-14", "INIT-15", "CSTAT-14", undisturbed="it waits for what a fault lets pass unseen"
)
async def test_failed_init_is_tried_again(node: Node) -> None:
    """A failed init container runs again after its back-off, and only its latest end is kept."""
    inits = (container("i1", "exit 0 1"), container("i2", "seq 1@1 2@1 3@1 0@1"), container("i3", "exit 0 1"))
    web = node.want(pod(init=inits))
    await web.until_held_back("i2")
    await web.until_running("c1")


@witness("INIT-08", "PHASE-09")
async def test_failed_init_ends_a_run_once_pod(node: Node) -> None:
    """A pod that runs once fails with the first of its init containers that does."""
    inits = (container("i1", "exit 3 1"), container("i2", "exit 0 1"))
    job = node.want(pod(name="job", init=inits, restart="Never"))
    await job.until_phase("Failed")
    await node.wait(15)


@witness("INIT-09", undisturbed="it waits for what a fault lets pass unseen")
async def test_init_out_of_memory_failed(node: Node) -> None:
    """An init container that ran out of memory failed, though it ended with 0."""
    web = node.want(pod(name="web", init=(container("i1", "seq run 0@1"),)))
    job = node.want(pod(name="job", init=(container("i1", "run"),), restart="Never"))
    await web.until_running("i1")
    await job.until_running("i1")
    node.runtime.oom(web.container("i1").id, code=0)
    node.runtime.oom(job.container("i1").id, code=0)
    await web.until_running("c1")
    await job.until_stopped()
    job.delete()
    await job.until_gone()


@witness("INIT-11", undisturbed="it waits for what a fault lets pass unseen")
async def test_lost_init_is_stopped_and_made_again(node: Node) -> None:
    """An init container that the runtime lost track of is stopped, and run again unless its pod runs once."""
    web = node.want(pod(name="web", init=(container("i1", "seq run 0@1"),)))
    job = node.want(pod(name="job", init=(container("i1", "run"),), restart="Never"))
    await web.until_running("i1")
    await job.until_running("i1")
    await node.wait(3)
    node.runtime.lose_track(web.container("i1").id)
    node.runtime.lose_track(job.container("i1").id)
    await web.until_running("c1")
    await job.until_phase("Failed")


@witness("INIT-08", "INIT-11", kubernetes=(1, 29), undisturbed="it waits for what a fault lets pass unseen")
async def test_init_beside_a_sidecar_fails_or_is_lost(node: Node) -> None:
    """A sidecar beside it changes nothing: it is run again, unless its pod runs once."""
    sidecar = container("s1", restartPolicy="Always")
    lost_web = node.want(pod(name="lost-web", init=(sidecar, container("i1", "seq run 0@1"))))
    lost_job = node.want(pod(name="lost-job", init=(sidecar, container("i1", "run")), restart="Never"))
    web = node.want(pod(name="web", init=(sidecar, container("i1", "seq 3@1 0@1"))))
    job = node.want(pod(name="job", init=(sidecar, container("i1", "exit 3 1")), restart="Never"))
    await lost_job.until_started("i1")
    node.runtime.lose_track(lost_job.container("i1").id)
    await lost_web.until_running("i1")
    node.runtime.lose_track(lost_web.container("i1").id)
    for pod_that_restarts in (web, lost_web):
        await pod_that_restarts.until_running("c1")
    for pod_that_ends in (job, lost_job):
        await pod_that_ends.until_phase("Failed")


@witness("INIT-12", "INIT-10", "SANDBOX-05")
async def test_sandbox_dies_during_init(node: Node) -> None:
    """When the sandbox dies between two init containers, the first one runs again too."""
    inits = (container("i1", "exit 0 2"), container("i2", "exit 0 8"))
    web = node.want(pod(init=inits))
    await web.until_running("i2", or_ended=True)
    node.runtime.kill_sandbox(web.sandbox().id)
    await web.until_running("c1")


@witness("INIT-13")
async def test_new_image_of_a_completed_init(node: Node) -> None:
    """Another image for an init container changes nothing in a pod that is initialized."""
    web = await node.run(container("c1"), init=(container("i1", "exit 0 1"),))
    web.update(spec={"initContainers": [{"name": "i1", "image": "img:2"}]})
    await node.wait(15)
    web.delete()
    await web.until_gone()


@witness("INIT-18", "START-04", undisturbed="it waits for what a fault lets pass unseen")
async def test_init_that_could_not_be_started_is_made_again(node: Node) -> None:
    """An init container that was made and could not be started is made again before any later one."""
    inits = (container("i1", "exit 0 1"), container("i2", "exit 0 1"))
    with node.fault("StartContainer", code="UNKNOWN", message="no such command", times=2, container="i2"):
        web = node.want(pod(init=inits))
        await web.until_waiting("i2", "RunContainerError")
        await web.until_running("c1")


@witness("INIT-20")
async def test_init_has_no_probes(node: Node) -> None:
    """Probes of an init container are not run, though the API server let it have some."""
    alive = exec_probe("x 1 0", periodSeconds=1, failureThreshold=1)
    ready = exec_probe("x 1 0", periodSeconds=1)
    with node.tolerant_api():
        web = node.want(pod(init=(container("i1", "exit 0 8", livenessProbe=alive, readinessProbe=ready),)))
    await web.until_running("c1")


@witness("INIT-19")
async def test_deadline_runs_during_init(node: Node) -> None:
    """The time that a pod may take includes its init containers'."""
    job = node.want(pod(init=(container("i1", "exit 0 60"),), restart="Never", activeDeadlineSeconds=10))
    await job.until_phase("Failed", within=40)
