"""Faults on calls, and what the runtime does by itself."""

import asyncio
import contextlib

import pytest
from cri_api.v1 import api_pb2 as cri
from cri_node import Node, refused

from kubelet_fakes.faults import Faults
from kubelet_fakes.runtime import CallError
from kubelet_fakes.runtime.faults import check


async def test_error_before_the_effect(node: Node) -> None:
    """A call that fails before its effect leaves nothing, and says so."""
    with node.runtime.faults.add("RunPodSandbox", code="INTERNAL", message="no network"):
        error = await refused(node.sandbox(), "INTERNAL")
        named = node.runtime.faults.names()

    assert (error.effect, error.details()) == (False, "no network")
    assert await node.sandboxes() == []
    await node.sandbox()

    assert (named, node.runtime.faults.names()) == (("RunPodSandbox before INTERNAL: no network",), ())


async def test_error_after_the_effect(node: Node) -> None:
    """A call that fails after its effect has taken place."""
    node.runtime.faults.add("RunPodSandbox#1 after DEADLINE_EXCEEDED")
    error = await refused(node.sandbox(), "DEADLINE_EXCEEDED")

    assert error.effect
    assert len(await node.sandboxes()) == 1


async def test_error_after_a_stop_waits_for_the_end(node: Node) -> None:
    """A stop that fails after its effect fails when the container has ended."""
    container = await node.running("run stopdelay=2")
    node.runtime.faults.add("StopContainer after UNAVAILABLE")
    await refused(node.stop(container), "UNAVAILABLE")

    assert node.now == 2.0
    assert (await node.status(container)).state == cri.CONTAINER_EXITED


async def test_a_number_of_times(node: Node) -> None:
    """A fault applies to as many calls as it says, and no more."""
    node.runtime.faults.add("StartContainer", times=2)
    container = await node.create(await node.sandbox())
    for _ in range(2):
        await refused(node.start(container), "UNKNOWN")
    await node.start(container)


async def test_which_of_the_calls_and_when(node: Node) -> None:
    """A fault applies from its first call on, and while its time lasts."""
    faults = node.runtime.faults
    counted = faults.add("Version#2-3 before")
    timed = faults.add("Status before from=10 until=20")
    asked: list[bool] = []
    for _ in range(4):
        with contextlib.suppress(CallError):
            await node.runtime.Version(cri.VersionRequest())
            asked.append(True)
            continue
        asked.append(False)
    for _ in range(3):
        with contextlib.suppress(CallError):
            await node.runtime.Status(cri.StatusRequest())
            asked.append(True)
        await node.clock.sleep(10)

    assert asked == [True, False, False, True, True, True]
    assert (counted.applied, timed.applied) == (2, 1)


async def test_only_where_it_is_meant(node: Node) -> None:
    """A fault applies to the calls that are about what its filter names: pod, container, image."""
    faults = node.runtime.faults
    faults.add("* before name=bad")
    faults.add("CreateContainer before ABORTED uid=uid-good container=c2")
    faults.add("ImageStatus before image=img:2")
    await refused(node.sandbox("bad"), "UNKNOWN")
    sandbox = await node.sandbox("good")
    container = await node.create(sandbox)
    await refused(node.create(sandbox, name="c2"), "ABORTED")
    await node.start(container)
    asked = [cri.ImageStatusRequest(image=cri.ImageSpec(image=f"img:{n}")) for n in (1, 2)]
    await node.runtime.ImageStatus(asked[0])
    await refused(node.runtime.ImageStatus(asked[1]), "UNKNOWN")
    faults.heal()
    await node.runtime.ImageStatus(asked[1])


async def test_lists_of_one_pod_are_about_it(node: Node) -> None:
    """A list that selects a pod by its UID is about that pod; one of everything is about none."""
    node.runtime.faults.add("ListContainers before uid=uid-web")
    await refused(node.containers(label_selector={"io.kubernetes.pod.uid": "uid-web"}), "UNKNOWN")

    assert await node.containers() == []


async def test_delay(node: Node) -> None:
    """A late call takes place when its delay is over; delays add up, and an error may come on top."""
    with node.runtime.faults.delay("RunPodSandbox", 2), node.runtime.faults.delay("*", 1):
        await node.sandbox("a")
        assert node.now == 3.0
        with node.runtime.faults.add("RunPodSandbox", delay=1):
            await refused(node.sandbox("b"), "UNKNOWN")

    assert node.now == 7.0
    assert len(await node.sandboxes()) == 1


