"""Kubelet or containerd is killed in the middle of everything: nothing is lost, nothing is run twice."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

import pytest
from bare_cri import at_socket
from real_node import RunResult, broken, remaining, run_scenarios

from kubelet_conformance.node import Node, PodHandle, container, pod
from kubelet_conformance.targets.containerd import PrivateContainerd, leftovers

Scenario = Callable[[PrivateContainerd, Node], Awaitable[None]]
CROWD = 50
PLENTY = 10
REAL_TIME = Path(__file__).parent / "real_time.toml"
"""What is known to go wrong on real time, each with its reason."""
KILLED = Path(__file__).parent / "containerd_killed.toml"
"""What is known to go wrong when containerd is killed, each with its reason."""


def run_alone(
    containerd: PrivateContainerd,
    scenario: Scenario,
    folder: Path,
    baseline: Path = REAL_TIME,
) -> RunResult:
    """Play one scenario on a node of its own; it comes to its end, and every contract is kept."""
    result = asyncio.run(
        run_scenarios(containerd, {scenario.__name__: partial(scenario, containerd)}, folder)
    )

    assert result.ended[0].error is None, result.ended[0].report
    assert broken(result.judged, baseline) == []
    return result


def starts(containerd: PrivateContainerd, web: PodHandle, name: str) -> int:
    """How many times the process of a container was started that counts its attempts, as `seq` does."""
    file = containerd.home.shared / "attempts" / f"{web.uid}.{name}"
    return int(file.read_text()) if file.exists() else 0


async def all_running(node: Node, pods: list[PodHandle]) -> None:
    """Wait until every pod runs, by its status; one wait for all, because each is asked at every record."""
    uids = [each.uid for each in pods]

    def run() -> bool:
        return all(node.observations.statuses.get(uid, {}).get("phase") == "Running" for uid in uids)

    await node.until(run, f"{len(pods)} pods running")


async def all_gone(node: Node, pods: list[PodHandle]) -> None:
    """Delete every pod and wait until it is gone."""
    uids = {each.uid for each in pods}
    for each in pods:
        each.delete()
    await node.until(lambda: uids <= node.observations.deleted, f"{len(pods)} pods gone")


def is_whole(web: PodHandle) -> bool:
    """One sandbox is ready, and one instance of its container runs."""
    ready = [each for each in web.sandboxes() if each.ready]
    running = [each for each in web.containers("c1") if each.state == "RUNNING"]
    return (len(ready), len(running)) == (1, 1)


async def fifty_at_once(containerd: PrivateContainerd, node: Node) -> None:
    """Fifty pods wanted at once all run, each in one sandbox, each init container just once."""
    inits = (container("i1", "seq 0@1"),)
    pods = [node.want(pod(init=inits, name=f"pod-{number}", grace=5)) for number in range(CROWD)]
    await all_running(node, pods)

    assert all(map(is_whole, pods))
    assert {starts(containerd, each, "i1") for each in pods} == {1}
    assert len({each.status["podIP"] for each in pods}) == CROWD
    await all_gone(node, pods)


async def kubelet_killed(containerd: PrivateContainerd, node: Node) -> None:
    """A kubelet that comes back finds its pods, and does what became due while it was away, and no more."""
    inits = (container("i1", "seq 0@1"),)
    kept = await node.run(init=inits, name="kept")
    restarted = await node.run(name="restarted")
    deleted = await node.run(name="deleted", grace=5)
    half = node.want(pod(init=(container("i1", "seq 0@4"),), name="half"))
    await half.until_started("i1")
    await node.kubelet.kill()
    ended = restarted.container("c1")
    async with at_socket(containerd.socket) as runtime:
        await runtime.execute(ended.id, "end 5")
        await runtime.ended(ended.id)
    deleted.delete()
    wanted = node.want(pod(name="wanted"))
    await node.wait(1)
    await node.kubelet.start()
    await restarted.until_running("c1", attempt=1)
    await half.until_running("c1")
    await wanted.until_running("c1")
    await deleted.until_gone()

    assert len(kept.calls("StartContainer", "c1")) == 1
    assert kept.calls("StopContainer") == []
    assert [starts(containerd, each, "i1") for each in (kept, half)] == [1, 1]
    assert [len(each.calls("RunPodSandbox")) for each in (kept, restarted, half, wanted)] == [1, 1, 1, 1]
    await all_gone(node, [kept, restarted, half, wanted])


async def kubelet_stopped(_: PrivateContainerd, node: Node) -> None:
    """A kubelet that is asked to end leaves its containers running, and finds them so."""
    web = await node.run()
    await node.kubelet.stop()
    await node.wait(1)
    assert web.container("c1").state == "RUNNING"
    await node.kubelet.start()
    await node.wait(5)

    assert len(web.calls("StartContainer")) == 1
    assert web.calls("StopContainer") == []
    await all_gone(node, [web])


async def containerd_killed(containerd: PrivateContainerd, node: Node) -> None:
    """Pods go on while containerd is away, and afterwards nothing is done to them that was not due."""
    kept = await node.run(init=(container("i1", "seq 0@1"),), name="kept")
    ends = await node.run(container("c1", "seq 1@6 run"), name="ends")
    deleted = await node.run(container("c1", "run stopdelay=1"), name="deleted", grace=10)
    containerd.kill()
    deleted.delete()
    wanted = node.want(pod(name="wanted"))
    await node.wait(7)
    await containerd.start()
    await ends.until_running("c1", attempt=1)
    await wanted.until_running("c1")
    await deleted.until_gone()
    await node.wait(3)

    assert len(kept.calls("StartContainer", "c1")) == 1
    assert kept.calls("StopContainer") == []
    assert starts(containerd, kept, "i1") == 1
    assert starts(containerd, ends, "c1") == 2
    assert all(map(is_whole, (kept, ends, wanted)))
    await all_gone(node, [kept, ends, wanted])


async def containerd_killed_amid_starts(containerd: PrivateContainerd, node: Node) -> None:
    """Killed while pods are being started, containerd comes back and every pod runs, whole, in the end."""
    inits = (container("i1", "seq 0@1"),)
    pods = [node.want(pod(init=inits, name=f"pod-{number}", grace=5)) for number in range(PLENTY)]
    await node.until(
        lambda: any(call.done for each in pods for call in each.calls("StartContainer")), "the first start"
    )
    containerd.kill()
    await node.wait(1)
    await containerd.start()
    await all_running(node, pods)
    await node.until(lambda: all(map(is_whole, pods)), "every pod whole")

    for each in pods:
        done = [call for call in each.calls("StartContainer", "i1") if call.done]
        sandboxes = len([call for call in each.calls("RunPodSandbox") if call.done])
        assert len(done) <= max(sandboxes, 1), each.name
    await all_gone(node, pods)


@pytest.mark.parametrize(
    "scenario", [fifty_at_once, kubelet_killed, kubelet_stopped], ids=lambda s: s.__name__
)
def test_kubelet_alone(containerd: PrivateContainerd, tmp_path: Path, scenario: Scenario) -> None:
    """The scenario comes to its end, every contract is kept, and nothing of its pods is left."""
    run_alone(containerd, scenario, tmp_path)

    assert remaining(containerd) == []


@pytest.mark.parametrize(
    "scenario", [containerd_killed, containerd_killed_amid_starts], ids=lambda s: s.__name__
)
def test_containerd_away(tmp_path: Path, scenario: Scenario) -> None:
    """The scenario comes to its end, every contract is kept, and nothing is left of the containerd.

    What a containerd that was killed amid a start has forgotten, such as a shim, goes with the containerd.
    """
    containerd = PrivateContainerd()
    asyncio.run(containerd.start())
    home = containerd.home
    try:
        run_alone(containerd, scenario, tmp_path, KILLED)
    finally:
        containerd.stop()

    assert leftovers(home, containerd.seen_ids) == ()
