"""The evented PLEG: the kubelet takes container events from the runtime instead of relisting."""

from kubelet_conformance.node import Node, container, exec_probe, witness

GATES = {"EventedPLEG": True}
SINCE = 1, 32
"""Kubelets before it take whatever an event shows for the newest state (kubernetes/kubernetes#124297)."""


@witness("CRI-30", "PLEG-14", kubernetes=SINCE, feature_gates=GATES)
async def test_events_drive_the_workers(node: Node) -> None:
    """Container events of the stream are handled at once, and everything is listed seldom."""
    web = await node.run(container("c1"), container("c2"))
    await node.wait(30)
    web.exit("c1", 1)
    await web.until_running("c1", attempt=1)
    await node.wait(90)
    web.delete()
    await web.until_gone(within=120)
    await node.wait(130)


@witness("PLEG-15", kubernetes=SINCE, feature_gates=GATES)
async def test_stream_that_breaks_for_good_is_given_up(node: Node) -> None:
    """After five failed attempts to open the stream the kubelet relists by itself, every second."""
    web = await node.run()
    with node.fault("GetContainerEvents", code="UNAVAILABLE"):
        node.runtime.restart()
        await node.wait(30)
        web.exit(code=1)
        await web.until_running("c1", attempt=1, within=30)
        await node.wait(10)


@witness("PLEG-15", kubernetes=SINCE, feature_gates=GATES)
async def test_stream_that_breaks_is_opened_anew(node: Node) -> None:
    """Each time that the stream breaks everything is listed once, and the stream is opened again."""
    web = await node.run()
    with node.fault("GetContainerEvents", code="UNAVAILABLE", times=1):
        node.runtime.restart()
    await node.wait(10)
    web.exit(code=1)
    await web.until_running("c1", attempt=1, within=30)


@witness("PLEG-16", kubernetes=SINCE, feature_gates=GATES, exempt=("CRI-30",))
async def test_late_event_changes_nothing(node: Node) -> None:
    """Of two events that come in the wrong order the older one does not count."""
    web = await node.run(container("c1"), container("c2"))
    await node.wait(20)
    node.runtime.reverse_events(2)
    web.exit("c1", 1)
    web.exit("c2", 1)
    await web.until_running("c1", "c2", attempt=1)
    await node.wait(10)


@witness("PLEG-16", kubernetes=SINCE, feature_gates=GATES, exempt=("CRI-30",))
async def test_container_that_is_created_late_runs(node: Node) -> None:
    """A container that was started before its creation was reported is not made a second time."""
    web = await node.run()
    await node.wait(20)
    web.exit(code=1)
    node.runtime.reverse_events(2)
    await web.until_running("c1", attempt=1)
    await node.wait(10)


@witness("SIDECAR-19", kubernetes=SINCE, feature_gates=GATES)
async def test_container_that_ends_while_a_sidecar_starts_again(node: Node) -> None:
    """An event shows all containers: one that ends while a sidecar comes back leaves the pod Running."""
    probe = exec_probe("x 0 0", initialDelaySeconds=8, periodSeconds=1)
    sidecar = container("s1", "run", restartPolicy="Always", startupProbe=probe)
    job = await node.run(container("c1"), container("c2"), init=(sidecar,), restart="OnFailure")
    job.exit("s1", 1)
    await job.until_running("s1", attempt=1)
    await node.wait(1)
    job.exit("c2", 0)
    await node.wait(10)


@witness(
    "SANDBOX-04",
    kubernetes=SINCE,
    feature_gates=GATES,
    undisturbed="an older record that a fault leaves keeps the old sandbox",
)
async def test_replaced_sandbox_that_is_removed_leaves_its_pod_alone(node: Node) -> None:
    """The event of a removed sandbox is about that one alone: its pod has another one, and runs on in it."""
    web = await node.run()
    old = web.sandbox().id
    node.runtime.kill_sandbox(old)
    await web.until_running("c1", attempt=1)
    web.exit(code=1)
    await web.until_running("c1", attempt=2)
    await node.until(
        lambda: all(each.id != old for each in web.sandboxes()), "the old sandbox is removed", within=150
    )
    await node.wait(20)


@witness("SANDBOX-02", kubernetes=SINCE, feature_gates=GATES)
async def test_restarted_kubelet_looks_before_it_acts(node: Node) -> None:
    """Until a kubelet has looked at the runtime for the first time it takes no pod for one that is new."""
    web = await node.run()
    node.runtime.kill_sandbox(web.sandbox().id)
    await web.until_running("c1", attempt=1)
    await node.kubelet.kill()
    with node.fault("ContainerStatus", effect="none", delay=3, times=2):
        await node.kubelet.start()
        await node.wait(10)
