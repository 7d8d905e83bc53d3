"""Termination under difficulties: no spec, a lost record, a probe, a pull or a restart in between."""

from kubelet_conformance.node import Node, container, exec_hook, exec_probe, pod, witness

_UID = "11111111-2222-3333-4444-555555555555"


@witness("TERM-12", "GC-04")
async def test_record_without_a_pod_is_stopped_by_its_annotations(node: Node) -> None:
    """A container of which only an unknown record is left is stopped as its annotations say."""
    hook = {"preStop": exec_hook("x 0 4")}
    web = await node.run(container("c1", lifecycle=hook), grace=20)
    await node.kubelet.kill()
    node.runtime.lose_track(web.container("c1").id)
    node.runtime.kill_sandbox(web.sandbox().id)
    web.delete(grace=0)
    await node.kubelet.start()
    await node.until(lambda: not web.containers(), "its record is removed", within=150)


@witness("TERM-13", "LOOP-22")
async def test_stranger_to_the_spec_cannot_be_stopped_by_it(node: Node) -> None:
    """The end of a pod of which a container runs that its spec does not name fails at first."""
    web = node.want_static(pod(container("c1"), metadata={"uid": _UID}))
    await web.until_running("c1")
    node.want_static(pod(container("c2"), metadata={"uid": _UID}))
    await web.until_running("c2")
    node.manifests.remove("web.yaml")
    await web.until_stopped()


@witness("TERM-14", "PROBE-13")
async def test_readiness_goes_on_and_liveness_does_not(node: Node) -> None:
    """While a deleted pod's container ends, its readiness is probed and its liveness is not."""
    ready, alive = (
        exec_probe("x 0 0", periodSeconds=3),
        exec_probe("x 0 1", periodSeconds=3, timeoutSeconds=2),
    )
    web = await node.run(container("c1", "run stopdelay=20", readinessProbe=ready, livenessProbe=alive))
    await web.until_condition("Ready")
    web.delete()
    await web.until_gone()


@witness("TERM-17", kubernetes=(1, 27))
async def test_lost_container_is_told_as_terminated(node: Node) -> None:
    """A container whose record is lost while its pod ends is reported as terminated for an unknown reason."""
    web = await node.run(container("c1"), container("c2", "run stopdelay=12"))
    with node.slow("StopContainer", 6, container="c1"):
        web.delete()
        await web.until_called("StopContainer", "c2", done=False)
        node.runtime.remove_container(web.container("c1").id)
        await web.until_gone()


@witness("TERM-23")
async def test_new_kubelet_gives_the_whole_grace_again(node: Node) -> None:
    """A kubelet that starts in the grace period of a pod stops it with the whole grace again."""
    hook = {"preStop": exec_hook("x 0 3")}
    web = await node.run(
        container("c1", "run stopdelay=60"), container("c2", "run stopdelay=60", lifecycle=hook)
    )
    web.delete(grace=40)
    await web.until_called("StopContainer", "c2", done=False)
    await node.wait(10)
    await node.restart_kubelet()
    await web.until_gone()


@witness("TERM-26")
async def test_pull_is_awaited_by_a_deletion(node: Node) -> None:
    """A pod that is deleted while an image is pulled goes when the pull has ended."""
    node.runtime.publish_image("slow:1")
    web = node.want(pod(container("c1"), container("c2", image="slow:1")))
    with node.slow("PullImage", 15, pod=web):
        await web.until_called("PullImage", done=False)
        web.delete()
        await node.wait(1)
    await web.until_gone()


@witness("TERM-03")
async def test_long_grace_is_waited_for(node: Node) -> None:
    """A container that takes minutes to end is waited for as long as its grace lasts."""
    web = await node.run(container("c1", "run stopdelay=170"), grace=200)
    web.delete()
    await web.until_gone()


@witness("TERM-29")
async def test_one_end_leaves_the_others_their_grace(node: Node) -> None:
    """When one container of a deleted pod ends, the others have their grace all the same."""
    web = await node.run(container("c1", "run stopdelay=2"), container("c2", "run stopdelay=20"))
    web.delete()
    await web.until_gone()


@witness("TERM-22")
async def test_pod_deleted_at_its_end_goes_without_a_stop(node: Node) -> None:
    """A pod that is deleted when it has ended, its sandbox not being stopped yet, goes without a stop."""
    job = node.want(pod(container("c1", "exit 0 5"), restart="Never"))
    with node.fault("StopPodSandbox", times=1, pod=job):
        await job.until_called("StopPodSandbox")
        await node.wait(3)
        job.delete()
        await job.until_gone()
