"""Workers: what one pod's worker does in order, what cannot be undone, what is done again."""

from kubelet_conformance.node import Node, container, exec_hook, pod, witness


@witness("WORK-01")
async def test_slow_pod_holds_no_other_up(node: Node) -> None:
    """The steps of one pod follow one another, and another pod does not wait for them."""
    slow = node.want(pod(container("c1"), container("c2"), name="slow"))
    with node.slow("CreateContainer", 30, pod=slow):
        await node.run(name="quick", within=5)
        await slow.until_running("c1", "c2")


@witness("WORK-03", "WORK-04", "WORK-05")
async def test_update_does_not_undo_a_deletion(node: Node) -> None:
    """A pod deleted in a slow step goes when the step is done, though it is changed once more."""
    web = node.want(pod(container("c1"), container("c2")))
    with node.slow("CreateContainer", 20, container="c2"):
        await web.until_called("CreateContainer", "c2", done=False)
        web.delete()
        await node.wait(2)
        web.annotate({"colour": "green"})
        web.annotate({"colour": "blue"})
        await web.until_gone()


@witness("WORK-07")
async def test_grace_only_shrinks(node: Node) -> None:
    """Of several graces asked for in turn the shortest holds."""
    web = node.want(pod(container("c1", "run stopdelay=40"), container("c2")))
    with node.slow("CreateContainer", 10, container="c2"):
        await web.until_called("CreateContainer", "c2", done=False)
        for grace in (60, 5, 30):
            web.delete(grace=grace)
            await node.wait(1)
        await web.until_gone()


@witness("WORK-07", "WORK-10")
async def test_next_stop_has_the_shorter_grace(node: Node) -> None:
    """A grace that is shortened after a stop has failed holds for the next one."""
    web = await node.run(container("c1", "run stopdelay=40"))
    with node.fault("StopContainer", times=1), node.fault("StopPodSandbox", times=1):
        web.delete(grace=20)
        await web.until_called("StopContainer")
        web.delete(grace=5)
        await web.until_gone()


@witness("WORK-08")
async def test_forced_deletion_has_a_grace_of_its_own(node: Node) -> None:
    """The containers of a pod deleted by force get the least grace (up to 1.26 the pod's own)."""
    web = await node.run(container("c1", "run stopdelay=1"))
    web.delete(grace=0)
    await web.until_stopped()


@witness("SANDBOX-26")
async def test_failed_stop_is_tried_again(node: Node) -> None:
    """A container that could not be stopped is stopped again, and its pod stays until then."""
    web = await node.run()
    with node.fault("StopContainer", times=2, pod=web):
        web.delete()
        await web.until_gone()


@witness("WORK-13", "GC-02", "GC-05", "GC-09")
async def test_records_go_with_their_pod(node: Node) -> None:
    """The records of a deleted pod stay until its last status was written, and all go soon after it."""
    web = await node.run(init=(container("i1", "exit 0 1"),))
    web.exit("c1", code=1)
    await web.until_running("c1", attempt=1)
    web.delete()
    await web.until_gone()
    await node.until(lambda: not web.sandboxes(), "its sandbox is removed", within=80)


@witness("WORK-17")
async def test_slow_listing_makes_nothing_twice(node: Node) -> None:
    """A container is not made twice though the kubelet learns late that it was started."""
    with node.slow("ListContainers", 1):
        web = await node.run(container("c1"), container("c2"))
        web.exit("c1", code=1)
        await web.until_running("c1", attempt=1)
        web.annotate({"colour": "green"})
        await node.wait(20)


@witness("WORK-19")
async def test_new_kubelet_looks_before_it_acts(node: Node) -> None:
    """A kubelet that starts waits for its first listing before it makes or stops anything."""
    web = await node.run()
    await node.kubelet.kill()
    web.exit("c1", code=1)
    other = node.want(pod(name="other"))
    with node.slow("ListContainers", 3):
        await node.kubelet.start()
        await web.until_running("c1", attempt=1)
        await other.until_running("c1")


@witness("WORK-18")
async def test_unreadable_pod_is_left_alone(node: Node) -> None:
    """Nothing is done to a pod whose state cannot be read, until it can."""
    web = await node.run()
    with node.fault("PodSandboxStatus", pod=web):
        web.exit("c1", code=1)
        await node.wait(10)
        web.annotate({"colour": "green"})
        await node.wait(20)
    await web.until_running("c1", attempt=1)


