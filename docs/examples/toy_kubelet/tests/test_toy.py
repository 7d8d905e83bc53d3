"""The toy kubelet, judged by all contracts: the scenarios provoke, and assert nothing."""

from kubelet_conformance.node import Node, container, pod


async def test_pod_runs_and_goes(node: Node) -> None:
    """A pod runs, and stops when its file goes."""
    web = node.want(pod(container("c1")))
    await web.until_called("StartContainer")
    web.delete()
    await web.until_called("StopPodSandbox")


async def test_container_ends(node: Node) -> None:
    """A container ends in a pod that is not to be restarted."""
    job = node.want(pod(container("c1", "exit 0 1"), restart="Never"))
    await job.until_called("StartContainer")
    await node.wait(4)
