"""A node that is short of memory or disk: which pods have to go, and how."""

from typing import Any

from kubelet_conformance.node import Node, container, pod, witness

Json = dict[str, Any]
SOFT = {"memory.available": "300Mi"}
SOFT_GRACE = {"memory.available": 20.0}
CRITICAL = 2_000_000_000


def asking(memory: str, **fields: Any) -> Json:  # noqa: ANN401 - fields of the Container type
    """A container that asks for that much memory."""
    return container(resources={"requests": {"memory": memory}}, **fields)


@witness("EVICT-01", "EVICT-02", "EVICT-05", "EVICT-06", "COND-08")
async def test_greediest_pod_goes_and_the_others_stay(node: Node) -> None:
    """A node that is short of memory ends the pod that uses most beyond what it asked for, and no other."""
    big = await node.run(container(command="seq 1@2 run stopdelay=1"), name="big")
    small = await node.run(asking("1Gi"), name="small")
    await big.until(lambda: big.container().attempt > 0, "another attempt")
    big.use(memory="500Mi")
    small.use(memory="900Mi")
    with node.pressure(memory_available="50Mi"):
        await big.until_phase("Failed", within=60)
        await node.wait(75)


_USUAL = {
    "memory_available": ("100Mi", "102399Ki"),
    "nodefs_available": ("10%", "9.95%"),
    "nodefs_inodesFree": ("5%", "4.98%"),
    "imagefs_available": ("15%", "14.9%"),
    "imagefs_inodesFree": ("5%", "4.98%"),
}
"""By signal, what is just enough unless the kubelet is configured otherwise, and what is too little."""


@witness("EVICT-01", eviction_pressure_transition_period=0)
async def test_each_signal_has_its_threshold(node: Node) -> None:
    """A pod is evicted when there is less of something than its threshold, and not before."""
    for signal, (enough, too_little) in _USUAL.items():
        web = await node.run(name=signal.lower().replace("_", "-"), within=60)
        with node.pressure(**{signal: enough}):
            await node.wait(25)
        await web.until_phase("Running", within=1, contract="EVICT-01")
        with node.pressure(**{signal: too_little}):
            await web.until_phase("Failed", within=60, contract="EVICT-01")
        await node.wait(25)


@witness("EVICT-01")
async def test_one_pod_at_a_time(node: Node) -> None:
    """As long as memory is short pods go one after another."""
    for name in ("a", "b", "c"):
        web = await node.run(container(command="run stopdelay=1"), name=name)
        web.use(memory="10Mi")
    with node.pressure(memory_available="20Mi"):
        await node.wait(60)


@witness("EVICT-01", "EVICT-02", undisturbed="it waits for what a fault lets pass unseen")
async def test_node_helps_itself_first(node: Node) -> None:
    """Under disk pressure a pod is evicted only when dead containers and images are gone."""
    done = node.want(pod(container(command="exit 0 1"), name="done", restart="Never"))
    await done.until_phase("Succeeded")
    web = await node.run()
    web.use(ephemeral_storage="5Gi")
    await node.wait(10)
    with node.pressure(nodefs_available="3%"):
        await web.until_phase("Failed", within=60)
    left = [each.name for each in done.containers() if each.state == "EXITED"]
    await node.expect("what has ended is removed", lambda: left, "EVICT-01")


@witness("EVICT-01")
async def test_images_may_be_enough(node: Node) -> None:
    """A node that has enough disk again once an unused image is gone evicts no pod."""
    node.runtime.add_image("registry/unused:1")
    web = await node.run()
    web.use(ephemeral_storage="5Gi")
    await node.wait(150)
    with node.slow("RemoveImage", 5), node.pressure(nodefs_available="3%"):
        await node.until(
            lambda: any(node.observations.of("RemoveImage")),
            "an image is removed",
            within=60,
            contract="EVICT-01",
        )
    await node.wait(30)
    await web.until_phase("Running", within=1, contract="EVICT-01")


@witness("EVICT-03", "STATUS-07", kubernetes=(1, 31))
async def test_hard_eviction_is_quick(node: Node) -> None:
    """A pod that is evicted at once does not have the minute of grace that it asks for."""
    web = await node.run(container(command="run stopdelay=20"), grace=60)
    with node.pressure(memory_available="50Mi"):
        await web.until_phase("Failed", within=60)


