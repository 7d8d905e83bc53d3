"""What the fake runtime keeps beyond the contracts of runtimes, which the scenarios exercise on it."""

import asyncio

import pytest
from cri_api.v1 import api_pb2 as cri
from cri_node import Node, refused

from kubelet_fakes.runtime import RuntimeSettings


async def test_cri_07_unknown_ids(node: Node) -> None:
    """The status of an unknown id is NOT_FOUND."""
    await refused(node.status("unknown"), "NOT_FOUND")
    error = await refused(node.sandbox_status("unknown"), "NOT_FOUND")

    assert error.details() == "sandbox unknown not found"
    assert error.effect


async def test_cri_09_container_filters(node: Node) -> None:
    """The parts of a container filter are joined by and; the state CREATED, which is 0, counts as one."""
    one, two = await node.sandbox("one"), await node.sandbox("two")
    labels = {"io.kubernetes.pod.uid": "uid-one", "k": "v"}
    created = await node.create(one, labels=labels)
    running = await node.create(one, name="c2", labels=labels | {"more": ""})
    other = await node.create(two)
    await node.start(running)
    state = cri.ContainerStateValue(state=cri.CONTAINER_CREATED)

    assert await node.containers() == [created, running, other]
    assert await node.containers(state=state) == [created, other]
    assert await node.containers(state=state, pod_sandbox_id=one) == [created]
    assert await node.containers(label_selector=labels) == [created, running]
    assert await node.containers(label_selector=labels | {"more": ""}) == [running]
    assert await node.containers(label_selector={"k": "v"}, state=state) == [created]
    assert await node.containers(id=running, pod_sandbox_id=two) == []
    assert await node.containers(id="unknown") == []
    assert await node.containers(pod_sandbox_id="unknown") == []
    assert await node.containers(label_selector={"io.kubernetes.pod.uid": "uid-three"}) == []


async def test_cri_09_sandbox_filters(node: Node) -> None:
    """The same for sandboxes, and their state READY, which is 0."""
    old, new, other = await node.sandbox(), await node.sandbox(attempt=1), await node.sandbox("other")
    await node.stop_sandbox(old)
    ready = cri.PodSandboxStateValue(state=cri.SANDBOX_READY)
    labels = {"io.kubernetes.pod.uid": "uid-web"}

    assert await node.sandboxes() == [old, new, other]
    assert await node.sandboxes(state=ready) == [new, other]
    assert await node.sandboxes(label_selector=labels) == [old, new]
    assert await node.sandboxes(label_selector=labels, state=ready) == [new]
    assert await node.sandboxes(id=old, state=ready) == []
    assert await node.sandboxes(label_selector=labels | {"no": "such"}) == []
    assert await node.sandboxes(id="unknown") == []


async def test_cri_11_a_name_is_taken_once(node: Node) -> None:
    """No two containers of a pod have the same name and attempt, in whichever sandbox, as with containerd."""
    sandbox = await node.sandbox()
    first = await node.create(sandbox)
    await refused(node.create(sandbox), "ALREADY_EXISTS")
    await node.create(sandbox, attempt=1)
    await node.create(await node.sandbox("other"))
    await node.stop_sandbox(sandbox)
    second = await node.sandbox(attempt=1)
    await refused(node.create(second), "ALREADY_EXISTS")
    await node.remove(first)
    await node.create(second)


@pytest.mark.parametrize(
    ("script", "grace", "seconds", "code"),
    [
        ("run", 30, 0, 0),
        ("run stopcode=7", 30, 0, 7),
        ("run stopdelay=2", 30, 2, 0),
        ("run stopdelay=3", 3, 3, 0),
        ("run stopdelay=99", 3, 3, 137),
        ("run stopdelay=99", 0, 0, 137),
        ("run", 0, 0, 137),
        ("exit 5 2 stopdelay=10", 30, 2, 5),
    ],
)
async def test_cri_13_stop_container(node: Node, script: str, grace: int, seconds: float, code: int) -> None:
    """StopContainer returns when the process has ended, by itself or, when the timeout is over, killed."""
    container = await node.running(script)
    await node.stop(container, grace)
    status = await node.status(container)

    assert node.now == seconds
    assert (status.state, status.exit_code) == (cri.CONTAINER_EXITED, code)


