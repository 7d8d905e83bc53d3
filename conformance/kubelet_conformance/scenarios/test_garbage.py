"""Garbage: which records of dead containers and sandboxes are removed, and when."""

from __future__ import annotations

from kubelet_conformance.node import Node, container, exec_hook, pod, witness


@witness("GC-01", "GC-10")
async def test_newest_dead_record_is_kept(node: Node) -> None:
    """Of a container that keeps ending the newest record stays and the one before it goes."""
    web = node.want(pod(container("c1", "exit 1 1")))
    await web.until_started("c1", attempt=3)
    await node.until(lambda: len(web.containers("c1")) == 1, "one record is left", within=10)


@witness("GC-04", "TERM-12")
async def test_unknown_record_is_stopped_first(node: Node) -> None:
    """A gone pod's container in an unknown state is stopped, its hook first, before its record is removed."""
    web = await node.run(container("c1", lifecycle={"preStop": exec_hook("x 0 1")}))
    await node.kubelet.kill()
    node.runtime.lose_track(web.container("c1").id)
    node.runtime.kill_sandbox(web.sandbox().id)
    web.delete(grace=0)
    await node.kubelet.start()
    await node.until(lambda: not web.containers(), "its record is removed", within=150)


@witness("GC-05", "SANDBOX-04")
async def test_replaced_sandbox_is_removed(node: Node) -> None:
    """A sandbox that was replaced is removed when none of its containers is left."""
    web = await node.run()
    node.runtime.kill_sandbox(web.sandbox().id)
    await web.until_running("c1", attempt=1)
    web.exit("c1", code=1)
    await web.until_running("c1", attempt=2)
    await node.until(lambda: len(web.sandboxes()) == 1, "the old sandbox is removed", within=150)


@witness("GC-08")
async def test_container_that_never_ran_is_removed(node: Node) -> None:
    """Of several instances that could not be started the oldest are removed with the next round."""
    with node.fault("StartContainer", times=2):
        web = await node.run()
    first = web.containers("c1")[0]
    await node.until(lambda: first not in web.containers("c1"), "the first is removed", within=150)


@witness("GC-09")
async def test_running_container_is_never_garbage(node: Node) -> None:
    """A container that runs outlasts every round of garbage collection, and a lost removal is made up for."""
    web = await node.run(container("c1"), container("c2", "seq 1@1 1@1 run"))
    with node.fault("RemoveContainer", times=3):
        await web.until_running("c2", attempt=2)
        await node.wait(130)
    await web.until_running("c1", attempt=0)


@witness("CLEANUP-06")
async def test_unreadable_runtime_kills_nothing(node: Node) -> None:
    """While the runtime cannot be listed nothing is killed, not even what nobody wants."""
    web = await node.run()
    orphan = await node.run(name="orphan")
    await node.kubelet.kill()
    orphan.delete(grace=0)
    await node.kubelet.start()
    await node.wait(1)
    with node.fault("ListPodSandbox"):
        await node.wait(6)
    await orphan.until_stopped()
    await web.until_running("c1", attempt=0)


@witness("GC-05")
async def test_failed_round_is_made_up_for(node: Node) -> None:
    """Records that one round of garbage collection could not remove go with a later one."""
    web = await node.run()
    with node.fault("RemovePodSandbox", times=1):
        web.delete()
        await web.until_gone()
        await node.until(lambda: not web.sandboxes(), "its sandbox is removed", within=200)
