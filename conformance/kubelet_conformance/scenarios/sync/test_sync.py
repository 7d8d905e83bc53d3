"""Syncs: what is done for a pod, in which order, and what keeps the rest from being done."""

from kubelet_conformance.node import Node, container, exec_probe, pod, witness


@witness("SYNC-01", "SYNC-03", "SYNC-04", "SYNC-07", "SYNC-11")
async def test_new_pod_goes_step_by_step(node: Node) -> None:
    """A new pod is reported as waiting, gets its sandbox, and then its containers one after another."""
    web = node.want(pod(container("c2"), container("c1"), container("c3")))
    await web.until_running("c1", "c2", "c3")


@witness("SYNC-03", undisturbed="a debugger is made and started once, whatever becomes of that")
async def test_each_step_waits_for_the_one_before(node: Node) -> None:
    """However long one step takes, the next begins when it was answered."""
    with node.slow("RunPodSandbox", 3), node.slow("PullImage", 2), node.slow("StartContainer", 2):
        init = container("i1", "exit 0 2", image="registry/init:1")
        web = node.want(pod(container("c1", image="registry/app:1"), container("c2"), init=(init,)))
        await web.until_running("c1", "c2")
        web.debug(container("debugger"))
        await web.until_running("debugger")


@witness("SYNC-03", undisturbed="a debugger is made and started once, whatever becomes of that")
async def test_debugger_comes_before_the_others(node: Node) -> None:
    """An ephemeral container is started before an app container that the same sync runs again."""
    web = await node.run()
    await node.kubelet.kill()
    web.exit("c1", 1)
    web.debug(container("debugger"))
    with node.slow("ImageStatus", 0.2):
        await node.kubelet.start()
        await web.until_running("debugger", "c1")


@witness("SYNC-04", "START-02", undisturbed="a fault of its own comes at a call that it counts")
async def test_failed_start_does_not_stop_the_others(node: Node) -> None:
    """A container that cannot be made does not keep those after it from running."""
    with node.fault("CreateContainer", code="UNKNOWN", message="no such device", times=5, container="c1"):
        web = node.want(pod(container("c1"), container("c2"), container("c3")))
        await web.until_running("c2", "c3")
        await web.until_waiting("c1", "CreateContainerError")
        await web.until_running("c1")


@witness("SYNC-05", "INIT-01", undisturbed="it waits for what a fault lets pass unseen")
async def test_init_that_cannot_be_made_holds_the_rest(node: Node) -> None:
    """While an init container cannot be made nothing after it is, and it is tried again."""
    with node.fault("CreateContainer", code="UNKNOWN", message="no such device", times=2, container="i1"):
        web = node.want(pod(init=(container("i1", "exit 0 1"), container("i2", "exit 0 1"))))
        await web.until_waiting("i1", "CreateContainerError")
        await web.until_running("c1")


@witness("SYNC-06", "SYNC-24", undisturbed="another kubelet begins its tries anew")
async def test_container_that_cannot_be_killed_is_not_doubled(node: Node) -> None:
    """A container whose kill failed is killed again before another instance is made."""
    node.runtime.set_file("alive", there=True)
    probe = exec_probe("xf alive", periodSeconds=2, failureThreshold=1)
    web = await node.run(container("c1", livenessProbe=probe), container("c2"), grace=3)
    with node.fault("StopContainer", code="UNKNOWN", times=2, container="c1"):
        node.runtime.set_file("alive", there=False)
        await web.until_called("StopContainer", "c1", count=2)
        node.runtime.set_file("alive", there=True)
        await web.until_running("c1", attempt=1)


@witness("SYNC-24", "SYNC-06")
async def test_failed_kill_ends_the_sync(node: Node) -> None:
    """While a container with an old image cannot be killed, not even another one that died is made again."""
    web = await node.run(container("c1"), container("c2"))
    with node.fault("StopContainer", code="UNKNOWN", times=2, container="c1"):
        web.set_image("c1", "img:2")
        await web.until_called("StopContainer", "c1")
        web.exit("c2", 1)
        await web.until_running("c1", "c2", attempt=1)


@witness("SYNC-07", "SYNC-20")
async def test_new_sandbox_has_to_be_read(node: Node) -> None:
    """A sandbox that could not be read after it was run is read again, and no other is run meanwhile."""
    with node.fault("PodSandboxStatus", code="UNKNOWN", times=1):
        web = node.want(pod())
        await web.until_running("c1")


