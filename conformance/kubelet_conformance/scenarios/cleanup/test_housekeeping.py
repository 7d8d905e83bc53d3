"""Housekeeping: what it removes, in which order, and what it leaves alone."""

from kubelet_conformance.node import Node, container, pod, witness


@witness("CLEANUP-01", "CLEANUP-08")
async def test_mirrors_go_first(node: Node) -> None:
    """What is left of a static pod at the API server goes before what is left of any pod at the runtime."""
    web = node.want_static(pod())
    await web.until_phase("Running")
    bound = await node.run(name="bound")
    await node.kubelet.kill()
    node.manifests.remove("web.yaml")
    bound.delete(0)
    await node.wait(1)
    await node.kubelet.start()
    await web.until_stopped()
    await bound.until_stopped()
    await web.until(lambda: node.api.get("default", web.name) is None, "its mirror gone")


@witness("CLEANUP-02")
async def test_pod_that_just_started_is_no_orphan(node: Node) -> None:
    """Pods that start at any moment between two housekeepings are left alone by them."""
    for number in range(5):
        await node.run(name=f"web-{number}")
        await node.wait(0.4)
    await node.wait(6)


@witness("CLEANUP-05", "CLEANUP-03")
async def test_cgroup_stays_with_its_volumes(node: Node) -> None:
    """The cgroup of a pod that went while the kubelet was away goes when its volumes could be removed."""
    mount = [{"name": "cache", "mountPath": "/cache"}]
    web = await node.run(container(volumeMounts=mount), volumes=[{"name": "cache", "emptyDir": {}}])
    await node.kubelet.kill()
    web.delete(0)
    with node.damaged(f"/var/lib/kubelet/pods/{web.uid}/volumes"):
        await node.kubelet.start()
        await web.until_stopped()
        await node.wait(10)
    await node.wait(10)
