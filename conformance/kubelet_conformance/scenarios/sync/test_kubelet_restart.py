"""Restarts of the kubelet: what it finds again, what it leaves alone, what it catches up with."""

from kubelet_conformance.node import Node, container, exec_hook, exec_probe, pod, witness


@witness("RESTARTKUBELET-01", "RESTARTKUBELET-12", "RESTARTKUBELET-14", "PLEG-18", "CRI-42")
async def test_healthy_pod_is_left_alone(node: Node) -> None:
    """A kubelet that starts again touches nothing of a pod that is well, and repeats no hook or init."""
    hooked = container("c1", lifecycle={"postStart": exec_hook("x 0 0.2")})
    await node.run(hooked, container("c2"), init=(container("i1", "exit 0 1"),))
    await node.restart_kubelet(down=2)
    await node.wait(10)


@witness("RESTARTKUBELET-01", "RESTARTKUBELET-11", "PROBE-25")
async def test_address_and_start_time_are_kept(node: Node) -> None:
    """The statuses after a kubelet's restart have the address and the start time of those before."""
    web = await node.run(container(readinessProbe=exec_probe("x 0 0", periodSeconds=3)))
    await web.until_condition("Ready")
    await node.restart_kubelet(down=5)
    await node.wait(5)
    await web.until_condition("Ready")
    await node.wait(10)


@witness("RESTARTKUBELET-03", "CSTAT-07", undisturbed="it waits for what a fault lets pass unseen")
async def test_restart_count_is_found_again(node: Node) -> None:
    """Restart counts go on after a kubelet's restart, back-offs begin anew."""
    web = await node.run()
    web.exit(code=1)
    await web.until_running("c1", attempt=1)
    web.exit(code=1)
    await web.until_held_back()
    await node.restart_kubelet()
    await web.until_running("c1", attempt=2, within=8)
    web.exit(code=1)
    await web.until_running("c1", attempt=3)


@witness("RESTARTKUBELET-04")
async def test_exits_while_down_meet_the_restart_policy(node: Node) -> None:
    """What exited while the kubelet was down is started again where its policy and exit code say so."""
    web = await node.run(container("c1"), container("c2"), container("c3"), restart="OnFailure")
    await node.kubelet.kill()
    web.exit("c1", 0)
    web.exit("c2", 1)
    await node.wait(3)
    await node.kubelet.start()
    await web.until_running("c2", attempt=1)
    await node.wait(10)


@witness("PHASE-06")
async def test_success_while_down_is_told(node: Node) -> None:
    """A pod whose last container ended well while the kubelet was down becomes Succeeded."""
    job = await node.run(restart="Never", name="job")
    await node.kubelet.kill()
    job.exit(code=0)
    await node.wait(3)
    await node.kubelet.start()
    await job.until_phase("Succeeded")
    await node.wait(10)


@witness("RESTARTKUBELET-05")
async def test_ended_pods_stay_ended(node: Node) -> None:
    """Pods that have succeeded or failed are not started again by a kubelet that comes back."""
    good = node.want(pod(container("c1", "exit 0 1"), name="good", restart="Never"))
    bad = node.want(pod(container("c1", "exit 3 1"), name="bad", restart="Never"))
    await good.until_phase("Succeeded")
    await bad.until_phase("Failed")
    await node.restart_kubelet(down=2)
    await node.wait(15)


@witness("PHASE-07", undisturbed="another kubelet starts nothing without the API server")
async def test_end_that_was_never_told_is_found_again(node: Node) -> None:
    """An end that could not be written before the kubelet's death is read off the runtime's records."""
    job = await node.run(restart="Never", name="job")
    with node.outage():
        job.exit(code=1)
        await job.until_called("StopPodSandbox")
        await node.kubelet.kill()
    await node.wait(2)
    await node.kubelet.start()
    await job.until_phase("Failed")
    await node.wait(10)


@witness("RESTARTKUBELET-06")
async def test_deletions_while_down_are_made_up_for(node: Node) -> None:
    """What was deleted while the kubelet was down is stopped: with its grace if its object is still there."""
    asked = await node.run(container(command="run stopdelay=3"), name="asked", grace=7)
    forced = await node.run(container(command="run stopdelay=9"), name="forced")
    await node.kubelet.kill()
    asked.delete()
    forced.delete(0)
    await node.wait(2)
    await node.kubelet.start()
    await asked.until_gone()
    await forced.until_stopped()


