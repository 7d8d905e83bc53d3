"""Restarts: which containers are run again, after what, under which number."""

from kubelet_conformance.node import Node, PodHandle, container, exec_probe, pod, witness


@witness("RESTART-05", "RESTART-13", "RESTART-17", "BACKOFF-01")
async def test_crashed_container_is_run_again_alone(node: Node) -> None:
    """Under policy Always a container that ends is run again, and its sibling runs on."""
    web = await node.run(container("c1"), container("c2"))
    web.exit("c1", code=1)
    await web.until_running("c1", attempt=1)
    await web.until_running("c2", attempt=0)


@witness("RESTART-05", "RESTART-18", "BACKOFF-01")
async def test_on_failure_ends_with_the_first_success(node: Node) -> None:
    """Under OnFailure a container is run again after a failure, and left after a success."""
    job = await node.run(container("c1", "seq 1@5 0@5"), restart="OnFailure")
    await job.until_phase("Succeeded")


@witness("RESTART-05", "RESTART-18", "TERM-21")
async def test_never_leaves_what_failed(node: Node) -> None:
    """Under Never no container is run again, and the pod is killed when the last one has ended."""
    job = await node.run(container("c1", "exit 3 5"), container("c2", "exit 0 20"), restart="Never")
    await job.until_phase("Failed")


@witness("RESTART-02", "RESTART-07")
async def test_running_container_is_replaced_for_a_reason_only(node: Node) -> None:
    """Neither time nor an annotation touches a container that runs; another image does."""
    web = await node.run()
    web.annotate({"colour": "green"})
    await node.wait(200)
    await web.until_running("c1", attempt=0)
    node.runtime.publish_image("img:2")
    web.set_image("c1", "img:2")
    await web.until_running("c1", attempt=1)


@witness("RESTART-01", "RESTART-14")
async def test_container_without_a_record_is_made_again(node: Node) -> None:
    """A container whose record was lost is made again, even under Never, numbered after its last log."""
    job = await node.run(container("c1"), container("c2"), restart="Never")
    node.runtime.remove_container(job.container("c1").id)
    await job.until_running("c1", attempt=1)


@witness("RESTART-03", "RESTART-24", undisturbed="a fault of its own comes at a call that it counts")
async def test_container_that_could_not_be_started_is_made_anew(node: Node) -> None:
    """A container whose start failed gets a new instance with the next number, even under Never."""
    with node.fault("StartContainer", times=2, container="c1"):
        job = await node.run(restart="Never")
    await job.until_running("c1", attempt=2)


@witness("RESTART-24", "BACKOFF-13")
async def test_creation_without_a_record_does_not_count(node: Node) -> None:
    """A container that could not be created is tried again soon, with the same number."""
    with node.fault("CreateContainer", times=2, container="c1"):
        web = await node.run()
    await web.until_running("c1", attempt=0)


@witness("RESTART-04", "CSTAT-02")
async def test_unknown_container_is_stopped_and_replaced(node: Node) -> None:
    """A container whose state is unknown is stopped before another one takes its place."""
    web = await node.run(container("c1"), container("c2"))
    await node.wait(3)
    node.runtime.lose_track(web.container("c1").id)
    await web.until_running("c1", attempt=1)


@witness(
    "RESTART-02",
    "RESTART-07",
    "RESTART-08",
    "RESTART-11",
    undisturbed="what has ended well is not run again by a later sync",
)
async def test_new_image_replaces_a_running_container(node: Node) -> None:
    """A running container whose image changed is stopped and made again in one sync, even under Never."""
    job = await node.run(container("c1", "run stopdelay=2"), container("c2"), restart="Never")
    node.runtime.publish_image("img:2")
    job.set_image("c1", "img:2")
    await job.until_running("c1", attempt=1)