async def test_cri_13_stop_of_what_does_not_run(node: Node) -> None:
    """Stopping a container that has ended is no error; one that was never started has ended then."""
    sandbox = await node.sandbox()
    created, ended = await node.create(sandbox), await node.create(sandbox, "exit 3", "c2")
    await node.start(ended)
    await node.stop(created)
    await node.stop(ended)
    await refused(node.start(created), "FAILED_PRECONDITION")

    assert (await node.status(created)).state == cri.CONTAINER_EXITED
    assert (await node.status(ended)).exit_code == 3


async def test_cri_13_a_second_stop_may_be_shorter(node: Node) -> None:
    """A stop with a shorter timeout makes the first end earlier; a longer one changes nothing."""
    container = await node.running("run stopdelay=99")
    async with asyncio.TaskGroup() as group:
        group.create_task(node.stop(container, 60))
        await node.clock.sleep(1)
        group.create_task(node.stop(container, 5))
        group.create_task(node.stop(container, 20))

    assert node.now == 6.0


async def test_cri_16_exit_data(node: Node) -> None:
    """Exit code, end and reason say how the process ended: by itself, killed, or for lack of memory."""
    sandbox = await node.sandbox()
    scripts = {"good": "exit 0 1", "bad": "exit 3 1", "killed": "run stopdelay=9", "oom": "run"}
    ids = {name: await node.create(sandbox, script, name) for name, script in scripts.items()}
    for container in ids.values():
        await node.start(container)
    node.runtime.oom(ids["oom"])
    await node.stop(ids["killed"], 1)
    ends = {name: await node.status(container) for name, container in ids.items()}

    assert {name: (status.exit_code, status.reason) for name, status in ends.items()} == {
        "good": (0, "Completed"),
        "bad": (3, "Error"),
        "killed": (137, "Error"),
        "oom": (137, "OOMKilled"),
    }
    assert all(status.finished_at >= status.started_at > 0 for status in ends.values())


async def test_cri_18_a_request_may_be_used_again(node: Node) -> None:
    """The runtime keeps a copy: what the caller does to its request later changes no record."""
    config = cri.PodSandboxConfig(metadata=cri.PodSandboxMetadata(name="a", uid="1"), labels={"a": "b"})
    request = cri.RunPodSandboxRequest(config=config)
    sandbox = (await node.runtime.RunPodSandbox(request)).pod_sandbox_id
    request.config.labels["a"] = "changed"

    assert (await node.sandbox_status(sandbox)).labels["a"] == "b"


async def test_cri_21_addresses() -> None:
    """A READY sandbox has an address of its own and keeps it; one in the node's network has none."""
    node = Node(RuntimeSettings(dual_stack=True))
    options = cri.NamespaceOption(network=cri.NODE)
    context = cri.LinuxSandboxSecurityContext(namespace_options=options)
    host = await node.sandbox("host", linux=cri.LinuxPodSandboxConfig(security_context=context))
    one, two = await node.sandbox("one"), await node.sandbox("two")
    networks = [(await node.sandbox_status(each)).network for each in (host, one, two)]
    await node.stop_sandbox(one)
    after = (await node.sandbox_status(one)).network

    assert [network.ip for network in networks] == ["", "10.88.0.2", "10.88.0.3"]
    assert [each.ip for each in networks[1].additional_ips] == ["fd00:10:88::2"]
    assert after.ip == ""


@pytest.mark.parametrize("attempt", range(4))
async def test_cri_19_states_only_go_on(node: Node, attempt: int) -> None:
    """A container goes from CREATED to RUNNING to EXITED; each attempt takes its own step of a `seq`."""
    container = await node.create(await node.sandbox(), "seq 1@0.5 2@1.5 run", attempt=attempt)
    seen = [(await node.status(container)).state]
    await node.start(container)
    for _ in range(4):
        seen.append((await node.status(container)).state)
        await node.clock.sleep(1)

    ends = {0: [1, 2, 2, 2], 1: [1, 1, 2, 2]}.get(attempt, [1, 1, 1, 1])
    assert seen == [0, *ends]
