"""Devices: dynamic resources that pods claim, and that a plugin prepares for them."""

from kubelet_conformance.node import Node, container, pod, witness

GATES = {"DynamicResourceAllocation": True}
CLAIM = [{"name": "gpu", "resourceClaimName": "fast"}]
USES = {"claims": [{"name": "gpu"}]}
PLUGIN = "a plugin of dynamic resources"


@witness("SYNC-18", "TERM-27", needs=PLUGIN, kubernetes=(1, 26), feature_gates=GATES)
async def test_claimed_device_is_prepared_and_given_back(node: Node) -> None:
    """A pod's claim is prepared before its sandbox, and given back when all of it has stopped."""
    web = node.want(pod(container("c1", "run stopdelay=3", resources=USES), resourceClaims=CLAIM))
    prepares = "NodePrepareResources"
    await web.until(lambda: any(node.observations.of(prepares)), prepares, within=20, contract="SYNC-18")
    await web.until_running("c1")
    node.runtime.kill_sandbox(web.sandbox().id)
    await web.until_running("c1", attempt=1)
    web.delete()
    await web.until_gone()


@witness("SYNC-18", "TERM-27", needs=PLUGIN, kubernetes=(1, 34))
async def test_claims_are_prepared_by_default(node: Node) -> None:
    """From 1.34 on no feature gate has to be opened for a pod to have what it claims."""
    web = node.want(pod(container("c1", resources=USES), resourceClaims=CLAIM))
    prepares = "NodePrepareResources"
    await web.until(lambda: any(node.observations.of(prepares)), prepares, within=20, contract="SYNC-18")
    await web.until_running("c1")
    web.delete()
    await web.until_gone()


@witness("SANDBOX-25", "SYNC-18", "SYNC-02", needs=PLUGIN, kubernetes=(1, 26), feature_gates=GATES)
async def test_pod_waits_for_its_device(node: Node) -> None:
    """A pod whose claim cannot be prepared gets no sandbox until it can."""
    with node.fault("NodePrepareResources", code="UNAVAILABLE", message="no such driver", times=1):
        web = node.want(pod(container("c1", resources=USES), resourceClaims=CLAIM))
        await web.until_running("c1")


@witness("TERM-27", needs=PLUGIN, kubernetes=(1, 26), feature_gates=GATES)
async def test_device_that_cannot_be_given_back(node: Node) -> None:
    """A pod that has run to its end is reported as ended only when its claim was given back."""
    end = container("c1", "exit 0 5", resources=USES)
    with node.fault("NodeUnprepareResources", code="UNAVAILABLE", times=2):
        job = node.want(pod(end, name="job", restart="Never", resourceClaims=CLAIM))
        await job.until_phase("Succeeded")


@witness("SYNC-18", needs=PLUGIN, kubernetes=(1, 26), feature_gates=GATES)
async def test_shared_device_goes_with_its_last_pod(node: Node) -> None:
    """A claim of two pods is given back when the second is gone, though the kubelet was restarted."""
    one = await node.run(container("c1", resources=USES), name="one", resourceClaims=CLAIM)
    two = await node.run(container("c1", resources=USES), name="two", resourceClaims=CLAIM)
    await node.restart_kubelet()
    one.delete()
    await one.until_gone()
    two.delete()
    await two.until_gone()


@witness("TERM-27", needs=PLUGIN, kubernetes=(1, 26), feature_gates=GATES)
async def test_device_of_a_pod_deleted_meanwhile(node: Node) -> None:
    """A kubelet that starts again gives back what a pod has that was deleted in between."""
    web = await node.run(container("c1", resources=USES), resourceClaims=CLAIM)
    await node.kubelet.kill()
    web.delete()
    await node.kubelet.start()
    await web.until_gone()
    kept = [] if node.observations.of("NodeUnprepareResources") else ["it is kept"]
    await node.expect("it is given back", lambda: kept, "TERM-27")


@witness("SYNC-18", needs=PLUGIN, kubernetes=(1, 26), feature_gates=GATES)
async def test_claim_that_is_still_to_be_made(node: Node) -> None:
    """A pod whose claim is made from a template gets no sandbox before its status names the claim."""
    claims = [{"name": "gpu", "resourceClaimTemplateName": "usual"}]
    web = node.want(pod(container("c1", resources=USES), resourceClaims=claims))
    await web.until_event("FailedPrepareDynamicResources")
    made = [{"name": "gpu", "resourceClaimName": "web-gpu"}]
    node.api.update_status(web.namespace, web.name, {**web.status, "resourceClaimStatuses": made})
    await web.until_running("c1", contract="SYNC-18")


@witness("SYNC-18", needs=PLUGIN, kubernetes=(1, 26), feature_gates=GATES)
async def test_device_that_was_given_back_is_prepared_anew(node: Node) -> None:
    """A claim that the last pod has given back is prepared once more for the next."""
    unprepared: list[str] = []
    for number, name in enumerate(("one", "two")):
        web = await node.run(container("c1", resources=USES), name=name, resourceClaims=CLAIM)
        if len(node.observations.of("NodePrepareResources")) <= number:
            unprepared.append(name)
        web.delete()
        await web.until_gone()
    await node.expect("it is prepared for each", lambda: unprepared, "SYNC-18")


@witness("SYNC-18", needs=PLUGIN, kubernetes=(1, 26), feature_gates=GATES)
async def test_device_comes_back_after_a_restart(node: Node) -> None:
    """What two pods have shared is given back with the second, and prepared for a third after a restart."""
    uses = container("c1", resources=USES)
    one, two = [await node.run(uses, name=name, resourceClaims=CLAIM) for name in ("one", "two")]
    for web in (one, two):
        web.delete()
        await web.until_gone()
    kept = [] if node.observations.of("NodeUnprepareResources") else ["it is kept"]
    await node.expect("it is given back", lambda: kept, "SYNC-18")
    await node.restart_kubelet()
    before = len(node.observations.of("NodePrepareResources"))
    await node.run(uses, name="three", resourceClaims=CLAIM)
    missing = [] if len(node.observations.of("NodePrepareResources")) > before else ["it is not"]
    await node.expect("it is prepared for the third", lambda: missing, "SYNC-18")
