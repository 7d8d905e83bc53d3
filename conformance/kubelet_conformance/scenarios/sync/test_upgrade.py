"""A kubelet of another version on the same node: each start brings the other one, newer or older."""

from kubelet_conformance.node import Node, container, exec_probe, pod, witness


@witness("RESTARTKUBELET-17", "RESTARTKUBELET-19", "RESTARTKUBELET-01", then=(1, 36))
async def test_running_pods_are_taken_over(node: Node) -> None:
    """An upgrade and a roll-back touch nothing of pods that are well, and repeat no init container."""
    probed = container(
        "c1",
        startupProbe=exec_probe("x 0 0", periodSeconds=1),
        readinessProbe=exec_probe("x 0 0", periodSeconds=2),
    )
    web = await node.run(probed, container("c2"), init=(container("i1", "exit 0 1"),))
    await web.until_condition("Ready")
    for _ in ("upgrade", "roll-back"):
        await node.restart_kubelet(down=2)
        await node.wait(8)
        await web.until_condition("Ready")


@witness("RESTARTKUBELET-17", kubernetes=(1, 29), then=(1, 36))
async def test_sidecars_are_taken_over(node: Node) -> None:
    """A sidecar with a startup probe runs on under a kubelet of another version, and so does what follows."""
    sidecar = container("s1", restartPolicy="Always", startupProbe=exec_probe("x 0 0", periodSeconds=1))
    await node.run(init=(sidecar,))
    for _ in ("upgrade", "roll-back"):
        await node.restart_kubelet(down=2)
        await node.wait(10)


@witness("RESTARTKUBELET-03", then=(1, 36), undisturbed="it waits for what a fault lets pass unseen")
async def test_ended_and_failing_pods_are_found_again(node: Node) -> None:
    """What has ended stays so, and what fails counts on, under a kubelet of another version."""
    done = node.want(pod(container("c1", "exit 0 1"), name="done", restart="Never"))
    await done.until_phase("Succeeded")
    web = await node.run()
    web.exit(code=1)
    await web.until_running("c1", attempt=1)
    web.exit(code=1)
    await web.until_held_back()
    await node.restart_kubelet()
    await web.until_running("c1", attempt=2)
    await node.wait(10)


@witness("RESTARTKUBELET-06", then=(1, 36))
async def test_deletions_are_seen_to_the_end(node: Node) -> None:
    """A pod in its grace period, and one deleted meanwhile, are ended by a kubelet of another version."""
    slow = await node.run(container(command="run stopdelay=15"), name="slow", grace=20)
    asked = await node.run(container(command="run stopdelay=3"), name="asked", grace=7)
    slow.delete()
    await slow.until_called("StopContainer")
    await node.kubelet.kill()
    asked.delete()
    await node.wait(2)
    await node.kubelet.start()
    await slow.until_gone()
    await asked.until_gone()


@witness("RESTARTKUBELET-18", until=(1, 30), then=(1, 32))
async def test_another_hash_restarts_containers(node: Node) -> None:
    """A kubelet that hashes containers otherwise makes each again, in the same sandbox, and once."""
    web = await node.run(
        container("c1", "run stopcode=143"), container("c2"), init=(container("i1", "exit 0 1"),)
    )
    await node.restart_kubelet(down=2)
    await web.until_running("c1", attempt=1)
    await web.until_running("c2", attempt=1)
    await node.wait(15)


@witness("STATIC-11", then=(1, 36))
async def test_static_pod_is_another_pod(node: Node) -> None:
    """To a kubelet of another version a manifest without a UID is another pod, with a mirror of its own."""
    web = node.want_static(pod())
    await web.until_running("c1")
    await node.restart_kubelet(down=2)
    await node.wait(20)
    await web.until_running("c1")


@witness("RESTARTKUBELET-16", "RESTARTKUBELET-19", kubernetes=(1, 33), then=(1, 36))
async def test_resize_is_found_again(node: Node) -> None:
    """A kubelet of another version finds a pod as it was resized, and leaves it so."""
    await _run_resized(node)
    await node.restart_kubelet()
    await node.wait(15)


@witness(
    "RESTARTKUBELET-19",
    kubernetes=(1, 32),
    then=(1, 36),
    feature_gates={"InPlacePodVerticalScaling": True},
)
async def test_older_allocations_are_passed_over(node: Node) -> None:
    """A kubelet whose allocations are in another file starts beside those of one that is older."""
    await _run_resized(node)
    await node.restart_kubelet()
    await node.wait(65)


async def _run_resized(node: Node) -> None:
    web = await node.run(container("c1", resources=_sized("500m")))
    await node.wait(5)
    web.resize(c1=_sized("1"))
    await web.until_called("UpdateContainerResources", "c1")
    await node.wait(5)


def _sized(cpu: str) -> dict[str, dict[str, str]]:
    return {"requests": {"cpu": cpu}, "limits": {"cpu": cpu}}
