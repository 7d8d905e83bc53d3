"""Workers: ends that come early, late, or from an unusual side."""

from kubelet_conformance.node import Node, container, exec_probe, pod, witness

_UID = "22222222-2222-3333-4444-555555555555"
_OTHER = "22222222-2222-3333-4444-666666666666"


@witness("WORK-06", "TERM-24")
async def test_deletion_ends_the_wait_for_volumes(node: Node) -> None:
    """A pod that waits for a volume that never comes goes as soon as it is deleted (up to 1.26 later)."""
    volume = {"name": "config", "configMap": {"name": "absent"}}
    mount = {"name": "config", "mountPath": "/etc/config"}
    web = node.want(pod(container("c1", volumeMounts=[mount]), volumes=[volume]))
    await node.wait(20)
    web.delete()
    await web.until_gone()


@witness("WORK-06", kubernetes=(1, 27))
async def test_nothing_comes_of_a_wait_that_was_ended(node: Node) -> None:
    """A pod that is deleted while it waits for a volume has no sandbox, and goes at once."""
    mount = {"name": "config", "mountPath": "/etc/config"}
    volume = {"name": "config", "configMap": {"name": "absent"}}
    web = node.want(pod(container("c1", volumeMounts=[mount]), volumes=[volume]))
    await node.wait(20)
    web.delete()
    await web.until_gone(within=20)
    made = [each.rpc for each in web.calls("RunPodSandbox")]
    await node.expect("no sandbox was asked for", lambda: made, "WORK-06")


@witness("WORK-23")
async def test_ended_static_pod_does_not_come_again(node: Node) -> None:
    """A static pod that is over is not run again when its manifest comes back while it is cleaned up."""
    job = node.want_static(pod(container("c1", "exit 1 2"), restart="Never", metadata={"uid": _UID}))
    with node.slow("StopPodSandbox", 10):
        await job.until_called("StopPodSandbox", done=False)
        node.runtime.remove_container(job.container("c1").id)
        node.manifests.remove("web.yaml")
        # Housekeeping, every 2 s, would have its status forgotten.
        await node.wait(0.2)
        node.want_static(pod(container("c1", "exit 1 2"), restart="Never", metadata={"uid": _UID}))
        await node.wait(30)


@witness("WORK-04", "STATIC-18")
async def test_static_pods_come_back_after_their_end(node: Node) -> None:
    """What comes back while its volumes are cleaned up runs again; a run that was over stays so."""
    mount = {"name": "cache", "mountPath": "/cache"}
    app = container("c1", volumeMounts=[mount])
    manifest = pod(app, volumes=[{"name": "cache", "emptyDir": {}}], metadata={"uid": _UID})
    done = pod(container("c1", "exit 0 2"), name="done", restart="Never", metadata={"uid": _OTHER})
    job = node.want_static(done, file="done.yaml")
    web = node.want_static(manifest)
    await web.until_running("c1")
    await job.until_phase("Succeeded")
    with node.damaged(f"/var/lib/kubelet/pods/{_UID}/volumes"):
        node.manifests.remove("web.yaml")
        await web.until_called("StopPodSandbox")
        await node.wait(5)
        node.want_static(manifest)
        await node.wait(5)
    node.manifests.remove("done.yaml")
    await node.wait(0.2)
    node.want_static(done, file="done.yaml")
    await web.until_called("RunPodSandbox", count=2)
    await web.until_running("c1")


@witness("WORK-27", "CONFIG-17", kubernetes=(1, 27))
async def test_removal_that_no_worker_was_told_of(node: Node) -> None:
    """A manifest that goes before the API server has reported ends its pod, with its grace, once it has."""
    web = node.want_static(pod(container("c1", "run stopdelay=3"), grace=12))
    await web.until_running("c1")
    await node.kubelet.stop()
    with node.outage():
        await node.kubelet.start()
        await node.wait(15)
        node.manifests.remove("web.yaml")
        await node.wait(5)
    await web.until_stopped()


