"""The main loop: what wakes it, what holds it back, what it must not wait for."""

from kubelet_conformance.node import Node, container, exec_probe, pod, witness


@witness("LOOP-03")
async def test_runtime_that_is_not_ready_stops_everything(node: Node) -> None:
    """While the runtime says that it is not ready nothing is done for any pod; then all is made up for."""
    web = await node.run()
    with node.not_ready(runtime=False):
        await node.wait(6)
        late = node.want(pod(name="late"))
        web.exit(code=1)
        await node.wait(20)
    # The runtime is asked each 5 s, and the loop sleeps for up to 5 s.
    await late.until_running("c1", within=20)
    await web.until_running("c1", attempt=1, within=20)


@witness("LOOP-03", "LOOP-05")
async def test_status_that_fails_for_long_stops_everything(node: Node) -> None:
    """A runtime that has not answered Status for half a minute counts as down."""
    await node.run()
    with node.fault("Status", code="UNAVAILABLE"):
        await node.wait(40)
        late = node.want(pod(name="late"))
        await node.wait(10)
    await late.until_running("c1", within=10)


@witness("LOOP-05", "WORK-19")
async def test_nothing_is_begun_before_the_first_status(node: Node) -> None:
    """A kubelet that starts waits for the runtime's first good Status before it begins any pod."""
    await node.kubelet.kill()
    web = node.want(pod())
    with node.fault("Status", code="UNAVAILABLE"):
        await node.kubelet.start()
        await node.wait(10)
    await web.until_running("c1", within=15)


@witness("LOOP-04", "SYNC-09")
async def test_missing_network_holds_back_those_who_need_it(node: Node) -> None:
    """Without a pod network a pod on the host's network starts, another one waits for it with an event."""
    with node.not_ready(network=False):
        await node.wait(6)
        web = node.want(pod())
        await node.run(name="host", hostNetwork=True, within=10)
        await web.until_event("NetworkNotReady")
        await node.wait(5)
    await web.until_running("c1", within=20)


@witness("SYNC-09")
async def test_network_is_asked_for_each_second(node: Node) -> None:
    """A pod that waits for the network has its sandbox a moment after that is ready."""
    with node.not_ready(network=False):
        await node.wait(6)
        web = node.want(pod())
        await web.until_event("NetworkNotReady")
    await web.until_running("c1", within=20)


@witness("LOOP-07")
async def test_sources_without_pods_count_as_heard(node: Node) -> None:
    """When all sources say that there are no pods, what is left of old ones is cleaned up."""
    web = await node.run()
    await node.kubelet.kill()
    web.delete(0)
    await node.wait(1)
    await node.kubelet.start()
    await web.until_stopped(within=15)


@witness("LOOP-10", "GC-10")
async def test_death_tidies_up(node: Node) -> None:
    """When a container dies again and again its oldest instances are removed, not the newest."""
    web = node.want(pod(container(command="exit 1 1")))
    await web.until_started("c1", attempt=3)
    await node.wait(5)


@witness("LOOP-11")
async def test_retries_come_when_they_are_due(node: Node) -> None:
    """A pod that failed is tried again when that is due, to the second, and the others are left alone."""
    await node.run(name="fine")
    with node.fault("RunPodSandbox", code="UNKNOWN", times=2):
        web = node.want(pod())
        await web.until_running("c1")


@witness("LOOP-12", "PROBE-10")
async def test_probe_results_wake_the_loop(node: Node) -> None:
    """Readiness, startup and failing liveness are acted on at once, not with the next resync."""
    startup = exec_probe("xf up", periodSeconds=2, failureThreshold=20)
    readiness = exec_probe("xf ready", periodSeconds=2, failureThreshold=1)
    web = await node.run(container(startupProbe=startup, readinessProbe=readiness))
    await node.wait(3)
    node.runtime.set_file("ready", there=True)
    node.runtime.set_file("up", there=True)
    await web.until_condition("Ready", within=8)
    node.runtime.set_file("ready", there=False)
    await web.until_condition("Ready", status="False", within=8)


@witness("LOOP-13", "CRI-33")
async def test_slow_stop_holds_up_nobody(node: Node) -> None:
    """While a container takes a minute to stop, another pod is begun."""
    slow = await node.run(container(command="run stopdelay=60"), name="slow", grace=90)
    slow.delete()
    await slow.until_called("StopContainer", done=False)
    await node.wait(3)
    await node.run(name="quick", within=8)
    await slow.until_gone()


@witness("LOOP-14")
async def test_older_pod_is_admitted_first(node: Node) -> None:
    """Of two pods that arrive at once and want one port, the older gets it."""
    await node.kubelet.kill()
    port = {"containerPort": 80, "hostPort": 8080}
    early, late = ({"creationTimestamp": f"2026-01-01T00:00:0{second}Z"} for second in (1, 4))
    older = node.want(pod(container(ports=[port]), name="z-older", metadata=early))
    await node.wait(3)
    newer = node.want(pod(container(ports=[port]), name="a-newer", metadata=late))
    await node.wait(1)
    await node.kubelet.start()
    await older.until_running("c1")
    await newer.until_phase("Failed")


@witness("LOOP-20")
async def test_quiet_pods_are_looked_at_again(node: Node) -> None:
    """A pod without any update is synced again after sixty to ninety seconds, and left as it is.

    When its container ends it is run again by then, whether or not that was reported.
    """
    web = await node.run()
    await node.wait(200)
    web.exit("c1", 1)
    await web.until_running("c1", attempt=1, within=120)


@witness("LOOP-21")
async def test_name_servers_are_limited(node: Node) -> None:
    """A pod that brings as many name servers and search domains as fit gets these and no others."""
    servers = [f"10.0.0.{number}" for number in range(1, 4)]
    domains = [f"d{number}.example.com" for number in range(6)]
    await node.run(dnsPolicy="None", dnsConfig={"nameservers": servers, "searches": domains})


@witness("LOOP-19")
async def test_loop_that_stands_still_is_ill(node: Node) -> None:
    """The health of the loop is bad when it has not turned for five minutes, and good before and after."""
    await node.run()
    await node.ask_health()
    with node.not_ready(runtime=False):
        await node.wait(120)
        await node.ask_health()
        await node.wait(240)
        await node.ask_health()
    await node.wait(20)
    await node.ask_health()
    with node.not_ready(runtime=False):
        await node.restart_kubelet()
        await node.wait(20)
        await node.ask_health()
