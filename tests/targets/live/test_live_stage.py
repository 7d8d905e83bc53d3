"""The stage on wall time, with the fake runtime at a real socket: what is played leaves nothing behind."""

import asyncio
import contextlib
import tempfile
from collections.abc import AsyncGenerator, Awaitable, Callable
from pathlib import Path

import pytest
from cri_api.v1 import api_pb2 as cri
from on_loop import on_loop

from kubelet_conformance.contract.checking import judge_file
from kubelet_conformance.contract.verdicts import Verdict
from kubelet_conformance.contracts import every_contract
from kubelet_conformance.node import Node, WaitTimeoutError, container, pod
from kubelet_conformance.targets.choice import Choice, TargetError
from kubelet_conformance.targets.controls import NotPossibleError, Target
from kubelet_conformance.targets.live.stage import WallStage
from kubelet_conformance.targets.stage import Act, PlayedLife
from kubelet_conformance.trace.format.reader import Reader
from kubelet_fakes.runtime import FakeRuntime, RuntimeCore
from kubelet_fakes.runtime.serving.server import RuntimeServer
from kubelet_reference.server.host.system_clock import WallClock


def act(
    scenario: Callable[[Node], Awaitable[None]],
    number: int = 1,
    wait_seconds_max: float = 10,
    **settings: object,
) -> Act:
    """A scenario to be played, with these settings of the kubelet's configuration."""

    async def on(target: Target) -> None:
        await scenario(Node(target))

    return Act(number, f"mine.scenario_{number}", on, settings, wait_seconds_max)


@contextlib.asynccontextmanager
async def opened(path: Path) -> AsyncGenerator[tuple[WallStage, FakeRuntime]]:
    """A stage on a fake runtime at this socket; nothing is at the runtime in the end."""
    clock = WallClock()
    core = RuntimeCore(epoch_ns=clock.wall_ns() - round(clock.monotonic() * 1e9))
    runtime = FakeRuntime(core, clock)
    async with RuntimeServer(runtime, path):
        stage = WallStage(Choice(runtime=f"unix://{path}"))
        await stage.open({"img:1"})
        try:
            yield stage, runtime
        finally:
            await stage.close()
            left = await runtime.ListPodSandbox(cri.ListPodSandboxRequest())
            assert not left.items


def played(path: Path, *acts: Act, shared: bool = False) -> PlayedLife:
    """One life of a node with these scenarios."""

    async def play() -> PlayedLife:
        async with opened(path) as (stage, _):
            return await stage.play(acts, shared=shared, concurrency=8)

    return asyncio.run(play())


def broken(life: PlayedLife, folder: Path) -> list[str]:
    """The contracts that the trace breaks."""
    path = folder / "trace.jsonl"
    path.write_bytes(life.trace)
    outcomes = judge_file(str(path), every_contract().values()).outcomes
    return [each for each, outcome in outcomes.items() if outcome.verdict is Verdict.BROKEN]


@pytest.mark.slow
def test_scenarios_share_a_node(tmp_path: Path) -> None:
    """Scenarios whose pods have one name play side by side, each with its own, and its records are known."""
    names: dict[int, str] = {}

    async def one(node: Node) -> None:
        web = await node.run()
        names[1] = web.namespace
        web.exit(code=3)
        await web.until_running("c1", attempt=1)

    async def two(node: Node) -> None:
        web = node.want_static(pod(container(command="exit 0 0"), restart="Never"))
        names[2] = web.namespace
        await web.until_phase("Succeeded")
        assert [each.pod_uid for each in node.runtime.sandboxes()] == [web.uid]

    life = played(tmp_path / "s", act(one, 1), act(two, 2), shared=True)

    assert [life.ended[number].report for number in (1, 2)] == ["", ""]
    assert names == {1: "kcrun-1-mine-scenario-1", 2: "kcrun-2-mine-scenario-2"}
    assert {1, 2, None} == set(life.owners)
    assert broken(life, tmp_path) == []
    with Reader(str(tmp_path / "trace.jsonl")) as reader:
        assert (reader.header.clock, reader.header.scenario) == ("wall", None)
        assert (reader.header.kubelet, reader.header.runtime) == ("kubelet_reference", "fake 1.0.0")
        assert len(list(reader)) == len(life.owners) + 1


def test_urgent_life_has_no_queue_before_it(tmp_path: Path) -> None:
    """A life that is urgent comes before those that were asked for earlier, save the very next."""
    begun: list[int] = []

    def numbered(number: int) -> Act:
        async def begins(_: Node) -> None:
            begun.append(number)

        return act(begins, number)

    async def play() -> None:
        async with opened(tmp_path / "s") as (stage, _), asyncio.TaskGroup() as tasks:
            for number in (1, 2, 3, 4):
                tasks.create_task(stage.play([numbered(number)], shared=False, urgent=number == 4))

    asyncio.run(play())

    assert begun == [1, 2, 4, 3]