@witness(
    "RESTART-02",
    "RESTART-09",
    "RESTART-11",
    "RESTART-12",
    undisturbed="what has ended well is not run again by a later sync",
)
async def test_failed_liveness_probe_replaces_a_container(node: Node) -> None:
    """A container killed for its probe comes back at once, though it ended with 0 under OnFailure."""
    node.runtime.set_file("alive", there=True)
    job = await node.run(
        container("c1", livenessProbe=exec_probe("xf alive", periodSeconds=2, failureThreshold=1)),
        container("c2"),
        restart="OnFailure",
    )
    node.runtime.set_file("alive", there=False)
    await job.until_started("c1", attempt=1)
    node.runtime.set_file("alive", there=True)
    await job.until_running("c1", attempt=1)


@witness("RESTART-09")
async def test_second_probe_kill_waits_for_its_back_off(node: Node) -> None:
    """A container that goes on failing its startup probe is killed and made again, later each time."""
    probe = exec_probe("x 1 0", periodSeconds=2, failureThreshold=2)
    web = node.want(pod(container("c1", startupProbe=probe)))
    await web.until_started("c1", attempt=4)


@witness("RESTART-10")
async def test_probe_kill_under_never_is_the_end(node: Node) -> None:
    """Under Never a container killed for its probe is not run again."""
    job = await node.run(
        container(
            "c1",
            "run stopcode=143",
            livenessProbe=exec_probe("x 1 0", periodSeconds=2, initialDelaySeconds=10, failureThreshold=1),
        ),
        restart="Never",
    )
    await job.until_phase("Failed")


@witness("RESTART-06", "TERM-29", "WORK-04")
async def test_nothing_is_run_again_in_the_grace_period(node: Node) -> None:
    """A container that ends while its pod is being deleted stays so, and its sibling keeps its grace."""
    web = await node.run(container("c1", "run stopdelay=1 stopcode=1"), container("c2", "run stopdelay=20"))
    web.delete()
    await web.until_gone()


@witness("RESTART-16", "RESTART-13")
async def test_counting_goes_on_in_a_new_sandbox(node: Node) -> None:
    """In a new sandbox every container goes on counting from its own last instance."""
    web = await node.run(container("c1"), container("c2"))
    web.exit("c1", code=1)
    await web.until_running("c1", attempt=1)
    node.runtime.kill_sandbox(web.sandbox().id)
    await web.until_running("c1", attempt=2)
    await web.until_running("c2", attempt=1)


@witness("RESTART-05", "BACKOFF-01")
async def test_container_killed_for_memory_is_run_again(node: Node) -> None:
    """A container killed for lack of memory has failed, and is run again under OnFailure."""
    job = await node.run(container("c1"), restart="OnFailure")
    node.runtime.oom(job.container("c1").id)
    await job.until_running("c1", attempt=1)


def log_folder(node: Node, web: PodHandle) -> str:
    """Where the runtime was told to keep the logs of the pod."""
    made = (call for call in node.observations.of("RunPodSandbox") if call.pod_uid == web.uid)
    return str(next(made).request.config.log_directory)


@witness("RESTART-15")
async def test_foreign_files_among_the_logs(node: Node) -> None:
    """A file that is no log of the container does not count for the number of the next instance."""
    web = await node.run()
    for name in ("old-7.log", "notes.txt"):
        node.target.machine.leave_file(f"{log_folder(node, web)}/c1/{name}")
    await node.wait(2)  # Until it has been listed: what goes before is missed by a kubelet that is slow.
    node.runtime.remove_container(web.container().id)
    await web.until_started("c1", attempt=1)


@witness("RESTART-15", until=(1, 26), undisturbed="a fault of its own comes at a call that it counts")
async def test_old_kubelets_take_foreign_files_for_logs(node: Node) -> None:
    """Up to 1.26 any name that ends in a number and log counts."""
    web = await node.run()
    node.target.machine.leave_file(f"{log_folder(node, web)}/c1/old-7.log")
    node.runtime.remove_container(web.container().id)
    await web.until_started("c1", attempt=8)
