"""Pods live on a real containerd as they do on the fake: each scenario has a pod, and all share one node."""

import asyncio
import os
import signal
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from bare_cri import at_socket
from real_node import RunResult, broken, process_of, remaining, run_scenarios

from kubelet_conformance.node import Node, PodHandle, container, exec_hook, exec_probe, pod
from kubelet_conformance.targets.containerd import PrivateContainerd

PORT = 8080


def started(web: PodHandle) -> list[str]:
    """The containers that were started, in order."""
    return [call.container for call in web.calls("StartContainer") if call.done]


def server(name: str, **fields: Any) -> dict[str, Any]:
    """A container that answers HTTP at its port."""
    return container(name, f"serve {PORT}", **fields)


def http_probe(path: str, **fields: Any) -> dict[str, Any]:
    """A probe over HTTP."""
    return {"httpGet": {"path": path, "port": PORT}, "periodSeconds": 1, **fields}


async def init_order(_: PrivateContainerd, node: Node) -> None:
    """Init containers run one after another, app containers after them all."""
    inits = (container("i1", "exit 0 1"), container("i2", "exit 0 1"))
    web = node.want(pod(container("c1"), container("c2"), init=inits))
    await web.until_running("c1", "c2")

    assert started(web) == ["i1", "i2", "c1", "c2"]


async def failing_init(_: PrivateContainerd, node: Node) -> None:
    """An init container that fails is tried again before anything else runs."""
    web = node.want(pod(init=(container("i1", "seq 1@1 0@1"), container("i2", "exit 0 1"))))
    await web.until_running("c1")

    assert started(web) == ["i1", "i1", "i2", "c1"]


async def restarts_with_back_off(_: PrivateContainerd, node: Node) -> None:
    """A container that ends is restarted at once, and the second time after a back-off."""
    web = node.want(pod(container("c1", "seq 1@1 2@1 run")))
    await web.until_waiting("c1", "CrashLoopBackOff")
    await web.until_running("c1", attempt=2)

    assert web.container_status("c1")["lastState"]["terminated"]["exitCode"] == 2


async def never_restarted(_: PrivateContainerd, node: Node) -> None:
    """A pod that runs once ends with the phase that its exit codes say."""
    job = node.want(pod(container("c1", "exit 0 1"), container("c2", "exit 3 1"), restart="Never"))
    await job.until_phase("Failed")

    assert started(job) == ["c1", "c2"]


async def ephemeral(_: PrivateContainerd, node: Node) -> None:
    """An ephemeral container runs in a running pod, ends, and is not started again."""
    web = await node.run()
    web.debug(container("debugger", "exit 3 1"))
    await web.until_terminated("debugger")
    await node.wait(3)

    assert started(web) == ["c1", "debugger"]


async def exec_probes(containerd: PrivateContainerd, node: Node) -> None:
    """What is executed in a container decides whether it is started, ready and alive."""
    containerd.set_file("alive", there=True)
    web = node.want(
        pod(
            container(
                "c1",
                startupProbe=exec_probe("test -e /shared/files/up", periodSeconds=1, failureThreshold=60),
                livenessProbe=exec_probe("test -e /shared/files/alive", periodSeconds=1, failureThreshold=2),
                readinessProbe=exec_probe("x 0 0", periodSeconds=1),
            ),
            grace=2,
        )
    )
    await web.until_started("c1")
    await node.wait(2)
    assert not web.container_status("c1").get("started")
    containerd.set_file("up", there=True)
    await web.until_condition("Ready")
    containerd.set_file("alive", there=False)
    await web.until_started("c1", attempt=1)
    containerd.set_file("alive", there=True)
    await web.until_running("c1", attempt=1)


async def http_probes(containerd: PrivateContainerd, node: Node) -> None:
    """What a container answers over HTTP decides whether it is ready and alive."""
    web = node.want(
        pod(
            server(
                "c1",
                readinessProbe=http_probe("/ready", failureThreshold=1),
                livenessProbe=http_probe("/alive", failureThreshold=2),
            )
        )
    )
    await web.until_condition("Ready")
    containerd.answer_http("/ready", 503)
    await web.until_condition("Ready", status="False")
    containerd.answer_http("/ready", 200)
    await web.until_condition("Ready")
    containerd.answer_http("/alive", 500)
    await web.until_started("c1", attempt=1)
    containerd.answer_http("/alive", 200)
    await web.until_running("c1", attempt=1)


async def tcp_probes(_: PrivateContainerd, node: Node) -> None:
    """A container is ready where somebody listens at its port, and not where nobody does."""
    probes = {
        name: {"tcpSocket": {"port": port}, "periodSeconds": 1} for name, port in (("c1", PORT), ("c2", 81))
    }
    web = node.want(
        pod(server("c1", readinessProbe=probes["c1"]), container("c2", readinessProbe=probes["c2"]))
    )
    await web.until(lambda: bool(web.container_status("c1").get("ready")), "c1 ready")
    await web.until_event("Unhealthy", count=2)

    assert not web.container_status("c2")["ready"]


