"""Back-off: how long a container that keeps ending waits before it is run again."""

from kubelet_conformance.node import Node, container, pod, witness


@witness(
    "BACKOFF-01",
    "BACKOFF-02",
    "BACKOFF-06",
    "WORK-16",
    "GC-01",
    "GC-10",
    undisturbed="a fault of its own comes at a call that it counts",
)
async def test_delays_double_up_to_the_cap(node: Node) -> None:
    """A container that keeps failing waits 0, 10, 20, 40, 80, 160 and then 300 s, and its status says so."""
    web = node.want(pod(container("c1", "exit 1 1")))
    await web.until_held_back()
    await web.until_started("c1", attempt=7)


@witness("BACKOFF-04", "BACKOFF-06")
async def test_success_is_held_up_too(node: Node) -> None:
    """Under policy Always a container that keeps succeeding waits as long as one that fails."""
    web = node.want(pod(container("c1", "exit 0 1")))
    await web.until_held_back()
    await web.until_started("c1", attempt=3)


@witness("BACKOFF-03", undisturbed="a fault costs it an instance and the back-off of that")
async def test_long_run_begins_the_series_anew(node: Node) -> None:
    """A container that ran for more than ten minutes is run again at once."""
    web = node.want(pod(container("c1", "seq 1@1 1@1 1@605 run")))
    await web.until_running("c1", attempt=3, within=1200)


@witness("BACKOFF-03", undisturbed="a fault costs it an instance and the back-off of that")
async def test_shorter_run_goes_on_in_the_series(node: Node) -> None:
    """A run of less than ten minutes leaves the back-off as it was."""
    web = node.want(pod(container("c1", "seq 1@1 1@1 1@500 run")))
    await web.until_running("c1", attempt=3, within=1200)


@witness("BACKOFF-05", "RESTART-08", undisturbed="it waits for what a fault lets pass unseen")
async def test_new_image_ends_the_wait(node: Node) -> None:
    """A container held up by its back-off is run at once when its image changes."""
    web = node.want(pod(container("c1", "seq 1@1 1@1 1@1 1@1 run")))
    await web.until_started("c1", attempt=3)
    await web.until_ended("c1")
    node.runtime.publish_image("img:2")
    web.set_image("c1", "img:2")
    await web.until_running("c1", attempt=4)


@witness("BACKOFF-07", "RESTART-17")
async def test_sibling_is_not_held_up(node: Node) -> None:
    """While one container is held up, the first crash of another is answered at once."""
    web = node.want(pod(container("c1", "exit 1 1"), container("c2")))
    await web.until_started("c1", attempt=3)
    await web.until_ended("c1")
    web.exit("c2", code=1)
    await web.until_running("c2", attempt=1)


@witness("BACKOFF-08")
async def test_new_kubelet_forgets_the_wait(node: Node) -> None:
    """A kubelet that starts runs a container at once that its predecessor held up."""
    web = node.want(pod(container("c1", "exit 1 1")))
    await web.until_started("c1", attempt=4)
    await web.until_ended("c1")
    await node.restart_kubelet()
    await web.until_started("c1", attempt=5)


@witness("BACKOFF-02", "BACKOFF-06", "BACKOFF-10", undisturbed="it waits for what a fault lets pass unseen")
async def test_init_container_is_held_up_alike(node: Node) -> None:
    """An init container that keeps failing waits as an app container does."""
    web = node.want(pod(init=(container("i1", "seq 1@1 1@1 1@1 0@1"),)))
    await web.until_held_back("i1")
    await web.until_running("c1")


@witness("BACKOFF-01")
async def test_pod_of_the_same_name_begins_anew(node: Node) -> None:
    """A back-off is that of one pod: another pod of the same name does not inherit it."""
    web = node.want(pod(container("c1", "exit 1 1"), grace=1))
    await web.until_started("c1", attempt=3)
    web.delete()
    await web.until_gone()
    again = node.want(pod(container("c1", "seq 1@1 run")))
    await again.until_running("c1", attempt=1, within=30)


@witness(
    "BACKOFF-11",
    kubernetes=(1, 32),
    max_container_restart_period=2,
    feature_gates={"KubeletCrashLoopBackOffMax": True},
)
async def test_delays_are_no_longer_than_configured(node: Node) -> None:
    """On a node that allows two seconds a container that keeps ending waits so long, and no longer."""
    web = node.want(pod(container("c1", "exit 1 1")))
    await web.until_started("c1", attempt=5)


@witness("BACKOFF-11", kubernetes=(1, 35), max_container_restart_period=2)
async def test_delays_are_configured_by_default(node: Node) -> None:
    """From 1.35 on no feature gate has to be opened for delays that are no longer than configured."""
    web = node.want(pod(container("c1", "exit 1 1")))
    await web.until_started("c1", attempt=3)


@witness("BACKOFF-11", kubernetes=(1, 33), feature_gates={"ReduceDefaultCrashLoopBackOffDecay": True})
async def test_reduced_delays(node: Node) -> None:
    """With the reduced series the delays begin at one second and end at a minute."""
    web = node.want(pod(container("c1", "exit 1 1")))
    await web.until_started("c1", attempt=9)
