"""What runtimes got wrong in history: situations in which a right one, and the kubelet on it, hold."""

from kubelet_conformance.node import Node, container, exec_hook, exec_probe, pod, witness


@witness("CRI-05", "SANDBOX-18")
async def test_sandbox_takes_its_containers_along(node: Node) -> None:
    """A container whose stop failed ends with its sandbox."""
    with node.fault("StopContainer", code="UNKNOWN"):
        web = await node.run(container("c1"), container("c2", "run stopdelay=60"), grace=5)
        web.delete()
        await web.until_called("StopPodSandbox")
        await node.wait(5)
    await web.until_gone()


@witness("CRI-13")
async def test_second_stop_shortens_the_first(node: Node) -> None:
    """A kubelet that comes back stops a container with little grace that is being stopped with much."""
    slow = await node.run(container(command="run stopdelay=600"), grace=300)
    slow.delete()
    await slow.until_called("StopContainer", done=False)
    await node.kubelet.kill()
    slow.delete(grace=0)
    await node.wait(3)
    await node.kubelet.start()
    await slow.until_stopped(within=150)


@witness("CRI-14", "CRI-15")
async def test_unknown_container_is_stopped_for_good(node: Node) -> None:
    """A container that the runtime lost track of is stopped, then replaced, and at last removed."""
    web = await node.run()
    node.runtime.lose_track(web.container().id)
    await web.until_running("c1", attempt=1)
    web.delete()
    await web.until_gone()
    await node.wait(120)


@witness("CRI-19")
async def test_ended_stays_ended_over_a_restart(node: Node) -> None:
    """After a restart of the runtime a finished init container is finished, and the app goes on."""
    web = node.want(pod(container("c1"), init=(container("i1", "exit 0 1"),)))
    await web.until_running("c1")
    node.runtime.restart()
    await node.wait(5)
    web.exit("c1", 1)
    await web.until_running("c1", attempt=1)


@witness("CRI-20")
async def test_dead_sandboxes_stay_dead_over_a_restart(node: Node) -> None:
    """A sandbox that died is not READY after a restart of the runtime; the one in its place is used on."""
    web = await node.run()
    node.runtime.kill_sandbox(web.sandbox().id)
    await web.until_called("RunPodSandbox", count=2)
    await web.until_running("c1")
    node.runtime.restart()
    await node.wait(5)


@witness("CRI-21")
async def test_addresses_outlast_the_runtime(node: Node) -> None:
    """After a restart of the runtime its sandboxes have the addresses that they had."""
    web = await node.run()
    node.runtime.restart()
    await node.wait(2)
    web.exit("c1", 1)
    await web.until_running("c1", attempt=1)
    await node.wait(10)


@witness("CRI-10", "RESTART-13")
async def test_creation_times_order_attempts(node: Node) -> None:
    """Of the instances of a container, and of the sandboxes of a pod, the later ones were created later."""
    web = node.want(pod(container(command="seq 1@1 1@1"), container("c2")))
    await web.until_started("c1", attempt=2)
    node.runtime.kill_sandbox(web.sandbox().id)
    await web.until_started("c2", attempt=1)
    await node.wait(30)


@witness("CRI-16")
async def test_lost_ends_are_no_success(node: Node) -> None:
    """A container that was lost with the node did not end well: its exit code is never reported as 0."""
    job = await node.run(restart="OnFailure")
    await node.kubelet.kill()
    node.runtime.reboot()
    await node.kubelet.start()
    await job.until_running("c1", within=60)
    await node.wait(5)


@witness("CRI-09")
async def test_one_broken_record_spoils_no_list(node: Node) -> None:
    """While one container is of unknown state the others are listed, and their pods live on."""
    web = await node.run(name="web")
    broken = await node.run(name="broken")
    await node.wait(3)
    with node.fault("StopContainer", code="UNKNOWN", pod=broken):
        node.runtime.lose_track(broken.container().id)
        await node.wait(5)
        web.exit("c1", 1)
        await node.wait(5)
    await web.until_running("c1", attempt=1)
    await broken.until_running("c1", attempt=1)


@witness("CRI-05")
async def test_stopping_what_has_just_gone(node: Node) -> None:
    """A sandbox that vanished while its pod was being stopped is stopped without an error."""
    web = await node.run(container(lifecycle={"preStop": exec_hook("x 0 3")}))
    web.delete()
    await web.until_called("ExecSync", "c1", done=False)
    node.runtime.remove_sandbox(web.sandbox().id)
    await web.until_gone()
    await node.wait(120)


@witness("CRI-26", "PROBE-15")
async def test_late_probe_leaves_its_container_alone(node: Node) -> None:
    """A probe that takes too long is ended and counted as a failure; its container runs on."""
    slow = container(readinessProbe=exec_probe("x 0 30", timeoutSeconds=1, periodSeconds=5))
    web = await node.run(slow)
    await web.until_event("Unhealthy", count=2)
    await node.wait(5)


@witness("CRI-11", "SYNC-11")
async def test_sandbox_dies_before_its_container_is_made(node: Node) -> None:
    """A sandbox that died while an image was being pulled gets no container; the next one does."""
    node.runtime.publish_image("registry/app:1")
    with node.slow("PullImage", 3):
        web = node.want(pod(container(image="registry/app:1", imagePullPolicy="Always")))
        await web.until_called("PullImage", done=False)
        node.runtime.kill_sandbox(web.sandbox().id)
        await web.until_running("c1")


@witness("CRI-12", "START-13")
async def test_failed_start_is_an_end(node: Node) -> None:
    """A container whose command cannot be started has ended, and the pod makes progress all the same."""
    broken = node.want(pod(container(command="nostart"), restart="Never", name="broken"))
    await broken.until_phase("Failed", within=60)
    again = node.want(pod(container(command="nostart"), container("c2"), name="again"))
    await again.until_started("c2")
    await again.until_called("CreateContainer", "c1", count=3)


@witness("CRI-32", "SANDBOX-02")
async def test_late_sandbox_is_made_all_the_same(node: Node) -> None:
    """A sandbox that took longer than the kubelet waits is there in the end, and is used."""
    with node.slow("RunPodSandbox", 300):
        web = node.want(pod())
        await web.until_called("RunPodSandbox", count=2, within=600)
    await web.until_running("c1")


@witness("CRI-21")
async def test_late_sandboxes_keep_no_addresses(node: Node) -> None:
    """Sandboxes that were given up on take no address away from those that come after them."""
    with node.slow("RunPodSandbox", 300):
        slow = [node.want(pod(name=f"slow-{number}")) for number in range(6)]
        await slow[-1].until_called("RunPodSandbox")
        for each in slow:
            each.delete(grace=0)
        await node.wait(400)
    await node.run(name="quick", within=300)
