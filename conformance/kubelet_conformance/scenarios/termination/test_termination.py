"""Termination: a pod's way out, from the first stop to the removal of its object."""

from kubelet_conformance.node import Node, container, exec_hook, exec_probe, pod, witness


@witness(
    *("TERM-01", "TERM-02", "TERM-03", "TERM-09", "TERM-15", "TERM-16", "TERM-18", "TERM-19"),
    *("TERM-30", "TERM-31", "TERM-32", "WORK-04", "WORK-05", "WORK-12", "WORK-13"),
)
async def test_deleted_pod_goes_step_by_step(node: Node) -> None:
    """A deleted pod's containers are stopped together, then its sandbox; then it has failed, and goes."""
    web = await node.run(container("c1", "run stopdelay=3 stopcode=143"), container("c2", "run stopdelay=8"))
    web.exit("c2", code=1)
    await web.until_running("c2", attempt=1)
    web.delete()
    await web.until_event("Killing", count=2)
    await web.until_gone()


@witness("TERM-16", "TERM-31")
async def test_deleted_pod_that_ends_well_has_succeeded(node: Node) -> None:
    """A deleted pod whose containers all end with 0 has succeeded."""
    web = await node.run(container("c1"), container("c2", "run stopdelay=2"))
    web.delete()
    await web.until_gone()


@witness("TERM-03")
async def test_probe_may_have_a_grace_of_its_own(node: Node) -> None:
    """A container killed for its liveness probe gets the probe's own grace period, though it is longer."""
    probe = exec_probe("x 1 0", initialDelaySeconds=5, failureThreshold=1, terminationGracePeriodSeconds=50)
    web = await node.run(container("c1", "run stopdelay=45", livenessProbe=probe))
    await web.until_started("c1", attempt=1)


@witness("TERM-04")
async def test_probes_grace_is_nothing_to_a_deletion(node: Node) -> None:
    """A deleted pod's container gets the deletion's grace period, whatever its probe says."""
    node.runtime.set_file("alive", there=True)
    probe = exec_probe("xf alive", periodSeconds=2, failureThreshold=3, terminationGracePeriodSeconds=60)
    hook = {"preStop": exec_hook("x 0 3")}
    web = await node.run(container("c1", "run stopdelay=20", livenessProbe=probe, lifecycle=hook))
    node.runtime.set_file("alive", there=False)
    web.delete(grace=8)
    await web.until_gone()


@witness("TERM-05", "HOOK-05")
async def test_pre_stop_is_taken_off_the_grace(node: Node) -> None:
    """The time of the preStop hook is taken off the grace period (up to 1.26 it is not)."""
    web = await node.run(container("c1", "run stopdelay=40", lifecycle={"preStop": exec_hook("x 0 7")}))
    web.delete()
    await web.until_gone()


@witness("TERM-11", until=(1, 26))
async def test_pre_stop_was_given_its_own_time(node: Node) -> None:
    """Up to 1.26 a container had its whole grace period after its preStop hook."""
    web = await node.run(container("c1", "run stopdelay=40", lifecycle={"preStop": exec_hook("x 0 7")}))
    web.delete()
    await web.until_gone()


@witness("TERM-06")
async def test_endless_pre_stop_is_left(node: Node) -> None:
    """A preStop hook that outlasts the grace period is left, and the container is stopped."""
    web = await node.run(container("c1", lifecycle={"preStop": exec_hook("x 0 60")}), grace=5)
    web.delete()
    await web.until_gone()


@witness("TERM-07")
async def test_no_hook_without_grace(node: Node) -> None:
    """A container that is killed without grace gets no preStop hook."""
    probe, hook = exec_probe("x 1 0", initialDelaySeconds=5, failureThreshold=1), exec_hook("x 0 3")
    web = await node.run(container("c1", livenessProbe=probe, lifecycle={"preStop": hook}), grace=0)
    await web.until_started("c1", attempt=1)


@witness("TERM-08")
async def test_no_hook_in_an_ended_container(node: Node) -> None:
    """When a pod goes, the preStop hook runs in the containers that run, not in one that has ended."""
    hook = {"preStop": exec_hook("x 0 2")}
    job = await node.run(container("c1", lifecycle=hook), container("c2", lifecycle=hook), restart="Never")
    job.exit("c1", code=0)
    await job.until_terminated("c1")
    await node.wait(3)
    job.delete()
    await job.until_gone()


@witness("TERM-10")
async def test_forgotten_container_counts_as_stopped(node: Node) -> None:
    """A container that the runtime does not know any more needs no further stop."""
    web = await node.run(container("c1", lifecycle={"preStop": exec_hook("x 0 3")}))
    with node.fault("StopContainer", effect="after", code="NOT_FOUND", pod=web):
        web.delete()
        await web.until_gone()


@witness("TERM-10")
async def test_forgotten_sandbox_counts_as_stopped(node: Node) -> None:
    """A sandbox that the runtime does not know any more needs no further stop."""
    web = await node.run()
    with node.fault("StopPodSandbox", effect="after", code="NOT_FOUND", pod=web):
        web.delete()
        await web.until_gone()