async def hooks(_: PrivateContainerd, node: Node) -> None:
    """The postStart hook runs before the next container is made, the preStop hook before a stop."""
    lifecycle = {"postStart": exec_hook("x 0 1"), "preStop": exec_hook("x 0 1")}
    web = await node.run(container("c1", lifecycle=lifecycle), container("c2"), grace=10)
    (post_start,), (c2,) = web.calls("ExecSync", "c1"), web.calls("CreateContainer", "c2")
    assert post_start.reply_at is not None
    assert post_start.reply_at <= c2.at
    web.delete()
    await web.until_gone()

    pre_stop = web.calls("ExecSync", "c1")[-1]
    (stop,) = web.calls("StopContainer", "c1")
    assert pre_stop.reply_at is not None
    assert pre_stop.reply_at <= stop.at


async def failing_hook(_: PrivateContainerd, node: Node) -> None:
    """A container whose postStart hook fails is stopped and tried again."""
    web = node.want(pod(container("c1", lifecycle={"postStart": exec_hook("x 1 0")}), grace=1))
    await web.until_event("FailedPostStartHook", count=2)


async def graceful_delete(_: PrivateContainerd, node: Node) -> None:
    """A deleted pod gets its grace, its codes are reported, its sandbox is stopped after its containers."""
    web = await node.run(container("c1", "run stopdelay=2 stopcode=7"), container("c2"), grace=20)
    web.delete()
    await web.until_gone()

    stops = web.calls("StopContainer")
    first = web.calls("StopPodSandbox")[0]
    assert {call.request.timeout for call in stops} == {20}
    assert all(call.reply_at is not None and call.reply_at <= first.at for call in stops)
    assert web.phase == "Failed"


async def deaf_container(_: PrivateContainerd, node: Node) -> None:
    """A container that will not stop is killed when its grace is over."""
    web = await node.run(container("c1", "run stopdelay=600"), grace=3)
    web.delete()
    await web.until_gone()

    (stop,) = web.calls("StopContainer")
    assert stop.reply_at is not None
    assert stop.reply_at - stop.at >= 3


async def sandbox_killed(_: PrivateContainerd, node: Node) -> None:
    """A pod whose sandbox is killed gets a new one, and everything in it runs once more."""
    web = await node.run(container("c1"), init=(container("i1", "exit 0 1"),))
    node.runtime.kill_sandbox(web.sandbox().id)
    await web.until_running("c1", attempt=1)

    assert started(web) == ["i1", "c1", "i1", "c1"]
    assert [each.attempt for each in web.sandboxes() if each.ready] == [1]


async def container_killed(containerd: PrivateContainerd, node: Node) -> None:
    """A container whose process is killed is restarted in its sandbox."""
    web = await node.run()
    async with at_socket(containerd.socket) as runtime:
        os.kill(await process_of(runtime.runtime, web.container("c1").id), signal.SIGKILL)
    await web.until_running("c1", attempt=1)

    assert web.container_status("c1")["lastState"]["terminated"]["exitCode"] == 137
    assert len(web.sandboxes()) == 1


async def out_of_memory(containerd: PrivateContainerd, node: Node) -> None:
    """A container that is killed for lack of memory says so, and is restarted."""
    web = await node.run(container("c1", resources={"limits": {"memory": "32Mi"}}))
    async with at_socket(containerd.socket) as runtime:
        await runtime.execute(web.container("c1").id, "oom")
    await web.until_running("c1", attempt=1)

    ended = web.container_status("c1")["lastState"]["terminated"]
    assert (ended["reason"], ended["exitCode"]) == ("OOMKilled", 137)


async def image_missing(containerd: PrivateContainerd, node: Node) -> None:
    """A pod whose image the registry lacks waits with a back-off, and runs when the image is there."""
    containerd.publish_image("registry/late:1", there=False)
    web = node.want(pod(container("c1", image="registry/late:1")))
    await web.until_waiting("c1", "ErrImagePull")
    await web.until_waiting("c1", "ImagePullBackOff")
    containerd.publish_image("registry/late:1")
    await web.until_running("c1")


SCENARIOS = (
    init_order,
    failing_init,
    restarts_with_back_off,
    never_restarted,
    ephemeral,
    exec_probes,
    http_probes,
    tcp_probes,
    hooks,
    failing_hook,
    graceful_delete,
    deaf_container,
    sandbox_killed,
    container_killed,
    out_of_memory,
    image_missing,
)


@pytest.fixture(scope="module")
def result(containerd: PrivateContainerd, tmp_path_factory: pytest.TempPathFactory) -> RunResult:
    """All scenarios, played side by side on one node."""
    scenarios = {scenario.__name__: partial(scenario, containerd) for scenario in SCENARIOS}
    return asyncio.run(run_scenarios(containerd, scenarios, tmp_path_factory.mktemp("node")))


@pytest.mark.parametrize("number", range(len(SCENARIOS)), ids=[scenario.__name__ for scenario in SCENARIOS])
def test_scenario_comes_to_its_end(result: RunResult, number: int) -> None:
    """The scenario of that name comes to its end."""
    ended = result.ended[number]

    assert ended.error is None, ended.report


def test_every_contract_is_kept(result: RunResult) -> None:
    """Neither the kubelet nor the runtime breaks a contract in any scenario."""
    assert broken(result.judged, Path(__file__).parent / "real_time.toml") == []


def test_nothing_is_left(result: RunResult, containerd: PrivateContainerd) -> None:
    """After the pods are gone containerd holds nothing of them: no process, mount, link, lease, or cgroup."""
    del result

    assert remaining(containerd) == []
