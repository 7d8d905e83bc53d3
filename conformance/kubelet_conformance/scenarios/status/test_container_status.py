"""Container statuses: what is reported of each container."""

from kubelet_conformance.node import Node, container, exec_probe, pod, witness


@witness("CSTAT-01", "CSTAT-08")
async def test_containers_wait_before_they_are_made(node: Node) -> None:
    """Containers that were never made wait for their own creation, or for the init containers."""
    node.want(pod(container("c1"), container("c2"), name="plain"))
    staged = node.want(pod(name="staged", init=(container("i1", "exit 0 3"), container("i2", "exit 0 3"))))
    await staged.until_running("c1")
    await node.wait(3)


@witness("CSTAT-02", "CSTAT-07", "CSTAT-08", "CSTAT-12", "CSTAT-13")
async def test_states_are_those_of_the_records(node: Node) -> None:
    """A status shows each container's newest instance as the runtime has it, then the one before."""
    web = await node.run(container("c1"), container("c2", "seq 3@2 0@40 run"))
    await web.until_running("c2", attempt=1)
    await web.until_running("c2", attempt=2)


@witness("CSTAT-03", "CSTAT-04")
async def test_last_state_is_of_the_instance_before(node: Node) -> None:
    """A container that crashes again and again shows its end, then waits with that end as its last state."""
    web = node.want(pod(container(command="seq 1@1 2@1 3@1 run")))
    await web.until_running("c1", attempt=3)


@witness("CSTAT-03")
async def test_third_record_does_not_count(node: Node) -> None:
    """The last state is that of the instance before, however many older ones are still recorded."""
    with node.fault("RemoveContainer", times=1):
        web = node.want(pod(container(command="seq 1@1 2@1 run")))
        await web.until_running("c1", attempt=2)


@witness("CSTAT-05")
async def test_finished_init_stays_so(node: Node) -> None:
    """An init container that is done stays terminated while an app container crashes again and again."""
    web = node.want(pod(container(command="exit 1 1"), init=(container("i1", "exit 0 1"),)))
    await web.until_held_back()
    await web.until_started("c1", attempt=2)
    await node.wait(5)


@witness("CSTAT-06", "CSTAT-14")
async def test_vanished_record_leaves_its_trace(node: Node) -> None:
    """A running container whose record vanishes is reported as terminated, reason unknown, and made again."""
    web = await node.run(container("c1"), container("c2"))
    node.runtime.remove_container(web.container("c1").id)
    await web.until_running("c1", attempt=1)
    await node.wait(8)
    web.exit("c2", code=1)
    await web.until_running("c2", attempt=1)


@witness("CSTAT-09", "CSTAT-10")
async def test_started_waits_for_the_startup_probe(node: Node) -> None:
    """A container with a startup probe is started once that has succeeded, another one once it runs."""
    slow = container("c1", startupProbe=exec_probe("xf up", periodSeconds=2, failureThreshold=30))
    web = node.want(pod(slow, container("c2"), init=(container("i1", "exit 0 1"),)))
    await web.until_running("c1", "c2")
    await node.wait(4)
    node.runtime.set_file("up", there=True)
    await web.until_condition("Ready")
    web.exit("c2", 1)
    await web.until_running("c2", attempt=1)


@witness("CSTAT-11", "CRI-16")
async def test_reason_of_an_end_is_the_runtimes(node: Node) -> None:
    """The reason of a container's end is what the runtime says, out of memory as well as any exit code."""
    web = await node.run(container("c1"), container("c2"), container("c3"), restart="Never")
    node.runtime.oom(web.container("c1").id)
    web.exit("c2", 0)
    web.exit("c3", 7)
    await web.until_phase("Failed")


@witness("CSTAT-07", "CSTAT-14")
async def test_count_stays_when_records_go(node: Node) -> None:
    """Failures of an init container are counted on, also when only its last instance is still recorded."""
    web = node.want(pod(init=(container("i1", "seq 1@1 1@1 0@1"), container("i2", "exit 0 2"))))
    await web.until_running("c1")
    await node.wait(3)