@witness("TERM-15", "TERM-20", "TERM-21", "TERM-31", "TERM-32", "WORK-14")
async def test_finished_pod_keeps_its_object(node: Node) -> None:
    """A pod that finished by itself gives its sandbox up and keeps its object, whatever is sent about it."""
    job = node.want(pod(container("c1", "exit 0 5"), container("c2", "exit 4 9"), restart="Never"))
    await job.until_phase("Failed")
    job.annotate({"colour": "green"})
    await node.wait(100)


@witness("TERM-22", "CLEANUP-07")
async def test_finished_pod_goes_without_another_stop(node: Node) -> None:
    """A pod that finished by itself goes soon when it is deleted, and nothing is stopped for it."""
    job = node.want(pod(container("c1", "exit 0 5"), restart="Never"))
    await job.until_phase("Succeeded")
    job.delete()
    await job.until_gone()


@witness("TERM-24")
async def test_pod_that_never_started_goes_without_a_stop(node: Node) -> None:
    """A pod that waits for its volumes is deleted without a call to the runtime."""
    volume = {"name": "config", "configMap": {"name": "absent"}}
    mount = {"name": "config", "mountPath": "/etc/config"}
    web = node.want(pod(container("c1", volumeMounts=[mount]), volumes=[volume]))
    await node.wait(10)
    web.delete()
    await web.until_gone()


@witness("TERM-25", "WORK-10", undisturbed="a fault of its own comes at a call that it counts")
async def test_failed_kill_is_told_and_tried_again(node: Node) -> None:
    """A kill that fails is reported by an event and tried again until it succeeds."""
    web = await node.run()
    with node.fault("StopPodSandbox", times=2, pod=web):
        web.delete()
        await web.until_event("FailedKillPod")
        await web.until_gone()


@witness("TERM-30")
async def test_last_status_keeps_the_past(node: Node) -> None:
    """Start time, address, restart counts and last states are still reported when a pod has ended."""
    job = node.want(pod(container("c1", "seq 1@1 1@1 0@5"), restart="OnFailure"))
    await job.until_phase("Succeeded")


@witness("TERM-23")
async def test_new_kubelet_goes_on_with_a_termination(node: Node) -> None:
    """A kubelet that starts in the grace period begins the termination again."""
    web = await node.run(container("c1", "run stopdelay=20"))
    web.delete()
    await web.until_called("StopContainer", done=False)
    await node.wait(5)
    await node.restart_kubelet()
    await web.until_gone()


@witness("TERM-14")
async def test_readiness_is_probed_to_the_end(node: Node) -> None:
    """A container can become unready in its grace period, and no liveness probe kills it then."""
    node.runtime.set_file("fine", there=True)
    node.runtime.set_file("alive", there=True)
    ready = exec_probe("xf fine", periodSeconds=1, failureThreshold=1)
    alive = exec_probe("xf alive", periodSeconds=1, failureThreshold=1)
    web = await node.run(container("c1", "run stopdelay=20", readinessProbe=ready, livenessProbe=alive))
    await web.until_condition("Ready")
    web.delete()
    await web.until_called("StopContainer", done=False)
    node.runtime.set_file("alive", there=False)
    node.runtime.set_file("fine", there=False)
    await web.until_condition("Ready", status="False", within=10)
    await web.until_gone()


@witness("TERM-17")
async def test_lost_records_are_not_made_up(node: Node) -> None:
    """What the runtime has forgotten of a deleted pod is reported as terminated for an unknown reason."""
    web = await node.run(container("c1"), container("c2", "run stopdelay=5"))
    web.delete()
    await web.until_called("StopContainer", "c2", done=False)
    node.runtime.remove_container(web.container("c1").id)
    await web.until_gone()


@witness("TERM-17", undisturbed="it waits for what a fault lets pass unseen")
async def test_container_that_never_started_ends_with_its_pod(node: Node) -> None:
    """Of pods that are deleted before an app container started, one that was initialized has ended ones."""
    absent = container("c1", image="absent:1", imagePullPolicy="Never")
    inits = {
        "no-inits": (),
        "done": ("exit 0 1",),
        "done-twice": ("exit 0 1", "exit 0 1"),
        "done-later": ("seq 1@1 0@1",),
        "half-done": ("exit 0 1", "run"),
        "failing": ("exit 1 1",),
    }
    for name, commands in inits.items():
        init = tuple(container(f"i{number}", command) for number, command in enumerate(commands, start=1))
        web = node.want(pod(absent, init=init, name=name))
        if commands:
            await web.until_called("StartContainer", f"i{len(commands)}", count=1 + ("seq" in commands[0]))
        await node.wait(10)
        web.delete()
        await web.until_gone()
    web = node.want(pod(absent, container("c2"), init=(container("i1", "exit 0 1"),)))
    await web.until_started("c2")
    await node.wait(10)
    web.delete()
    await web.until_gone()