@witness("SYNC-08")
async def test_ended_pod_is_only_terminated(node: Node) -> None:
    """For a pod that has come to its end nothing is made any more, though one of its images is absent."""
    failing = container("c1", "exit 1 2")
    job = node.want(pod(failing, container("c2", "exit 0 2"), name="job", restart="Never"))
    await job.until_phase("Failed")
    await node.wait(30)


@witness("SYNC-09", "SYNC-02", "LOOP-04")
async def test_pod_waits_for_the_network(node: Node) -> None:
    """While the pod network is not ready a new pod gets no sandbox, but for one on the node's network."""
    with node.not_ready(network=False):
        await node.wait(6)
        web = node.want(pod(name="web"))
        await node.run(name="host", hostNetwork=True)
        await web.until_event("NetworkNotReady", count=3)
    await web.until_running("c1", within=20)


@witness("SYNC-13")
async def test_nothing_is_done_where_nothing_is_to_do(node: Node) -> None:
    """A pod that is well is left alone when it is synced and when its labels change, until it is to go."""
    web = await node.run(container("c1"), container("c2"), init=(container("i1", "exit 0 1"),))
    await node.wait(60)
    web.update(metadata={"labels": {"tier": "front"}})
    await node.wait(60)
    web.exit("c2", 1)
    await web.until_running("c2", attempt=1)
    await node.wait(10)
    web.delete()
    await web.until_gone()


_MOUNT_DELAYS = 0.5, 1, 2, 4, 8, 16, 32
"""Seconds between two tries to make a volume (nestedpendingoperations)."""


@witness("SYNC-10", "SYNC-02", undisturbed="another kubelet begins its tries anew")
async def test_pod_waits_for_its_volumes(node: Node) -> None:
    """A pod gets no sandbox before what it mounts is there."""
    volume = {"name": "settings", "configMap": {"name": "settings"}}
    mount = {"name": "settings", "mountPath": "/etc/settings"}
    web = node.want(pod(container(volumeMounts=[mount]), volumes=[volume]))
    await web.until_event("FailedMount")
    await node.wait(100)
    tries = [each.at for each in web.events("FailedMount") if each.message.startswith("MountVolume")]
    wrong = [
        f"{later - earlier:g} s instead of {delay:g} s pass between two tries"
        for delay, earlier, later in zip(_MOUNT_DELAYS, tries, tries[1:], strict=False)
        if not delay - 0.3 <= later - earlier <= 1.2 * delay + 0.8
    ]
    if len(tries) <= len(_MOUNT_DELAYS):
        wrong.append(f"only {len(tries)} tries come")
    await node.wait(50)
    node.api.put("ConfigMap", {"metadata": {"namespace": "default", "name": "settings"}, "data": {"k": "v"}})
    await web.until_running("c1")
    await node.expect("tries to make the volume come ever later", lambda: wrong, "SYNC-10")


@witness("SYNC-14", "SYNC-19")
async def test_sandbox_that_fails_for_a_deleted_pod(node: Node) -> None:
    """A sandbox that fails after its pod was deleted is not reported by an event."""
    with node.fault("RunPodSandbox", code="UNKNOWN", message="no network plugin", delay=5):
        web = node.want(pod())
        await web.until_called("RunPodSandbox", done=False)
        web.delete()
        await web.until_gone()


@witness("SYNC-15", "SYNC-16")
async def test_reason_of_a_failed_start_is_forgotten_with_its_success(node: Node) -> None:
    """A container waits with the reason of its last failed start until it could be started."""
    web = None
    with node.fault("CreateContainer", code="UNKNOWN", message="no such device"):
        web = node.want(pod())
        await web.until_waiting("c1", "CreateContainerError")
        await node.restart_kubelet()
        await web.until_waiting("c1", "CreateContainerError")
    await web.until_running("c1")
    await node.wait(15)
    web.exit(code=1)
    await web.until_running("c1", attempt=1)


@witness("SYNC-02")
async def test_container_waits_for_the_network(node: Node) -> None:
    """While the pod network is not ready no container is made again, though its sandbox is there."""
    web = await node.run()
    with node.not_ready(network=False):
        await node.wait(6)
        web.exit(code=1)
        await web.until_event("NetworkNotReady")
        await node.wait(10)
    await web.until_running("c1", attempt=1)