@witness("EVICT-03", until=(1, 26))
async def test_hard_eviction_took_its_time(node: Node) -> None:
    """Up to 1.30 a pod that had to go at once had its own grace, since 0 was read as no grace period set."""
    web = await node.run(container(command="run stopdelay=20"), grace=25)
    with node.pressure(memory_available="50Mi"):
        await web.until_phase("Failed", within=60)


@witness(
    "EVICT-03",
    kubernetes=(1, 31),
    eviction_max_pod_grace_period=15,
    eviction_soft=SOFT,
    eviction_soft_grace_period=SOFT_GRACE,
)
async def test_soft_eviction_has_the_configured_grace(node: Node) -> None:
    """A pod evicted by a soft threshold has the configured maximum grace, or its own if that is less."""
    long = await node.run(container(command="run stopdelay=3"), name="long", grace=60)
    long.use(memory="90Mi")
    short = await node.run(container(command="run stopdelay=3"), name="short", grace=8)
    with node.pressure(memory_available="200Mi"):
        await long.until_phase("Failed", within=60)
        await short.until_phase("Failed", within=60)


@witness(
    "EVICT-03",
    kubernetes=(1, 31),
    eviction_max_pod_grace_period=-1,
    eviction_soft=SOFT,
    eviction_soft_grace_period=SOFT_GRACE,
)
async def test_negative_maximum_leaves_the_pod_its_grace(node: Node) -> None:
    """A negative maximum grace counts as no maximum."""
    web = await node.run(container(command="run stopdelay=3"), grace=12)
    with node.pressure(memory_available="200Mi"):
        await web.until_phase("Failed", within=60)


@witness("EVICT-03", kubernetes=(1, 31), eviction_soft=SOFT, eviction_soft_grace_period=SOFT_GRACE)
async def test_soft_eviction_is_quick_by_itself(node: Node) -> None:
    """Without a configured maximum a pod evicted by a soft threshold has no grace."""
    web = await node.run(container(command="run stopdelay=3"), grace=12)
    with node.pressure(memory_available="200Mi"):
        await web.until_phase("Failed", within=60)


@witness("EVICT-04")
async def test_critical_pods_are_spared(node: Node) -> None:
    """Pods that the node cannot do without stay, whatever they use."""
    static = node.want_static(pod(name="static"))
    await static.until_running("c1")
    system = await node.run(name="system", priority=CRITICAL)
    web = await node.run(name="web")
    static.use(memory="4Gi")
    system.use(memory="2Gi")
    web.use(memory="60Mi")
    with node.pressure(memory_available="50Mi"):
        await web.until_phase("Failed", within=60)
        await node.wait(20)


@witness("EVICT-05", "EVICT-02", exempt=("CRI-13",))
async def test_ends_are_told_before_records_go(node: Node) -> None:
    """Of an evicted pod whose containers end one after another every end is reported."""
    web = await node.run(
        container("c1", "run stopcode=3"),
        container("c2", "run stopdelay=9 stopcode=4"),
        container("c3"),
        grace=20,
    )
    web.exit("c3", 5)
    web.use(ephemeral_storage="10Gi")
    with node.slow("StopContainer", 6, container="c2"), node.pressure(memory_available="50Mi"):
        await web.until_phase("Failed", within=60)
        await node.wait(70)


@witness("EVICT-07", "EVICT-06")
async def test_evicted_pod_never_comes_back(node: Node) -> None:
    """An evicted pod is over, for the next kubelet too, when the pressure is long gone."""
    web = await node.run(container(command="run stopcode=5"))
    with node.pressure(memory_available="50Mi"):
        await web.until_phase("Failed", within=60)
    await node.wait(5)
    await node.restart_kubelet()
    await node.wait(30)


@witness("EVICT-08")
async def test_volume_above_its_limit_costs_the_pod(node: Node) -> None:
    """A pod whose emptyDir is larger than it may be goes, though the disk is not full; others stay."""
    volumes = [{"name": "data", "emptyDir": {"sizeLimit": "1Gi"}}]
    web = await node.run(name="web", volumes=volumes)
    await node.run(name="other")
    web.use(volume_data="2Gi")
    await web.until_phase("Failed", within=60)
    await node.wait(15)


@witness("EVICT-08")
async def test_container_above_its_limit_costs_the_pod(node: Node) -> None:
    """The same holds for what a container writes, and for what all write together."""
    limit = {"limits": {"ephemeral-storage": "1Gi"}}
    one = await node.run(container("c1", resources=limit), container("c2"), name="one")
    both = await node.run(container("c1", resources=limit), container("c2", resources=limit), name="both")
    one.use(container_c1="1500Mi")
    both.use(ephemeral_storage="3Gi")
    await one.until_phase("Failed", within=60)
    await both.until_phase("Failed", within=60)


