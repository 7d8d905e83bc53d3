"""The runtime's own obligations: what it has to answer, keep and let go."""

from kubelet_conformance.node import Node, container, exec_hook, exec_probe, pod, witness


@witness(
    *("CRI-01", "CRI-02", "CRI-03", "CRI-09", "CRI-10", "CRI-11", "CRI-12", "CRI-18", "CRI-21", "CRI-22"),
    *("CRI-34", "CRI-39", "CRI-42"),
)
async def test_records_are_what_was_asked_for(node: Node) -> None:
    """A runtime keeps what it was given of a pod and its containers, and gives back just that."""
    odd = {
        "labels": {"empty": "", "odd/key": "a.b-c_D"},
        "annotations": {"json": '{"a": [1, "ü"]}', "no": ""},
    }
    await node.run(container("c1"), container("c2"), metadata=odd)
    host = node.want(pod(name="host", hostNetwork=True, hostPID=True, shareProcessNamespace=False))
    await host.until_running("c1")
    await node.wait(3)


@witness("CRI-05", "CRI-13", "CRI-19", "CRI-20", "CRI-43")
async def test_stopping_stops(node: Node) -> None:
    """A stop returns when the container has ended: by itself in its grace, or killed after it."""
    obeys = await node.run(container(command="run stopdelay=2 stopcode=1"), name="obeys", grace=10)
    resists = await node.run(container(command="run stopdelay=60"), name="resists", grace=4)
    obeys.delete()
    resists.delete()
    await obeys.until_gone()
    await resists.until_gone()


@witness("CRI-06", "CRI-15", "CRI-41", "GC-05")
async def test_removed_is_gone(node: Node) -> None:
    """What was removed is in no list and has no status any more."""
    web = await node.run()
    web.delete()
    await web.until_gone()
    await web.until_called("RemovePodSandbox", within=150)
    await node.wait(5)


@witness("CRI-08")
async def test_stop_of_what_is_gone(node: Node) -> None:
    """Stopping a container that has just vanished does no harm."""
    hooked = container("c1", lifecycle={"preStop": exec_hook("x 0 2")})
    web = await node.run(hooked, container("c2"))
    web.delete()
    await web.until_called("ExecSync", "c1", done=False)
    node.runtime.remove_container(web.container("c1").id)
    await web.until_gone()


@witness("CRI-16", "CRI-17", "CRI-19")
async def test_the_dead_are_kept_with_their_ends(node: Node) -> None:
    """A dead container stays on record until it is removed, with its exit code, its end and the reason."""
    job = await node.run(container("c1"), container("c2"), container("c3", "exit 3 2"), restart="Never")
    node.runtime.oom(job.container("c1").id)
    job.exit("c2", 0)
    await job.until_phase("Failed")
    await node.wait(70)


@witness("CRI-23", "CRI-24", "CRI-39")
async def test_pulled_image_is_known(node: Node) -> None:
    """An image that is absent is no error, and one that was pulled is known by what the pull returned."""
    node.runtime.publish_image("registry/app:1")
    await node.run(container(image="registry/app:1", imagePullPolicy="IfNotPresent"))


@witness("CRI-26", "CRI-27")
async def test_exec_keeps_its_time(node: Node) -> None:
    """A command ends with its exit code or at its timeout, and runs only in a container that runs."""
    slow = container("c1", readinessProbe=exec_probe("x 0 5", timeoutSeconds=2, periodSeconds=5))
    failing = container("c2", readinessProbe=exec_probe("x 1 0", periodSeconds=5))
    hooked = container("c3", lifecycle={"preStop": exec_hook("x 0 1")})
    web = await node.run(slow, failing, hooked, grace=5)
    await node.wait(12)
    web.exit("c3", 1)
    web.delete()
    await web.until_gone()


@witness("CRI-37", "EPH-01", undisturbed="a debugger is made and started once, whatever becomes of that")
async def test_debugger_shares_its_targets_processes(node: Node) -> None:
    """A debug container joins the process namespace of its target."""
    web = await node.run()
    web.debug(container("debugger", targetContainerName="c1"))
    await web.until_running("debugger")


@witness("CRI-33")
async def test_pods_do_not_wait_for_each_other(node: Node) -> None:
    """While one pod's container takes long to stop, another pod is started."""
    slow = await node.run(container(command="run stopdelay=20"), name="slow")
    slow.delete()
    await slow.until_called("StopContainer", done=False)
    await node.wait(1)
    await node.run(name="quick", within=5)
    await slow.until_gone()


@witness("CRI-04")
async def test_work_goes_on_without_its_caller(node: Node) -> None:
    """A sandbox whose making was asked for by a kubelet that died is found by the next one and used."""
    with node.slow("RunPodSandbox", 5):
        web = node.want(pod())
        await web.until_called("RunPodSandbox", done=False)
        await node.wait(1)
        await node.kubelet.kill()
        await node.kubelet.start()
        await web.until_running("c1")


@witness("SANDBOX-02")
async def test_sandbox_that_failed_late_is_found(node: Node) -> None:
    """A sandbox whose making was answered with an error, but took place, is found by its records and used."""
    with node.fault("RunPodSandbox", effect="after", code="UNKNOWN", times=1):
        web = node.want(pod())
        await web.until_running("c1")
