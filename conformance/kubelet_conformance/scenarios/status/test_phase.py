"""Phases: how they follow from the states of a pod's containers."""

from kubelet_conformance.node import Node, container, pod, witness


@witness("PHASE-02", "PHASE-15", "CSTAT-01")
async def test_container_that_never_ran_keeps_the_pod_pending(node: Node) -> None:
    """A pod is Pending until all its app containers have run, though one of them runs."""
    node.runtime.publish_image("registry/absent:1", there=False)
    web = node.want(pod(container("c1"), container("c2", image="registry/absent:1")))
    await web.until_waiting("c2", "ErrImagePull")
    await web.until_waiting("c2", "ImagePullBackOff")
    node.runtime.publish_image("registry/absent:1")
    await web.until_phase("Running")


@witness("PHASE-15", "COND-02", "COND-03")
async def test_pod_without_containers_is_pending(node: Node) -> None:
    """A pod that has a sandbox and nothing in it is Pending."""
    node.runtime.publish_image("registry/absent:1", there=False)
    web = node.want(pod(container(image="registry/absent:1")))
    await web.until_waiting("c1", "ImagePullBackOff")


@witness("PHASE-03", "PHASE-05", "CSTAT-03", "CSTAT-04", "STATUS-09")
async def test_crash_loop_runs(node: Node) -> None:
    """A pod that is always restarted is Running, be its container up, down or held back."""
    web = node.want(pod(container(command="exit 1 2")))
    await web.until_held_back()
    await web.until_started("c1", attempt=3)


@witness("PHASE-05")
async def test_always_never_succeeds(node: Node) -> None:
    """A pod that is always restarted does not succeed, though its containers end with 0."""
    web = node.want(pod(container("c1", "exit 0 2"), container("c2", "exit 0 2")))
    await web.until_started("c1", attempt=2)
    await node.wait(5)


@witness("PHASE-06", "STATUS-10")
async def test_all_ended_well_succeeds(node: Node) -> None:
    """A pod is Succeeded when all its containers ended with 0 and none is to come again."""
    job = node.want(pod(container("c1", "exit 0 1"), container("c2", "exit 0 4"), restart="OnFailure"))
    await job.until_phase("Succeeded")
    await node.wait(5)


@witness("PHASE-07", "PHASE-08", "STATUS-10")
async def test_failure_is_final_once_nothing_runs(node: Node) -> None:
    """A pod that runs once is Running while something runs, and then Failed if one container failed."""
    job = node.want(pod(container("c1", "exit 1 1"), container("c2", "exit 0 6"), restart="Never"))
    await job.until_terminated("c1")
    await job.until_phase("Failed")
    await node.wait(5)


@witness("PHASE-07", undisturbed="it waits for what a fault lets pass unseen")
async def test_failure_that_is_tried_again_runs(node: Node) -> None:
    """A pod whose failed container is to be tried again is Running."""
    job = node.want(pod(container(command="seq 1@1 1@1 0@1"), restart="OnFailure"))
    await job.until_held_back(contract="PHASE-07")
    await job.until_phase("Succeeded", contract="PHASE-07")


@witness("PHASE-09", "COND-02")
async def test_init_that_fails_decides_by_policy(node: Node) -> None:
    """A failed init container makes a pod that runs once Failed, and leaves one that is restarted Pending."""
    once = node.want(pod(name="once", init=(container("i1", "exit 1 1"),), restart="Never"))
    again = node.want(pod(name="again", init=(container("i1", "seq 1@1 1@1 0@1"),), restart="OnFailure"))
    await once.until_phase("Failed")
    await again.until_phase("Running")


@witness("PHASE-10", "SANDBOX-05", undisturbed="an old record of i1 that a fault leaves counts for it")
async def test_init_that_cannot_run_again_counts_as_done(node: Node) -> None:
    """An init container that ended with 0 and cannot be started again counts as done."""
    init = container("i1", "exit 0 1", image="registry/init:1", imagePullPolicy="Always")
    web = await node.run(container("c1"), init=(init,))
    node.runtime.publish_image("registry/init:1", there=False)
    node.runtime.kill_sandbox(web.sandbox().id)
    await web.until_waiting("i1", "ErrImagePull")
    node.runtime.publish_image("registry/init:1")
    await web.until_running("c1", attempt=1)


@witness("PHASE-12", "COND-06", "STATUS-16")
async def test_running_pod_may_be_pending_again(node: Node) -> None:
    """A pod whose sandbox died is Pending while its init containers run once more."""
    web = await node.run(container("c1"), init=(container("i1", "exit 0 5"),))
    node.runtime.kill_sandbox(web.sandbox().id)
    await web.until_running("c1", attempt=1)


@witness("PHASE-11", "STATUS-03")
async def test_ended_pod_stays_ended(node: Node) -> None:
    """A pod that has succeeded stays so, though somebody writes another phase."""
    job = node.want(pod(container(command="exit 0 1"), restart="Never", name="job"))
    await job.until_phase("Succeeded")
    node.api.update_status("default", "job", {"phase": "Running"})
    await job.until_phase("Succeeded", within=15)
    await node.wait(5)


@witness("PHASE-14", "TERM-16", kubernetes=(1, 27))
async def test_deleted_pod_ends_by_its_exit_codes(node: Node) -> None:
    """A deleted pod ends Succeeded where all containers ended with 0, else Failed, whatever its policy."""
    good = await node.run(name="good")
    bad = await node.run(container("c1"), container("c2", "run stopcode=3"), name="bad")
    good.delete()
    bad.delete()
    await good.until_gone()
    await bad.until_gone()


@witness("PHASE-01", "CSTAT-13", undisturbed="a debugger is made and started once, whatever becomes of that")
async def test_debugging_does_not_keep_a_pod_running(node: Node) -> None:
    """An ephemeral container that runs does not keep a pod from its end, nor does one that failed fail it."""
    job = await node.run(restart="Never", name="job")
    job.debug(container("failed", "exit 1 1"))
    job.debug(container("debugger", "run"))
    await job.until_running("debugger")
    job.exit(code=0)
    await job.until_phase("Succeeded")