@witness("EVICT-08")
async def test_storage_up_to_the_limit_is_used(node: Node) -> None:
    """A pod that uses all that it may have of its storage stays, and a limit of 0 is none."""
    sizes = {"full": "1Gi", "free": "0"}
    volumes = [{"name": name, "emptyDir": {"sizeLimit": size}} for name, size in sizes.items()]
    asked = [
        container(name, resources={"limits": {"ephemeral-storage": size}}) for name, size in sizes.items()
    ]
    web = await node.run(*asked, container("c1"), volumes=volumes)
    web.use(**{f"{kind}_{name}": "1Gi" for kind in ("volume", "container") for name in sizes})
    await node.wait(30)
    web.use(container_full="1025Mi")
    await web.until_phase("Failed", within=60)


@witness("WORK-20", kubernetes=(1, 31), exempt=("CRI-13",))
async def test_eviction_is_not_awaited_for_ever(node: Node) -> None:
    """An eviction stops waiting for a pod that does not end in time, and the pod is ended all the same."""
    web = await node.run(name="web")
    with node.slow("StopContainer", 25), node.pressure(memory_available="50Mi"):
        await web.until_event("ExceededGracePeriod", within=60)
        await web.until_phase("Failed", within=60)


@witness(
    "WORK-21", "COND-08", cpu_millicores=1000, undisturbed="a fault of its own comes at a call that it counts"
)
async def test_later_kill_gives_the_reason(node: Node) -> None:
    """A pod that is preempted, and evicted before that is done, is Evicted."""
    half = {"requests": {"cpu": "600m"}}
    web = await node.run(container(resources=half))
    web.use(memory="500Mi")
    with node.fault("StopContainer", times=1), node.fault("StopPodSandbox", times=1):
        node.want_static(pod(container(resources=half), name="static"))
        await web.until_event("FailedKillPod")
    with node.pressure(memory_available="50Mi"):
        await web.until_phase("Failed", within=60)


@witness("WORK-20", cpu_millicores=1000, exempt=("CRI-13",))
async def test_preemption_waits_longer_than_the_grace(node: Node) -> None:
    """A preemption waits one and a half times the grace of a pod that does not end, and then no longer."""
    half = {"requests": {"cpu": "600m"}}
    web = await node.run(container(resources=half), grace=20)
    with node.slow("StopContainer", 50):
        node.want_static(pod(container(resources=half), name="static"))
        await web.until_event("ExceededGracePeriod", within=60)
        await web.until_phase("Failed", within=50)


@witness(
    "EVICT-01",
    eviction_soft=SOFT,
    eviction_soft_grace_period=SOFT_GRACE,
    undisturbed="another kubelet refuses what it finds while memory is short",
)
async def test_soft_threshold_may_be_met_for_a_while(node: Node) -> None:
    """A pod is evicted when a soft threshold has been met for its time without a break, and not before."""
    web = await node.run()
    with node.pressure(memory_available="200Mi"):
        await node.wait(15)
    await node.wait(12)
    with node.pressure(memory_available="200Mi"):
        await node.wait(18)
        await web.until_phase("Running", within=1, contract="EVICT-01")
        await web.until_phase("Failed", within=25, contract="EVICT-01")


@witness("EVICT-01", undisturbed="it counts pods, of which a fault may cost more, or none")
async def test_each_signal_has_its_usual_threshold(node: Node) -> None:
    """A pod goes as soon as there is less of something than a kubelet usually leaves, and none before."""
    thresholds = {
        "memory_available": ("100Mi", "99Mi"),
        "nodefs_available": ("10%", "9%"),
        "nodefs_inodesFree": ("5%", "4%"),
        "imagefs_available": ("15%", "14%"),
        "imagefs_inodesFree": ("5%", "4%"),
    }
    webs = [await node.run(name=f"web{number}") for number in range(len(thresholds))]

    async def until_gone(number: int, within: float) -> None:
        await node.until(
            lambda: sum(web.phase == "Failed" for web in webs) == number,
            f"{number} pods have gone",
            within=within,
            contract="EVICT-01",
        )

    for number, (signal, (enough, less)) in enumerate(thresholds.items()):
        with node.pressure(**{signal: enough}):
            await node.wait(15)
        await until_gone(number, within=1)
        with node.pressure(**{signal: less}):
            await until_gone(number + 1, within=30)