@witness("WORK-24", "CLEANUP-08")
async def test_pod_that_nobody_knows_is_killed(node: Node) -> None:
    """A pod deleted by force while the kubelet was away is stopped by the next one, without its hooks."""
    web = await node.run(container("c1", lifecycle={"preStop": exec_hook("x 0 1")}))
    await node.kubelet.kill()
    web.delete(grace=0)
    await node.kubelet.start()
    await web.until_stopped()
    await node.until(lambda: not web.containers(), "its record is removed", within=80)


@witness("WORK-29")
async def test_pod_sent_as_ended_is_not_started(node: Node) -> None:
    """A pod that has ended before a kubelet receives it is not started, and goes when it is deleted."""
    await node.kubelet.kill()
    jobs = [node.want(pod(name=name, restart="Never")) for name in ("kept", "deleted")]
    for job in jobs:
        node.api.update_status(job.namespace, job.name, {"phase": "Succeeded"})
    await node.kubelet.start()
    await node.wait(20)
    jobs[1].delete()
    await jobs[1].until_gone()


@witness("WORK-14")
async def test_ended_pod_is_not_started_by_a_new_kubelet(node: Node) -> None:
    """A pod that had ended before the kubelet started stays so, and goes when it is deleted."""
    job = node.want(pod(container("c1", "exit 0 2"), restart="Never"))
    await job.until_phase("Succeeded")
    await node.restart_kubelet()
    await node.wait(20)
    job.delete()
    await job.until_gone()


@witness("WORK-05")
async def test_pod_ended_by_another_is_stopped(node: Node) -> None:
    """A running pod whose phase another writer made terminal is stopped."""
    web = await node.run()
    node.api.update_status(web.namespace, web.name, {"phase": "Failed"})
    web.annotate({"colour": "green"})
    await web.until_stopped()


@witness("WORK-30")
async def test_leftovers_of_an_ended_pod_are_stopped(node: Node) -> None:
    """A pod that is received as ended when the kubelet starts, and still runs, is stopped."""
    web = await node.run()
    await node.kubelet.kill()
    node.api.update_status(web.namespace, web.name, {"phase": "Failed"})
    await node.kubelet.start()
    await web.until_stopped()


@witness("WORK-34")
async def test_refused_pod_is_finalized(node: Node) -> None:
    """A pod that was refused at admission goes when it is deleted."""
    web = node.want(pod(nodeSelector={"disk": "fast"}))
    await web.until_phase("Failed")
    await node.wait(5)
    web.delete()
    await web.until_gone()


@witness("WORK-05", "WORK-33")
async def test_removed_manifest_leaves_the_grace(node: Node) -> None:
    """A static pod whose manifest is removed is stopped with its own grace period."""
    web = node.want_static(pod(container("c1", "run stopdelay=5"), grace=12))
    await web.until_running("c1")
    node.manifests.remove("web.yaml")
    await web.until_stopped()


@witness("WORK-22", undisturbed="another kubelet does not know that it was gone")
async def test_static_pod_comes_back_after_its_end(node: Node) -> None:
    """A static pod whose manifest comes back while it ends is run afresh when it has ended."""
    manifest = pod(
        container("c1", "run stopdelay=8"), metadata={"uid": "33333333-2222-3333-4444-555555555555"}
    )
    web = node.want_static(manifest)
    await web.until_running("c1")
    node.manifests.remove("web.yaml")
    await web.until_called("StopContainer", done=False)
    node.want_static(manifest)
    await web.until_called("RunPodSandbox", count=2, within=30)
    await web.until_running("c1")


@witness(
    "WORK-11",
    exempt=("CRI-05", "CRI-13", "CRI-14", "CRI-19"),
    undisturbed="a fault of its own comes at a call that it counts",
)
async def test_runtime_that_lies_about_a_stop_is_not_believed(node: Node) -> None:
    """A container that still runs although its stop was answered as done is stopped again."""
    web = await node.run(container("c1"))
    with (
        node.fault("StopContainer", effect="pretend", times=1),
        node.fault("StopPodSandbox", effect="pretend", times=1),
    ):
        web.delete(grace=5)
        await web.until_called("StopContainer", count=2)
    await web.until_gone()
