"""Conditions: what a pod's containers, sandbox and gates amount to."""

from kubelet_conformance.node import Node, container, exec_probe, pod, witness


@witness("COND-01", "COND-02", "COND-03", "COND-05", undisturbed="it waits for what a fault lets pass unseen")
async def test_conditions_come_true_one_after_another(node: Node) -> None:
    """A pod is initialized when its init containers are done, ready when all its containers are."""
    late = container("c2", readinessProbe=exec_probe("xf ready", periodSeconds=2))
    web = node.want(
        pod(container("c1"), late, init=(container("i1", "exit 0 2"), container("i2", "exit 0 2")))
    )
    await web.until_condition("Initialized")
    await web.until_running("c1", "c2")
    node.runtime.set_file("ready", there=True)
    await web.until_condition("Ready")
    web.exit("c1", 1)
    await web.until_condition("Ready", status="False")
    await web.until_condition("Ready")


@witness("COND-02", "COND-03", "TERM-31")
async def test_conditions_tell_how_a_pod_ended(node: Node) -> None:
    """At its end a pod is not ready, because it completed or because it failed."""
    good = node.want(pod(container(command="exit 0 2"), name="good", restart="Never"))
    bad = node.want(pod(container(command="exit 1 2"), name="bad", restart="Never"))
    await good.until_phase("Succeeded")
    await bad.until_phase("Failed")


@witness("COND-04", "CONFIG-16", "STATUS-06")
async def test_gates_hold_back_ready(node: Node) -> None:
    """A pod with gates is ready when its containers are and every gate was opened."""
    web = await node.run(readinessGates=[{"conditionType": "a/one"}, {"conditionType": "a/two"}])
    await web.until_condition("ContainersReady")
    _gate(node, "a/one", "True")
    await node.wait(3)
    _gate(node, "a/two", "True")
    await web.until_condition("Ready")
    _gate(node, "a/one", "False")
    await web.until_condition("Ready", status="False")
    _gate(node, "a/one", "True")
    await web.until_condition("Ready")
    web.exit(code=1)
    await web.until_running("c1", attempt=1)


def _gate(node: Node, kind: str, status: str) -> None:
    node.api.update_status("default", "web", {"conditions": [{"type": kind, "status": status}]})


@witness(
    "COND-06", "SANDBOX-02", kubernetes=(1, 29), undisturbed="it waits for what a fault lets pass unseen"
)
async def test_sandbox_comes_and_goes(node: Node) -> None:
    """PodReadyToStartContainers is True with a ready sandbox, else False, at the pod's end too."""
    web = await node.run(container(command="run stopdelay=4"))
    node.runtime.kill_sandbox(web.sandbox().id)
    await web.until_condition("PodReadyToStartContainers", status="False")
    await web.until_running("c1", attempt=1)
    await web.until_condition("PodReadyToStartContainers")
    web.delete()
    await web.until_gone()


@witness("COND-06", "COND-07", until=(1, 35))
async def test_slow_pull_in_a_ready_sandbox(node: Node) -> None:
    """A sandbox is reported as ready with the next status, however long the first image takes."""
    with node.slow("PullImage", 20):
        web = node.want(pod(container(image="registry/big:1"), container("c2", image="registry/big:2")))
        await web.until_running("c1", "c2")


@witness("COND-07", kubernetes=(1, 36))
async def test_sandbox_is_told_before_the_pull(node: Node) -> None:
    """A sandbox is reported as ready at once, however long the first image takes."""
    with node.slow("PullImage", 30):
        web = node.want(pod(container(image="registry/big:1")))
        await web.until_condition("PodReadyToStartContainers", within=20)
        await web.until_running("c1")


@witness("COND-06", kubernetes=(1, 29))
async def test_sandbox_is_gone_in_the_end(node: Node) -> None:
    """The last status of a deleted pod reports no ready sandbox any more."""
    web = await node.run()
    await web.until_condition("PodReadyToStartContainers")
    web.delete()
    await web.until_gone()
