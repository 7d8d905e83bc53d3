"""A machine that is about to go down."""

from kubelet_conformance.node import Node, container, pod, witness

CRITICAL = 2_000_000_000


@witness("SHUT-01", "SHUT-02", "COND-08", shutdown_grace_period=40, shutdown_grace_period_critical_pods=10)
async def test_critical_pods_go_last(node: Node) -> None:
    """Pods get the grace that critical pods do not need; critical pods end last; no new pod is admitted."""
    system = await node.run(container(command="run stopdelay=20"), name="system", priority=CRITICAL)
    slow = await node.run(container(command="run stopdelay=50"), name="slow", grace=60)
    quick = await node.run(container(command="run stopdelay=2"), name="quick", grace=10)
    node.shut_down()
    await node.wait(3)
    late = node.want(pod(name="late"))
    await late.until_phase("Failed", within=60)
    for each in (quick, slow, system):
        await each.until_phase("Failed", within=90)


@witness("SHUT-03", "SHUT-01", shutdown_grace_period_by_pod_priority=((0, 60), (1000, 50), (CRITICAL, 20)))
async def test_next_group_begins_when_one_is_gone(node: Node) -> None:
    """Three priority groups that need little of their time are ended one right after the other."""
    every = [await node.run(name=f"p{rank}", priority=rank) for rank in (-5, 5000, CRITICAL)]
    every.append(await node.run(container(command="run stopdelay=5"), name="p0", priority=0, grace=20))
    node.shut_down()
    for each in every:
        await each.until_phase("Failed", within=30)


@witness("SHUT-03", kubernetes=(1, 32), shutdown_grace_period_by_pod_priority=((0, 30), (1000, 20)))
async def test_next_group_waits_for_volumes(node: Node) -> None:
    """While a volume of a pod cannot be removed its group uses its whole time, and the next one waits."""
    mount = [{"name": "cache", "mountPath": "/cache"}]
    keeps = await node.run(container(volumeMounts=mount), volumes=[{"name": "cache", "emptyDir": {}}])
    late = await node.run(name="late", priority=1000)
    with node.damaged(f"/var/lib/kubelet/pods/{keeps.uid}/volumes"):
        node.shut_down()
        await late.until_phase("Failed", within=60)


@witness("SHUT-01", "SHUT-02", until=(1, 26), shutdown_grace_period=30)
async def test_shutdown_in_older_versions(node: Node) -> None:
    """Without a shutdown grace period of their own critical pods have none."""
    web = await node.run(container(command="run stopdelay=5"), grace=10)
    node.shut_down()
    await web.until_phase("Failed", within=60)


@witness("SHUT-02", shutdown_grace_period=30, undisturbed="it waits for what a fault lets pass unseen")
async def test_success_stays_what_it_is(node: Node) -> None:
    """A pod that has ended well, and whose sandbox does not stop, is Succeeded in spite of the shutdown."""
    job = await node.run(container(command="exit 0 3"), name="job", restart="Never")
    web = await node.run(name="web")
    with node.fault("StopPodSandbox", times=1, pod=job):
        await job.until_called("StopPodSandbox", done=False)
    await node.wait(6)
    node.shut_down()
    await web.until_phase("Failed", within=60)
    await job.until_phase("Succeeded", within=60)


@witness("SHUT-02", shutdown_grace_period=60)
async def test_machine_goes_when_all_is_told(node: Node) -> None:
    """A shutdown is inhibited as long as the API server does not know how the pods ended."""
    web = await node.run(name="web")
    with node.fault("patch pods/status", times=2):
        node.shut_down()
        await web.until_phase("Failed", within=60)
    await node.wait(5)


@witness("SHUT-03", shutdown_grace_period=60, undisturbed="it waits for what a fault lets pass unseen")
async def test_shutdown_goes_on_when_all_is_told(node: Node) -> None:
    """The kubelet lets the machine go down when it is known how its pods ended, and not before."""
    web = await node.run(container(command="run stopdelay=2"))
    with node.fault("patch pods/status"):
        node.shut_down()
        await web.until_called("StopPodSandbox", done=True)
        await node.wait(5)
        early = ["it was let go"] if node.goes_down() else []
    await node.until(node.goes_down, "the machine may go down", within=25, contract="SHUT-03")
    await node.expect("the machine waits for the status of its pod", lambda: early, "SHUT-03")


@witness("SHUT-04")
async def test_shutdown_is_not_graceful_unless_asked_for(node: Node) -> None:
    """A kubelet whose shutdown grace period is zero ignores a shutdown."""
    await node.run(name="web")
    node.shut_down()
    await node.wait(5)
    late = node.want(pod(name="late"))
    await late.until_running("c1")
    await node.wait(60)
