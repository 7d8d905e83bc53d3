"""Resize in place: containers that get other resources while they run."""

from typing import Any

from kubelet_conformance.node import Node, container, pod, witness

ON = {"InPlacePodVerticalScaling": True}
SINCE = (1, 33)
"""Where the gate is on by default."""
OLD = (1, 32)
"""The newest version in which it is not."""


def sized(name: str = "c1", cpu: str = "500m", memory: str = "64Mi", **fields: Any) -> dict[str, Any]:  # noqa: ANN401 - fields of the Container type
    """A container that is given so much, and no more."""
    return container(name, resources=given(cpu, memory), **fields)


def given(cpu: str = "500m", memory: str = "64Mi") -> dict[str, Any]:
    """Requests and limits of both resources."""
    return {"requests": {"cpu": cpu, "memory": memory}, "limits": {"cpu": cpu, "memory": memory}}


RESTARTS = [{"resourceName": "memory", "restartPolicy": "RestartContainer"}]


@witness("RESIZE-01", "RESIZE-03", "RESIZE-06", "PLEG-17", "COND-09", kubernetes=SINCE)
async def test_container_is_resized_while_it_runs(node: Node) -> None:
    """A container whose policy asks for no restart gets more CPU and memory as it runs."""
    web = await node.run(sized("c1"), sized("c2"))
    await node.wait(5)
    web.resize(c1=given(cpu="1", memory="128Mi"))
    await web.until_called("UpdateContainerResources", "c1", count=2, contract="RESIZE-02")
    await node.wait(10)


@witness("RESIZE-01", "RESIZE-06", "PLEG-17", "COND-09", feature_gates=ON, kubernetes=OLD, until=OLD)
async def test_container_is_resized_behind_the_gate(node: Node) -> None:
    """The same where the feature is not on by itself."""
    web = await node.run(sized("c1"))
    await node.wait(5)
    web.resize(c1=given(cpu="1"))
    await web.until_called("UpdateContainerResources", "c1", contract="RESIZE-02")
    await node.wait(10)


@witness("COND-09", kubernetes=SINCE, undisturbed="it waits for what a fault lets pass unseen")
async def test_resize_is_reported_until_it_is_done(node: Node) -> None:
    """While the runtime takes its time a condition says that the resize is under way, and then no more."""
    web = await node.run(sized())
    await node.wait(5)
    with node.slow("UpdateContainerResources", 8, times=1):
        web.resize(c1=given(cpu="1"))
        await web.until_condition("PodResizeInProgress", contract="COND-09", within=7)
    await web.until(
        lambda: not web.condition("PodResizeInProgress"), "the resize is done", contract="COND-09", within=30
    )


@witness("RESIZE-03", kubernetes=SINCE)
async def test_container_is_made_anew_for_its_policy(node: Node) -> None:
    """A container that cannot get memory as it runs is stopped and made again; CPU it gets as it runs."""
    web = await node.run(sized("c1", resizePolicy=RESTARTS), sized("c2"))
    await node.wait(5)
    web.resize(c1=given(cpu="1"))
    await web.until_called("UpdateContainerResources", "c1", contract="RESIZE-02")
    await node.wait(5)
    web.resize(c1=given(cpu="1", memory="128Mi"))
    await web.until_running("c1", attempt=1)


@witness("RESIZE-02", "RESIZE-07", "COND-09", "RESTARTKUBELET-16", kubernetes=SINCE)
async def test_impossible_resize_changes_nothing(node: Node) -> None:
    """What no node can give is infeasible: neither a crash nor a restart of the kubelet lets it through."""
    web = await node.run(sized("c1"), sized("c2"))
    await node.wait(5)
    web.resize(c1=given(cpu="100k"))
    await web.until_condition("PodResizePending", contract="RESIZE-02")
    web.exit("c1", 1)
    await web.until_running("c1", attempt=1)
    await node.restart_kubelet()
    await node.wait(15)


@witness("RESIZE-02", "RESIZE-07", "COND-09", feature_gates=ON, kubernetes=OLD, until=OLD)
async def test_impossible_resize_is_told_by_a_field(node: Node) -> None:
    """Up to 1.32 a field of the status says that a resize is infeasible."""
    web = await node.run(sized("c1"))
    await node.wait(5)
    web.resize(c1=given(cpu="100k"))
    await web.until(
        lambda: web.status.get("resize") == "Infeasible", "resize Infeasible", contract="RESIZE-02"
    )
    web.exit("c1", 1)
    await web.until_running("c1", attempt=1)
    await node.restart_kubelet()
    await node.wait(15)