async def test_a_late_call_takes_place_though_the_caller_has_left(node: Node) -> None:
    """A caller whose deadline is over gets DEADLINE_EXCEEDED, and the call takes place all the same."""
    with node.runtime.faults.delay("RunPodSandbox", 10):
        config = cri.PodSandboxConfig(metadata=cri.PodSandboxMetadata(name="a", uid="1"))
        call = node.runtime.RunPodSandbox(cri.RunPodSandboxRequest(config=config), timeout=4)
        error = await refused(call, "DEADLINE_EXCEEDED")
    before, now = await node.sandboxes(), node.now
    await node.clock.sleep(6)

    assert (before, now, error.effect) == ([], 4.0, True)
    assert len(await node.sandboxes()) == 1


async def test_hang(node: Node) -> None:
    """A call that hangs ends at its deadline without effect; one that is healed before takes place."""
    container = await node.create(await node.sandbox())
    request = cri.StartContainerRequest(container_id=container)
    with node.runtime.faults.add("StartContainer hang"):
        error = await refused(node.runtime.StartContainer(request, timeout=120), "DEADLINE_EXCEEDED")
        assert (node.now, error.effect) == (120.0, False)
        waiting = asyncio.create_task(node.runtime.StartContainer(request))
        await node.clock.sleep(10)
        assert (await node.status(container)).state == cri.CONTAINER_CREATED
    await waiting

    assert (await node.status(container)).state == cri.CONTAINER_RUNNING


async def test_a_hanging_call_that_was_given_up_does_not_take_place(node: Node) -> None:
    """A caller that leaves a hanging call takes it along."""
    with node.runtime.faults.add("RunPodSandbox hang"):
        call = asyncio.create_task(node.sandbox())
        await node.clock.sleep(1)
        call.cancel()
    await node.clock.sleep(1)

    assert await node.sandboxes() == []


async def test_lost_reply(node: Node) -> None:
    """A call whose reply is lost takes place; its caller waits until its deadline, or until it is healed."""
    one, two = await node.running(pod="one"), await node.running(pod="two")
    with node.runtime.faults.add("StopContainer lost-reply"):
        error = await refused(node.stop(one, deadline=30), "DEADLINE_EXCEEDED")
        waiting = asyncio.create_task(node.stop(two))
        await node.clock.sleep(5)
    await refused(waiting, "UNAVAILABLE")

    assert error.effect
    assert [(await node.status(each)).state for each in (one, two)] == [cri.CONTAINER_EXITED] * 2


def test_what_faults_refuse() -> None:
    """A fault on a call that there is not, or with a code that there is not, is a mistake."""
    faults = Faults(check)

    with pytest.raises(ValueError, match="no call is named 'StartContainers': expected"):
        faults.add("StartContainers")
    with pytest.raises(ValueError, match="gRPC has no status code 'BROKEN'"):
        faults.add("StartContainer", code="BROKEN")
    with pytest.raises(ValueError, match="no call is named 'StartContainer during'"):
        faults.add("StartContainer during")
    with pytest.raises(ValueError, match="a call is not about pod: container,"):
        faults.add("StartContainer before pod=web")


async def test_scripted_exits_are_reported(node: Node) -> None:
    """An exit by script is reported when it happens, with ids, name and code."""
    container = await node.running("exit 3 2.5")
    sandbox = (await node.sandboxes())[0]
    await node.clock.sleep(2)
    assert node.happened == []
    await node.clock.sleep(0.5)

    assert node.happened == [("exited", container, sandbox, "c1", 3)]


async def test_exits_come_in_order_whenever_they_were_asked_for(node: Node) -> None:
    """Exits happen at their own times, an earlier one that was begun later included."""
    for name, after in (("late", 9), ("early", 1), ("mid", 5)):
        await node.running(f"exit 0 {after}", name, pod=name)
    await node.clock.sleep(10)

    assert [what[3] for what in node.happened] == ["early", "mid", "late"]


async def test_addresses_may_be_wrong(node: Node) -> None:
    """While it is set every new sandbox gets that text as its address, or none."""
    addresses = node.runtime.core.store.addresses
    addresses.given = "pending"
    odd = await node.sandbox()
    addresses.given = ""
    none = await node.sandbox("other")
    addresses.given = None
    right = await node.sandbox("third")
    reported = [(await node.sandbox_status(one)).network.ip for one in (odd, none, right)]

    assert reported == ["pending", "", "10.88.0.2"]


