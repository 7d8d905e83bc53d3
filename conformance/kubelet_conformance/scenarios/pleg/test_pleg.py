"""The relist: how the kubelet notices what happens at the runtime."""

from kubelet_conformance.node import Node, container, pod, witness


@witness("PLEG-01")
async def test_failed_listing_is_no_death(node: Node) -> None:
    """While listings fail nothing is concluded from what they do not say."""
    web = await node.run(container("c1"), container("c2"))
    with node.fault("ListContainers", code="UNAVAILABLE"):
        await node.wait(8)
    with node.fault("ListPodSandbox", code="UNAVAILABLE"):
        await node.wait(8)
    web.exit("c1", 1)
    await web.until_running("c1", attempt=1)


@witness("PLEG-02", "PLEG-13")
async def test_quiet_pods_are_not_inspected(node: Node) -> None:
    """While one pod changes, those that do not are left alone."""
    quiet = [await node.run(name=f"quiet-{number}") for number in range(3)]
    noisy = await node.run(name="noisy")
    noisy.exit(code=1)
    await noisy.until_running("c1", attempt=1)
    await node.wait(40)
    quiet[0].exit(code=1)
    await quiet[0].until_running("c1", attempt=1)


@witness("LOOP-09", undisturbed="it waits for what a fault lets pass unseen")
async def test_exit_and_removal_are_noticed(node: Node) -> None:
    """An exit is reported and answered; the removal of an old record causes no action."""
    web = await node.run()
    first = web.container("c1")
    web.exit(code=1)
    await web.until_running("c1", attempt=1)
    node.runtime.remove_container(first.id)
    await node.wait(5)


@witness("PLEG-03")
async def test_container_that_vanishes_has_died(node: Node) -> None:
    """A container whose record goes while it runs is made again at once."""
    web = await node.run(container("c1"), container("c2"))
    await node.wait(15)
    node.runtime.remove_container(web.container("c1").id)
    await web.until_started("c1")


@witness("PLEG-06")
async def test_quiet_pod_is_deleted_at_once(node: Node) -> None:
    """The worker of a pod that nothing happens to does not wait for something to happen."""
    quiet = await node.run(name="quiet")
    await node.wait(30)
    quiet.delete()
    await quiet.until_gone(within=60)


@witness("PLEG-09")
async def test_relists_go_on_beside_a_loop_that_stands_still(node: Node) -> None:
    """While the runtime is not ready the loop takes no events, and the runtime is listed all the same."""
    every = [await node.run(name=f"web-{number}") for number in range(5)]
    with node.not_ready(runtime=False):
        await node.wait(8)
        for one in every:
            one.exit(code=1)
        await node.wait(12)
    for one in every:
        await one.until_running("c1", attempt=1)


@witness("PLEG-04")
async def test_death_of_a_sandbox_is_noticed(node: Node) -> None:
    """A sandbox that dies is noticed with the next relist."""
    web = await node.run()
    node.runtime.kill_sandbox(web.sandbox().id)
    await web.until_running("c1", attempt=1, within=40)


@witness("PLEG-05")
async def test_failed_inspection_is_repeated(node: Node) -> None:
    """An exit is not lost because the container could not be inspected the first time."""
    web = await node.run()
    with node.fault("ContainerStatus", code="UNKNOWN", times=2):
        web.exit(code=1)
        await web.until_running("c1", attempt=1, within=20)


@witness("PLEG-07", "SANDBOX-02")
async def test_pod_without_records_begins_anew(node: Node) -> None:
    """A pod of which the runtime has lost everything gets a first sandbox again."""
    web = await node.run()
    await node.wait(15)
    node.runtime.remove_sandbox(web.sandbox().id)
    await web.until_running("c1", attempt=1)


@witness("PLEG-08")
async def test_hanging_listing_stops_the_loop(node: Node) -> None:
    """When no relist has succeeded for three minutes nothing is begun, until one has."""
    await node.run()
    with node.fault("ListContainers", effect="hang"):
        await node.wait(200)
        late = node.want(pod(name="late"))
        await node.wait(20)
    await late.until_running("c1", within=60)


@witness("PLEG-08")
async def test_failing_listing_stops_the_loop(node: Node) -> None:
    """When relists have failed for three minutes no new pod is begun, until one has succeeded."""
    await node.run()
    with node.fault("ListContainers", code="UNAVAILABLE"):
        await node.wait(200)
        late = node.want(pod(name="late"))
        await node.wait(20)
    await late.until_running("c1", within=60)


@witness("PLEG-11", "CRI-07")
async def test_record_that_goes_while_it_is_inspected(node: Node) -> None:
    """A record that goes between the listing and its inspection does not hide the others of its pod."""
    web = await node.run(container("c1"), container("c2"))
    with node.slow("ContainerStatus", 0.3):
        asked = len(web.calls("ContainerStatus", "c1"))
        web.exit("c1", 1)
        web.exit("c2", 1)
        await web.until_called("ContainerStatus", "c1", count=asked + 1, done=False)
        node.runtime.remove_container(web.container("c1").id)
        await web.until_running("c1", "c2", attempt=1)


@witness("CSTAT-03")
async def test_newest_record_counts(node: Node) -> None:
    """With several instances on record the newest is the one that counts."""
    web = await node.run(container(command="seq 1@2 2@2 run"))
    await web.until_running("c1", attempt=2)


@witness("PLEG-12")
async def test_older_record_does_not_count(node: Node) -> None:
    """What is shown long after a restart is the instance that runs, though the older one is listed first."""
    web = await node.run(container("c1", "seq 1@2 run"), container("c2"))
    await web.until_running("c1", attempt=1)
    await node.wait(20)
    web.exit("c2", 1)
    await web.until_running("c2", attempt=1)


@witness("PLEG-18")
async def test_first_relist_inspects_what_is_there(node: Node) -> None:
    """A kubelet that starts looks at every pod that has records, though nothing about them changes."""
    await node.run(container("c1"), container("c2"))
    await node.restart_kubelet()
    await node.wait(15)