@witness("RESIZE-02", kubernetes=SINCE, cpu_millicores=2000)
async def test_resize_waits_for_room(node: Node) -> None:
    """What does not fit now is deferred, and made when another pod has gone."""
    web = await node.run(sized("c1", cpu="1"))
    other = node.want(pod(sized("c1", cpu="1"), name="other", grace=1))
    await other.until_running("c1", contract="RESIZE-02")
    await node.wait(5)
    web.resize(c1=given(cpu="1500m"))
    await web.until_condition("PodResizePending", contract="RESIZE-02")
    await node.wait(5)
    other.delete()
    await other.until_gone(within=60)
    await web.until_called("UpdateContainerResources", "c1", within=120, contract="RESIZE-02")
    done = "its resize not pending any more"
    await web.until(lambda: not web.condition("PodResizePending"), done, within=100, contract="RESIZE-02")


@witness("RESIZE-02", kubernetes=SINCE, cpu_millicores=2000, memory_bytes=1 << 30)
async def test_resize_may_take_all_there_is(node: Node) -> None:
    """What just fits is given: the rest beside another pod, and everything to a pod that is alone."""
    web = await node.run(sized("c1", cpu="500m"))
    other = await node.run(sized("c1", cpu="500m"), name="other", grace=1)
    await node.wait(5)
    web.resize(c1=given(cpu="1500m", memory="960Mi"))
    await web.until_called("UpdateContainerResources", "c1", count=2, contract="RESIZE-02")
    other.delete()
    await other.until_gone()
    web.resize(c1=given(cpu="2", memory="1Gi"))
    await web.until_called("UpdateContainerResources", "c1", count=4, contract="RESIZE-02")


@witness("RESIZE-04", kubernetes=SINCE)
async def test_what_shrinks_goes_first(node: Node) -> None:
    """When two containers of a pod swap their CPU, the one that gives comes before the one that takes."""
    web = await node.run(sized("c1", cpu="500m"), sized("c2", cpu="1"))
    await node.wait(5)
    web.resize(c1=given(cpu="1"), c2=given(cpu="500m"))
    await web.until_called("UpdateContainerResources", "c1", contract="RESIZE-02")
    await node.wait(5)


@witness("RESIZE-05", kubernetes=SINCE)
async def test_memory_in_use_is_not_taken(node: Node) -> None:
    """A container that uses more memory than it would have keeps it."""
    web = await node.run(sized("c1"))
    await node.wait(5)
    web.resize(c1=given(memory="4Mi"))
    await web.until_called("ContainerStats", "c1", count=2, within=60, contract="RESIZE-02")


@witness(
    *("RESIZE-06", "PLEG-17"),
    kubernetes=SINCE,
    exempt=("CRI-28",),
    undisturbed="a fault of its own comes at a call that it counts",
)
async def test_runtime_is_late(node: Node) -> None:
    """What a runtime has accepted and not done is not shown, and is looked for until it is done."""
    memory = {"c1": "64Mi", "c2": "1Gi", "c3": "100Ki", "c4": "1000"}
    web = await node.run(*(sized(name, memory=amount) for name, amount in memory.items()))
    await node.wait(5)
    with node.fault("UpdateContainerResources", effect="pretend"):
        web.resize(**{name: given(cpu="1", memory="4Gi") for name in memory})
        await web.until_called("UpdateContainerResources", "c4", count=2, contract="RESIZE-02")
        web.annotate({"seen": "yes"})
        await node.wait(8)
        shown = {name: web.container_status(name)["resources"]["limits"]["memory"] for name in memory}
        wrong = [f"{name} has {amount}" for name, amount in shown.items() if amount != memory[name]]
        await node.expect("the memory that containers have is shown", lambda: wrong, "RESIZE-02")
    await web.until_called("UpdateContainerResources", "c1", count=2, within=120, contract="RESIZE-02")
    await node.wait(10)


@witness("RESTARTKUBELET-16", kubernetes=SINCE)
async def test_resize_is_not_made_twice(node: Node) -> None:
    """A kubelet that starts again finds a pod as it was resized, and leaves it so."""
    web = await node.run(sized("c1"))
    await node.wait(5)
    web.resize(c1=given(cpu="1"))
    await web.until_called("UpdateContainerResources", "c1", contract="RESIZE-02")
    await node.wait(5)
    await node.restart_kubelet()
    await node.wait(15)