@pytest.mark.slow
def test_scenario_alone_restarts_the_kubelet(tmp_path: Path) -> None:
    """Alone on a node a scenario may end and start the kubelet; the trace is that scenario's."""

    async def scenario(node: Node) -> None:
        web = await node.run()
        await node.restart_kubelet(down=0.1)
        web.exit(code=1)
        await web.until_running("c1", attempt=1)

    gates = {"KubeletCrashLoopBackOffMax": True}
    life = played(
        tmp_path / "s", act(scenario, feature_gates=gates, registry_burst=3, max_container_restart_period=20)
    )

    assert life.ended[1].report == ""
    assert broken(life, tmp_path) == []
    with Reader(str(tmp_path / "trace.jsonl")) as reader:
        assert reader.header.scenario == "mine.scenario_1"
        assert reader.header.feature_gates == gates
        assert reader.header.configuration == {
            "registryBurst": 3,
            "crashLoopBackOff": {"maxContainerRestartPeriod": "20s"},
        }


def test_scenarios_that_fail_harm_nobody(tmp_path: Path) -> None:
    """A wait that times out, a mistake and something impossible end their own scenarios alone."""

    async def waits(node: Node) -> None:
        await node.until(lambda: False, "nothing")

    async def raises(_: Node) -> None:
        raise ValueError("boom")

    async def asks_too_much(node: Node) -> None:
        with node.not_ready(network=False):
            pass

    scenarios = (waits, raises, asks_too_much)
    acts = [act(scenario, number, wait_seconds_max=0.2) for number, scenario in enumerate(scenarios)]
    life = played(tmp_path / "s", *acts, shared=True)
    errors = [life.ended[number].error for number in range(3)]

    assert [type(each) for each in errors] == [WaitTimeoutError, ValueError, NotPossibleError]
    assert str(errors[0]).startswith("timed out after 0.2 s waiting for nothing\n")
    assert str(errors[2]) == "a scripted runtime: set_conditions"
    assert "in raises\n" in life.ended[1].report


def test_actions_that_fail_end_their_scenario(tmp_path: Path) -> None:
    """What was begun at the runtime and turns out impossible ends the scenario that waits for its outcome."""

    async def scenario(node: Node) -> None:
        web = await node.run()
        node.runtime.kill_sandbox(web.sandbox().id)
        await web.until_running("c1", attempt=1)

    life = played(tmp_path / "s", act(scenario), shared=True)

    assert isinstance(life.ended[1].error, NotPossibleError)
    assert str(life.ended[1].error) == "a runtime that reports the process of a sandbox, on this machine"


def test_interrupted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that is ended in its middle leaves neither sandboxes nor folders nor sockets."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    async def interrupt() -> None:
        async with opened(tmp_path / "s") as (stage, runtime):
            running = asyncio.Event()

            async def scenario(node: Node) -> None:
                await node.run(container(command="run stopdelay=600"))
                running.set()
                await asyncio.Event().wait()

            playing = asyncio.create_task(stage.play([act(scenario)], shared=True, concurrency=1))
            await running.wait()
            assert (await runtime.ListPodSandbox(cri.ListPodSandboxRequest())).items
            playing.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await playing
            assert playing.cancelled()

    asyncio.run(interrupt())

    assert list(tmp_path.iterdir()) == []


@contextlib.asynccontextmanager
async def with_a_pod(path: Path, namespace: str) -> AsyncGenerator[FakeRuntime]:
    """A fake runtime that has a pod in this namespace."""
    runtime = FakeRuntime(RuntimeCore(), WallClock())
    async with RuntimeServer(runtime, path):
        config = cri.PodSandboxConfig(
            metadata=cri.PodSandboxMetadata(name="web", namespace=namespace, uid="u")
        )
        await runtime.RunPodSandbox(cri.RunPodSandboxRequest(config=config))
        yield runtime


async def opened_and_closed(path: Path, *, kill_foreign_pods: bool = False) -> None:
    """Open a stage on the runtime at this socket, and close it."""
    stage = WallStage(Choice(runtime=f"unix://{path}", kill_foreign_pods=kill_foreign_pods))
    try:
        await stage.open(())
    finally:
        await stage.close()


@on_loop
async def test_what_an_earlier_run_left_is_removed(tmp_path: Path) -> None:
    """Sandboxes of our own namespaces are taken away before anything is played."""
    async with with_a_pod(tmp_path / "s", "kcrun-3-old") as runtime:
        await opened_and_closed(tmp_path / "s")
        left = (await runtime.ListPodSandbox(cri.ListPodSandboxRequest())).items

    assert not left


@on_loop
async def test_foreign_pods_need_a_word(tmp_path: Path) -> None:
    """Where others have pods nothing is played, unless that is said to be meant."""
    async with with_a_pod(tmp_path / "s", "shop"):
        await opened_and_closed(tmp_path / "s", kill_foreign_pods=True)
        with pytest.raises(TargetError, match="would KILL them"):
            await opened_and_closed(tmp_path / "s")