@witness("WORK-28", undisturbed="another kubelet knows nothing of the version before")
async def test_static_pod_that_waited_for_its_name_goes_quietly(node: Node) -> None:
    """A static pod whose manifest goes while it waits for the pod before it is never begun."""
    first = node.want_static(pod(container("c1", "run stopdelay=40"), grace=60, metadata={"uid": _UID}))
    await first.until_running("c1")
    node.want_static(pod(container("c1"), metadata={"uid": _OTHER}))
    await first.until_called("StopContainer", done=False)
    await node.wait(3)
    node.manifests.remove("web.yaml")
    await first.until_stopped()
    await node.wait(40)


@witness("WORK-27", "CONFIG-17", kubernetes=(1, 27))
async def test_version_that_came_and_went_unnoticed_is_never_begun(node: Node) -> None:
    """A version of a static pod that waits while the API server is silent, and goes, is forgotten."""
    slow = container("c1", "run stopdelay=6", readinessProbe=exec_probe("x 0 0", periodSeconds=1))
    first = node.want_static(pod(slow, metadata={"uid": _UID}))
    await first.until_running("c1")
    await node.kubelet.stop()
    with node.outage():
        await node.kubelet.start()
        await node.wait(10)
        node.want_static(pod(container("c1"), metadata={"uid": _OTHER}))
        await node.wait(5)
        node.manifests.remove("web.yaml")
        await node.wait(5)
    await first.until_stopped()
    await node.wait(15)


@witness("WORK-30")
async def test_leftovers_of_an_ended_pod_go_with_their_grace(node: Node) -> None:
    """What still runs of a pod that has ended for the API server is stopped by a kubelet that starts."""
    web = await node.run(container("c1", "run stopdelay=2"), container("c2", "run stopdelay=4"))
    await node.kubelet.kill()
    node.api.update_status(web.namespace, web.name, {"phase": "Succeeded"})
    await node.kubelet.start()
    await web.until_stopped(within=30)


@witness("WORK-31")
async def test_volumes_outlast_the_containers(node: Node) -> None:
    """The volumes of a deleted pod are there until its containers have stopped."""
    mount = {"name": "scratch", "mountPath": "/scratch"}
    slow = container("c1", "run stopdelay=8", volumeMounts=[mount])
    web = await node.run(slow, volumes=[{"name": "scratch", "emptyDir": {}}])
    web.delete()
    await web.until_gone()
    await node.wait(5)


@witness("WORK-04", "WORK-10")
async def test_pod_whose_kill_failed_is_not_run_again(node: Node) -> None:
    """A deleted pod whose kill has failed is killed with the next round, and not run again."""
    web = await node.run()
    with node.fault("StopPodSandbox", times=1, pod=web):
        web.delete()
        await web.until_gone()


@witness("WORK-14")
async def test_pods_that_end_at_any_time_are_not_stopped_again(node: Node) -> None:
    """Whenever a pod ends between two looks of housekeeping, nothing of it is stopped afterwards."""
    jobs = [await node.run(name=name, restart="Never") for name in ("first", "second", "third", "fourth")]
    for job in jobs:
        job.exit("c1", code=0)
        await node.wait(0.6)
    for job in jobs:
        await job.until_phase("Succeeded")
    await node.wait(10)


@witness("WORK-34", "ADMIT-10", kubernetes=(1, 28))
async def test_refused_pod_that_is_deleted_at_once_is_finalized(node: Node) -> None:
    """A pod that is deleted right after it was refused goes, though no worker has ever begun it."""
    web = node.want(pod(nodeSelector={"disk": "fast"}))
    await web.until_event("NodeAffinity")
    web.delete()
    await web.until_gone()


@witness("EVENTS-01", "TERM-25", undisturbed="a fault of its own comes at a call that it counts")
async def test_failed_kill_of_an_unknown_pod_has_an_event(node: Node) -> None:
    """That a pod which no source knows could not be killed is reported by an event, as of any other."""
    web = await node.run()
    await node.kubelet.kill()
    web.delete(grace=0)
    with node.fault("StopContainer", code="UNKNOWN", times=1):
        await node.kubelet.start()
        await node.until(
            lambda: bool(node.events("FailedKillPod")), "an event says so", within=60, contract="EVENTS-01"
        )
    await web.until_stopped(within=60)
