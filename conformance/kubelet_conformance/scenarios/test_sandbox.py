"""Sandboxes: when a pod gets a new one, and what happens to the old."""

from __future__ import annotations

from kubelet_conformance.node import Node, container, witness


@witness("SANDBOX-02", "SANDBOX-04", "SANDBOX-09")
async def test_killed_sandbox_is_replaced(node: Node) -> None:
    """A pod whose sandbox died is stopped and gets a new sandbox with the next attempt."""
    web = await node.run(container("c1"), container("c2"))
    node.runtime.kill_sandbox(web.sandbox().id)
    await web.until_running("c1", "c2", attempt=1)
