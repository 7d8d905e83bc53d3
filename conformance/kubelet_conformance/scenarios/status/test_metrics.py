"""Metrics: the kubelet's counters after certain actions."""

from kubelet_conformance.node import Node, container, pod, witness


@witness("METRIC-01")
async def test_sandboxes_are_counted(node: Node) -> None:
    """Each try to create a sandbox is counted, and each that failed."""
    with node.fault("RunPodSandbox", times=2):
        web = await node.run()
    node.runtime.kill_sandbox(web.sandbox().id)
    await web.until_running("c1", attempt=1)
    await node.scrape()
    await node.restart_kubelet()
    await node.run(name="other")
    await node.wait(5)
    await node.scrape()


@witness("METRIC-02", undisturbed="an ephemeral container that was made without an answer never starts")
async def test_starts_are_counted(node: Node) -> None:
    """Each start is counted by the kind of container, each failure by its reason, and no refusal."""
    node.runtime.publish_image("registry/absent:1", there=False)
    web = node.want(
        pod(
            container("c1", "seq 1@1 1@1 1@1 run"),
            container("c2", image="registry/absent:1"),
            init=(container("i1", "exit 0 1"),),
        )
    )
    await web.until_held_back()
    web.debug(container("debugger"))
    await web.until_running("debugger")
    await node.scrape()
    with node.fault("StartContainer", times=1):
        await web.until_started("c1", attempt=3)
    await node.wait(5)
    await node.scrape()
