"""Logs of pods."""

from kubelet_conformance.node import Node, witness


@witness("TOY-1")
async def test_pod_writes_logs(node: Node) -> None:
    """A pod has a log directory that the log shipper finds."""
    await node.run()
