"""Deadlines: pods that may run only so long."""

from kubelet_conformance.node import Node, container, pod, witness


@witness("DEADLINE-01", "PHASE-13", undisturbed="its pod has a deadline, which a fault may use up")
async def test_pod_ends_at_its_deadline(node: Node) -> None:
    """A pod that has run as long as it may is stopped with its grace, and is Failed then."""
    job = await node.run(
        container(command="run stopdelay=3"),
        name="job",
        grace=10,
        restart="OnFailure",
        activeDeadlineSeconds=7,
    )
    await job.until_phase("Failed", within=30)
    await node.wait(10)


@witness("DEADLINE-01", "PHASE-13")
async def test_deadline_counts_while_the_pod_is_pending(node: Node) -> None:
    """The deadline counts from the pod's start time, also while its init containers run."""
    job = node.want(
        pod(init=(container("i1", "exit 0 60"),), name="job", restart="Never", activeDeadlineSeconds=6)
    )
    await job.until_phase("Failed", within=60)


@witness("PHASE-06", undisturbed="its pod has a deadline, which a fault may use up")
async def test_deadline_that_was_kept_means_nothing(node: Node) -> None:
    """A pod that ended in time keeps its phase when the deadline passes."""
    job = node.want(pod(container(command="exit 0 2"), name="job", restart="Never", activeDeadlineSeconds=20))
    await job.until_phase("Succeeded")
    await node.wait(25)


@witness("DEADLINE-02", "PHASE-13", undisturbed="its pod has a deadline, which a fault may use up")
async def test_restart_of_the_kubelet_does_not_move_the_deadline(node: Node) -> None:
    """A deadline stays where it is when the kubelet starts again."""
    job = await node.run(name="job", grace=4, restart="Never", activeDeadlineSeconds=40)
    await node.wait(25)
    await node.restart_kubelet(down=2)
    await job.until_phase("Failed", within=60)


@witness("DEADLINE-02", undisturbed="its pod has a deadline, which a fault may use up")
async def test_deadline_that_passed_while_the_kubelet_was_down(node: Node) -> None:
    """A pod whose deadline passed while the kubelet was down is stopped when it comes back."""
    job = await node.run(name="job", grace=4, restart="Never", activeDeadlineSeconds=6)
    await node.restart_kubelet(down=10)
    await job.until_phase("Failed", within=20)
