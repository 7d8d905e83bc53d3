"""Workers: news that come while one is busy, and when it looks at its pod again by itself."""

from kubelet_conformance.node import Node, container, pod, witness


@witness("WORK-02", undisturbed="a fault may have c1 made only after its last image was given")
async def test_only_the_newest_update_is_carried_out(node: Node) -> None:
    """Of the images that a container is given during one slow step only the last is run."""
    for image in ("img:2", "img:3", "img:4"):
        node.runtime.publish_image(image)
    web = node.want(pod(container("c1"), container("c2")))
    with node.slow("CreateContainer", 20, container="c2"):
        await web.until_called("CreateContainer", "c2", done=False)
        for image in ("img:2", "img:3", "img:4"):
            web.set_image("c1", image)
            await node.wait(3)
    await web.until_running("c1", attempt=1)
    await node.wait(5)


@witness("WORK-09", "WORK-07")
async def test_grace_that_is_shortened_during_a_stop_holds_for_the_next(node: Node) -> None:
    """A grace that is shortened while a stop lasts, which then fails, holds for the next stop."""
    web = await node.run(container("c1", "run stopdelay=40"))
    with node.fault("StopContainer", times=1, delay=8), node.fault("StopPodSandbox", times=1):
        web.delete(grace=30)
        await web.until_called("StopContainer", done=False)
        await node.wait(2)
        web.delete(grace=5)
        await web.until_gone()


@witness("WORK-15")
async def test_failed_sync_comes_again(node: Node) -> None:
    """A pod whose container could not be made is synced again after 10 to 15 s."""
    with node.fault("CreateContainer", times=2):
        await node.run()


@witness("WORK-16", kubernetes=(1, 35), undisturbed="a fault costs it an instance and the back-off of that")
async def test_crash_loop_goes_on_when_its_back_off_ends(node: Node) -> None:
    """A container that keeps failing is made again as soon as its back-off is over (up to 1.34 later)."""
    web = node.want(pod(container("c1", "exit 1 1")))
    await web.until_started("c1", attempt=5)


@witness("WORK-18")
async def test_unreadable_pod_is_told(node: Node) -> None:
    """A pod that is changed while its state cannot be read is left alone, and an event says why."""
    web = await node.run()
    with node.fault("PodSandboxStatus", pod=web):
        web.exit("c1", code=1)
        await node.wait(10)
        web.annotate({"colour": "green"})
        await web.until_event("FailedSync", count=2)
    await web.until_running("c1", attempt=1)


@witness("WORK-17")
async def test_next_sync_sees_what_the_last_one_has_made(node: Node) -> None:
    """A pod that is changed in the midst of a sync is not made twice by the next one, save what has ended."""
    web = node.want(pod(container("c1"), container("c2")))
    with node.slow("CreateContainer", 5, container="c2"):
        await web.until_called("CreateContainer", "c2", done=False)
        await node.wait(2)
        web.annotate({"colour": "green"})
        await web.until_running("c1", "c2")
    web.exit("c1", 1)
    await web.until_running("c1", attempt=1)


@witness("SYNC-13")
async def test_pod_on_the_hosts_network_is_left_alone(node: Node) -> None:
    """A pod on the host's network whose sandbox reports no network status needs nothing.

    It is stopped when it is deleted.
    """
    web = await node.run(hostNetwork=True)
    web.annotate({"colour": "green"})
    await node.wait(100)
    web.delete()
    await web.until_gone()