@witness("RESTARTKUBELET-07")
async def test_manifest_removed_while_down_ends_its_pod(node: Node) -> None:
    """A static pod whose manifest went while the kubelet was down is stopped, and its mirror deleted."""
    web = node.want_static(pod())
    await web.until_running("c1")
    await node.kubelet.kill()
    node.manifests.remove("web.yaml")
    await node.wait(2)
    await node.kubelet.start()
    await web.until_stopped()
    await web.until(lambda: node.api.get("default", "web-node-1") is None, "its mirror gone")


@witness("RESTARTKUBELET-08", "PROBE-06", "PROBE-07")
async def test_liveness_needs_its_full_threshold_again(node: Node) -> None:
    """Failures before a kubelet's restart do not count for the liveness probe afterwards."""
    node.runtime.set_file("alive", there=True)
    probe = exec_probe("xf alive", periodSeconds=4, failureThreshold=3)
    web = await node.run(container(livenessProbe=probe), grace=5)
    await node.wait(10)
    node.runtime.set_file("alive", there=False)
    await web.until_event("Unhealthy", count=2)
    await node.restart_kubelet()
    await web.until_called("StopContainer", "c1")
    node.runtime.set_file("alive", there=True)
    await web.until_running("c1", attempt=1)


@witness("RESTARTKUBELET-13", "CRI-20")
async def test_reboot_makes_every_pod_again(node: Node) -> None:
    """After a reboot every pod gets a new sandbox and runs again, except one that runs only once."""
    web = await node.run(container("c1"), init=(container("i1", "exit 0 1"),))
    job = await node.run(name="job", restart="Never")
    await node.kubelet.kill()
    node.runtime.reboot()
    await node.wait(5)
    await node.kubelet.start()
    await web.until_running("c1", attempt=1)
    await job.until_phase("Failed")


@witness("RESTARTKUBELET-15", "STATIC-11", "STATIC-16")
async def test_mirror_is_adopted_again(node: Node) -> None:
    """A kubelet that comes back keeps the mirror it finds."""
    web = node.want_static(pod())
    await web.until_phase("Running")
    await node.restart_kubelet()
    await node.wait(15)


@witness("ADMIT-06")
async def test_pods_are_admitted_again(node: Node) -> None:
    """After a kubelet's restart the pods that hold a port are admitted again, and a new one for it is not."""
    port = {"containerPort": 80, "hostPort": 8080}
    await node.run(container(ports=[port]), name="older")
    await node.restart_kubelet()
    await node.wait(5)
    newer = node.want(pod(container(ports=[port]), name="newer"))
    await newer.until_phase("Failed")
    await node.wait(5)


@witness("RESTARTKUBELET-02")
async def test_older_pod_gets_the_port_of_a_running_one(node: Node) -> None:
    """A pod that runs is admitted anew after a restart, and an older one that came meanwhile goes first."""
    ported = container(command="run stopcode=143", ports=[{"containerPort": 80, "hostPort": 8080}])
    node.api.create_unbound(pod(ported, name="older"))
    await node.wait(2)
    newer = await node.run(ported, name="newer")
    await node.kubelet.kill()
    node.api.bind("default", "older")
    await node.wait(1)
    await node.kubelet.start()
    await newer.until_phase("Failed")
    await node.wait(5)


@witness("STATIC-14")
async def test_mirror_that_is_there_already_is_no_failure(node: Node) -> None:
    """A kubelet that has not received its mirror yet finds that it is there, and goes on."""
    web = node.want_static(pod())
    await web.until_phase("Running")
    await node.kubelet.kill()
    with node.fault("list pods"):
        await node.kubelet.start()
        await node.wait(100)
        await node.kubelet.kill()
    await node.kubelet.start()
    await node.wait(5)


@witness("LOOP-08", "CONFIG-12", "RESTARTKUBELET-01")
async def test_silent_api_server_costs_no_pod(node: Node) -> None:
    """A kubelet that starts while the API server is away leaves alone the pods it has not received yet."""
    await node.run(container(command="run stopdelay=1"))
    await node.kubelet.kill()
    with node.outage():
        await node.kubelet.start()
        node.want_static(pod(name="own"))
        await node.wait(70)
    await node.wait(15)


@witness("SYNC-16")
async def test_start_errors_are_forgotten(node: Node) -> None:
    """Why a container could not be started is forgotten with the kubelet's restart: it is tried at once."""
    with node.fault("CreateContainer", code="UNKNOWN", message="no space left"):
        web = node.want(pod())
        await web.until_waiting("c1", "CreateContainerError")
        await node.kubelet.kill()
    await node.wait(2)
    await node.kubelet.start()
    await web.until_running("c1", within=10)
