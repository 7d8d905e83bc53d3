"""Ephemeral containers: started once, at once, and of no account."""

from kubelet_conformance.node import Node, container, exec_probe, pod, witness


@witness(
    "EPH-01",
    "EPH-08",
    "EPH-11",
    "EPH-12",
    undisturbed="a debugger is made and started once, whatever becomes of that",
)
async def test_debuggers_are_started_once(node: Node) -> None:
    """Ephemeral containers are started when they are added, and not again when they have ended."""
    web = await node.run()
    web.debug(container("z", "exit 1 3"))
    web.debug(container("a", "run"))
    await web.until_running("z", "a", or_ended=True)
    await web.until_terminated("z")
    await node.wait(15)


@witness("EPH-02", "EPH-01", undisturbed="a debugger is made and started once, whatever becomes of that")
async def test_ended_and_lost_debuggers_are_left_alone(node: Node) -> None:
    """An ephemeral container that ended, or that the runtime lost track of, is left as it is."""
    web = await node.run()
    web.debug(container("ended"))
    web.debug(container("lost"))
    await web.until_running("ended", "lost")
    web.exit("ended", 1)
    node.runtime.lose_track(web.container("lost").id)
    await node.wait(5)
    web.exit("c1", 1)
    await web.until_running("c1", attempt=1)
    web.delete()
    await web.until_gone()


@witness(
    "EPH-03", "EPH-08", "INIT-03", undisturbed="a debugger is made and started once, whatever becomes of that"
)
async def test_debugger_does_not_wait_for_init(node: Node) -> None:
    """An ephemeral container that is added while an init container runs is started at once."""
    web = node.want(pod(init=(container("i1", "exit 0 20"),)))
    await web.until_running("i1")
    web.debug(container("debugger"))
    await web.until_running("debugger")
    await web.until_running("c1")


@witness("EPH-04", undisturbed="a debugger is made and started once, whatever becomes of that")
async def test_debugger_that_cannot_start_harms_nobody(node: Node) -> None:
    """An ephemeral container without an image keeps neither another one nor its pod from running."""
    node.runtime.publish_image("registry/absent:1", there=False)
    web = await node.run()
    web.debug(container("broken", image="registry/absent:1"))
    web.debug(container("fine"))
    await web.until_waiting("broken", "ImagePullBackOff")
    await web.until_running("fine")
    web.exit("c1", 1)
    await web.until_running("c1", attempt=1)


@witness("EPH-05", undisturbed="a debugger is made and started once, whatever becomes of that")
async def test_debugger_stays_behind_in_its_sandbox(node: Node) -> None:
    """An ephemeral container is not started again in the sandbox that replaces its own."""
    web = await node.run()
    web.debug(container("debugger"))
    await web.until_running("debugger")
    node.runtime.kill_sandbox(web.sandbox().id)
    await web.until_running("c1", attempt=1)
    await node.wait(15)


@witness("EPH-06", undisturbed="a debugger is made and started once, whatever becomes of that")
async def test_debugger_does_not_keep_a_finished_pod(node: Node) -> None:
    """A pod whose containers are done ends, though an ephemeral container runs."""
    web = await node.run(container(readinessProbe=exec_probe("x 0 0", periodSeconds=1)), restart="Never")
    web.debug(container("failed", "exit 1 1"))
    web.debug(container("debugger"))
    await web.until_running("debugger")
    await web.until_condition("Ready")
    web.exit("c1", 0)
    await web.until_phase("Succeeded")
    await web.until_stopped()


@witness("EPH-07", undisturbed="a debugger is made and started once, whatever becomes of that")
async def test_debugger_joins_the_newest_instance(node: Node) -> None:
    """An ephemeral container with a target joins the processes of the instance that runs now."""
    web = await node.run(container("c1"), container("c2"))
    web.exit("c1", 1)
    await web.until_running("c1", attempt=1)
    web.debug(container("debugger", targetContainerName="c1"))
    await web.until_running("debugger")


@witness("EPH-09", undisturbed="a debugger is made and started once, whatever becomes of that")
async def test_debugger_goes_with_its_pod(node: Node) -> None:
    """A running ephemeral container is stopped with its pod, in its pod's grace."""
    web = await node.run(grace=5)
    web.debug(container("debugger", "run stopdelay=20"))
    await web.until_running("debugger")
    web.delete()
    await web.until_gone()


@witness("EPH-10", undisturbed="a debugger is made and started once, whatever becomes of that")
async def test_changed_debugger_runs_on(node: Node) -> None:
    """An ephemeral container runs on when its definition changes."""
    web = await node.run()
    web.debug(container("debugger"))
    await web.until_running("debugger")
    with node.tolerant_api():
        web.update(spec={"ephemeralContainers": [{"name": "debugger", "image": "img:2"}]})
    await node.wait(10)
    web.delete()
    await web.until_gone()


@witness("EPH-07", undisturbed="a debugger is made and started once, whatever becomes of that")
async def test_debugger_of_a_container_that_is_not_made_waits(node: Node) -> None:
    """An ephemeral container cannot look into one that does not exist, and is made when that does."""
    node.runtime.publish_image("registry/late:1", there=False)
    web = node.want(pod(container("c1"), container("c2", image="registry/late:1")))
    await web.until_waiting("c2", "ImagePullBackOff")
    web.debug(container("debugger", targetContainerName="c2"))
    await web.until_waiting("debugger", "CreateContainerConfigError")
    node.runtime.publish_image("registry/late:1")
    await web.until_running("c2", "debugger")