async def test_exit_and_oom_from_outside(node: Node) -> None:
    """A test may end a process; what does not run, or is not there, cannot end."""
    container, other = await node.running(), await node.running(pod="other")
    node.runtime.exit(container, 9)
    node.runtime.oom(other, code=1)

    assert (await node.status(container)).exit_code == 9
    with pytest.raises(ValueError, match="EXITED: nothing runs in it"):
        node.runtime.exit(container, 9)
    with pytest.raises(Exception, match="not found"):
        node.runtime.oom("unknown")

    assert [(what[0], what[4]) for what in node.happened] == [("exited", 9), ("oom", 1)]


async def test_sandbox_dies_alone(node: Node) -> None:
    """A sandbox that dies is NOTREADY and lost its address; its containers go on."""
    container = await node.running()
    sandbox = (await node.sandboxes())[0]
    node.runtime.kill_sandbox(sandbox)
    node.runtime.kill_sandbox(sandbox)
    status = await node.sandbox_status(sandbox)

    assert (status.state, status.network.ip) == (cri.SANDBOX_NOTREADY, "")
    assert (await node.status(container)).state == cri.CONTAINER_RUNNING
    assert node.happened == [("sandbox-died", "", sandbox, "", None)]


async def test_records_vanish(node: Node) -> None:
    """A record that was removed from outside is nowhere; a stop that waits for it ends."""
    container, other = await node.running("run stopdelay=50"), await node.running(pod="other")
    sandboxes = await node.sandboxes()
    stopping = asyncio.create_task(node.stop(container))
    await node.clock.sleep(1)
    node.runtime.remove_container(container)
    await stopping
    node.runtime.remove_sandbox(sandboxes[1])

    assert node.now == 1.0
    assert (await node.containers(), await node.sandboxes()) == ([], sandboxes[:1])
    assert [what[0] for what in node.happened] == ["exited", "removed", "exited", "removed", "removed"]
    assert node.happened[-2][1] == other


async def test_lost_track(node: Node) -> None:
    """A container that the runtime lost track of is UNKNOWN until it is stopped."""
    container = await node.running("exit 0 5")
    node.runtime.lose_track(container)
    await node.clock.sleep(10)
    before = (await node.status(container)).state
    await node.stop(container)

    assert before == cri.CONTAINER_UNKNOWN
    assert (await node.status(container)).state == cri.CONTAINER_EXITED


async def test_restart_breaks_calls_and_keeps_containers(node: Node) -> None:
    """When the runtime restarts, calls under way and streams fail; nobody kills what is being stopped."""
    container = await node.running("run stopdelay=8")
    stream = node.runtime.GetContainerEvents(cri.GetEventsRequest())
    events = asyncio.create_task(anext(stream))
    stopping = asyncio.create_task(node.stop(container, 5))
    await node.clock.sleep(1)
    node.runtime.restart()
    await refused(stopping, "UNAVAILABLE")
    await refused(events, "UNAVAILABLE")
    await node.clock.sleep(5)
    state = (await node.status(container)).state
    await node.clock.sleep(2)

    assert state == cri.CONTAINER_RUNNING
    assert (await node.status(container)).exit_code == 0
    assert [what[0] for what in node.happened] == ["restarted", "exited"]


async def test_restart_may_lose_everything(node: Node) -> None:
    """A runtime may come up without its records, and then gives new ids."""
    container = await node.running()
    node.runtime.restart(lose_state=True)
    empty = await node.containers(), await node.sandboxes()

    assert empty == ([], [])
    assert await node.running() != container


async def test_reboot(node: Node) -> None:
    """After a reboot all records are there, nothing runs and no sandbox is ready."""
    running, other = await node.running("exit 0 99"), await node.running(pod="other")
    created = await node.create((await node.sandboxes())[1], name="c2")
    node.runtime.reboot()
    await node.clock.sleep(200)
    states = [(await node.status(each)).state for each in (running, other, created)]

    assert states == [cri.CONTAINER_EXITED, cri.CONTAINER_EXITED, cri.CONTAINER_CREATED]
    assert await node.sandboxes(state=cri.PodSandboxStateValue(state=cri.SANDBOX_READY)) == []
    ops = [what[0] for what in node.happened]
    assert ops == ["exited", "exited", "sandbox-died", "sandbox-died", "rebooted"]


async def test_clock_jump(node: Node) -> None:
    """When the time of day jumps, durations stay, and creation times still grow when it jumps back."""
    container = await node.running("exit 0 10")
    before = (await node.status(container)).created_at
    node.runtime.jump_clock(-3600)
    other = await node.running(pod="other")
    await node.clock.sleep(10)
    status, later = await node.status(container), await node.status(other)

    assert status.state == cri.CONTAINER_EXITED
    assert status.finished_at >= status.started_at
    assert later.created_at > before