@witness(
    "SYNC-17",
    "SYNC-13",
    needs="pods with cgroups of their own",
    undisturbed="what has ended well is not run again by a later sync",
)
async def test_pod_without_cgroup_is_killed_once(node: Node) -> None:
    """A pod whose cgroup vanishes is killed and comes again with another, or not if it runs once."""
    web = await node.run()
    job = await node.run(name="job", restart="Never")
    node.runtime.remove_cgroup(web.uid)
    node.runtime.remove_cgroup(job.uid)
    await web.until_running("c1", attempt=1, contract="SYNC-17")
    await job.until_phase("Succeeded", contract="SYNC-17")
    await node.wait(200)


@witness("SYNC-21", exempt=("CRI-34",))
async def test_sandbox_status_that_tells_nothing(node: Node) -> None:
    """A sandbox whose status the runtime returns empty is asked for again."""
    with node.fault("PodSandboxStatus", effect="pretend", times=2):
        web = node.want(pod())
        await web.until_running("c1")


_OF_EACH = ("id", "metadata.name", "created_at")
_NEEDED = {
    "PodSandboxStatus": ("status", (*_OF_EACH, "metadata.namespace", "metadata.uid")),
    "ContainerStatus": ("status", (*_OF_EACH, "image.image", "image_ref")),
    "ImageStatus": ("image", ("id", "size")),
}


@witness("SYNC-21", exempt=("CRI-10", "CRI-17", "CRI-23", "CRI-34", "IMAGE-06"))
async def test_status_without_what_it_must_have(node: Node) -> None:
    """A status is not believed that lacks what identifies a sandbox, a container or an image."""
    wrong: list[str] = []
    for rpc, (of, fields) in _NEEDED.items():
        for field in fields:
            with node.fault(rpc, effect="bare", message=f"{of}.{field}"):
                name = f"{rpc}-{field}".lower().replace(".", "-").replace("_", "-")
                web = node.want(pod(name=name))
                await node.wait(5)
                wrong += [name] if web.state("c1") == "running" else []
            await web.until_running("c1")
    await node.expect("a status that lacks a field is not believed", lambda: wrong, "SYNC-21")


@witness(
    "SYNC-23",
    "SYNC-15",
    "EPH-04",
    undisturbed="a debugger is made and started once, whatever becomes of that",
)
async def test_each_start_has_its_own_outcome(node: Node) -> None:
    """What could not be started is tried again soon, and keeps nothing else from its try."""
    with node.fault("CreateContainer", code="UNKNOWN", message="no such device", times=3):
        web = node.want(pod(container("c1")))
        await web.until_running("c1")
    await node.wait(15)
    web.exit(code=1)
    await web.until_running("c1", attempt=1)
    with node.fault("CreateContainer", code="UNKNOWN", message="no such device", times=3, container="d1"):
        web.debug(container("d1"))
        web.debug(container("d2"))
        await web.until_running("d2")
        await web.until_running("d1")


@witness("SYNC-12", "SYNC-22", "START-10", "START-13")
async def test_new_sandbox_has_a_new_address(node: Node) -> None:
    """The containers of a new sandbox get its address, and no longer that of the one before."""
    addresses = [{"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}]
    aliases = [{"ip": "10.1.2.3", "hostnames": ["shop", "shop.example"]}]
    web = await node.run(container("c1", env=addresses), container("c2", env=addresses), hostAliases=aliases)
    node.runtime.kill_sandbox(web.sandbox().id)
    await web.until_running("c1", "c2", attempt=1)
    web.exit("c2", 1)
    await web.until_running("c2", attempt=2)


@witness("SYNC-16")
async def test_reasons_are_forgotten_with_the_kubelet(node: Node) -> None:
    """A restarted kubelet does not know why a container could not be started before its time."""
    with node.fault("CreateContainer", code="UNKNOWN", message="no such device", container="c1"):
        web = node.want(pod(container("c1"), container("c2")))
        await web.until_waiting("c1", "CreateContainerError")
        await web.until_running("c2")
        await node.kubelet.kill()
        web.exit("c2", 1)
        await node.wait(5)
        await node.kubelet.start()
        await web.until_running("c2", attempt=1)
    await web.until_running("c1")


@witness("SYNC-11", "SYNC-02")
async def test_pod_waits_for_its_folders(node: Node) -> None:
    """A pod whose folders cannot be made gets no sandbox, and an event, until they can."""
    with node.damaged("/var/lib/kubelet/pods"):
        web = node.want(pod())
        await web.until_event("FailedToMakePodDataDirectories")
    await web.until_running("c1")