@witness("STATIC-24", kubernetes=SINCE)
async def test_static_pod_keeps_its_resources(node: Node) -> None:
    """The mirror of a static pod may be changed, and nothing follows from it."""
    web = node.want_static(pod(sized("c1")))
    await web.until_running("c1")
    with node.tolerant_api():
        web.resize(c1=given(cpu="1"))
        await node.wait(10)


@witness("RESIZE-01", kubernetes=SINCE)
async def test_requests_alone_are_resized(node: Node) -> None:
    """A container without limits is given more of the CPU when it asks for more."""
    web = await node.run(container("c1", resources={"requests": {"cpu": "500m"}}))
    await node.wait(5)
    web.resize(c1={"requests": {"cpu": "1"}})
    await node.wait(20)


@witness("RESIZE-01", kubernetes=SINCE, undisturbed="a fault of its own comes at a call that it counts")
async def test_resize_that_failed_is_made_again(node: Node) -> None:
    """What the runtime did not change at first it is asked to change again."""
    web = await node.run(sized("c1"))
    await node.wait(5)
    with node.fault("UpdateContainerResources", times=1):
        web.resize(c1=given(cpu="1"))
        await web.until_called("UpdateContainerResources", "c1", count=2, contract="RESIZE-02")
    await node.wait(10)


@witness("RESIZE-02", kubernetes=SINCE)
async def test_pod_ends_with_what_it_was_given(node: Node) -> None:
    """As a pod is stopped its status shows what was allocated, and not what could not be."""
    web = await node.run(sized("c1", command="run stopdelay=5"), grace=20)
    await node.wait(5)
    web.resize(c1=given(cpu="100k"))
    await web.until_condition("PodResizePending", contract="RESIZE-02")
    web.delete()
    await node.wait(3)
    shown = web.container_status("c1")["allocatedResources"]["cpu"]
    wrong = [] if shown == "500m" else [shown]
    await node.expect("what was allocated is shown to the end", lambda: wrong, "RESIZE-02")
    await web.until_gone()


def asking(name: str, cpu: str) -> dict[str, Any]:
    """A container that asks for CPU, and has no limit."""
    return container(name, resources={"requests": {"cpu": cpu}})


@witness("RESIZE-04", kubernetes=SINCE)
async def test_any_resource_that_shrinks_goes_first(node: Node) -> None:
    """The same holds for memory, and for CPU without limits."""
    web = await node.run(sized("c1"), sized("c2", memory="128Mi"))
    bare = await node.run(asking("c1", "500m"), asking("c2", "1"), name="bare")
    await node.wait(5)
    web.resize(c1=given(memory="128Mi"), c2=given())
    bare.resize(c1={"requests": {"cpu": "1"}}, c2={"requests": {"cpu": "500m"}})
    wrong: list[str] = []
    for each in (web, bare):
        await each.until_called("UpdateContainerResources", "c1", contract="RESIZE-02")
        if each.calls("UpdateContainerResources")[0].container != "c2":
            wrong.append(each.name)
    await node.expect("what shrinks comes first", lambda: wrong, "RESIZE-02")


@witness("RESIZE-02", "RESIZE-07", kubernetes=SINCE, cpu_millicores=2000)
async def test_instance_has_what_was_allocated(node: Node) -> None:
    """As long as a resize is deferred a new instance of the container has what was allocated before."""
    web = await node.run(sized(cpu="1"))
    await node.run(sized(cpu="1"), name="other")
    await node.wait(5)
    web.resize(c1=given(cpu="1500m"))
    await web.until_condition("PodResizePending", contract="RESIZE-02")
    reason = web.condition("PodResizePending").get("reason")
    wrong = [] if reason == "Deferred" else [f"it is pending for {reason!r}"]
    await node.expect("it is deferred", lambda: wrong, "RESIZE-02")
    web.exit(code=1)
    await web.until_running("c1", attempt=1)
    shares = [each.request.config.linux.resources.cpu_shares for each in web.calls("CreateContainer")]
    await node.expect("both have one core", lambda: [str(one) for one in shares if one != _CORE], "RESIZE-02")


_CORE = 1024
