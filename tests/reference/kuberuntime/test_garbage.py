"""What is removed of dead containers and sandboxes, and what stays."""

import asyncio
import contextlib
from typing import Any

from decisions_bench import a_record
from lightkube.models.core_v1 import Pod
from msgspec.structs import replace
from on_loop import run_by
from runtime_world import RuntimeWorld, a_container, a_pod, in_runtime_world

from kubelet_reference.api.records import PodRecords
from kubelet_reference.kuberuntime.container_gc.container_deletor import RecordRemover, superfluous

LOGS = "/var/log/pods/default_web_u1"


async def _crashed(w: RuntimeWorld, times: int, *containers: dict[str, Any]) -> Pod:
    pod = a_pod(*(containers or (a_container("c1", "exit", "1", "1"),)))
    for _ in range(times):
        await w.sync(pod)
        await w.clock.sleep(301)
    w.forget()
    return pod


@run_by(in_runtime_world)
async def test_newest_dead_one_stays(w: RuntimeWorld) -> None:
    """Of one container's dead instances all but the newest go, the oldest first (GC-01)."""
    await _crashed(w, 4)

    await w.side.garbage_collector.collect()

    assert w.done == ["RemoveContainer c1#0", "RemoveContainer c1#1", "RemoveContainer c1#2"]


@run_by(in_runtime_world)
async def test_gone_pod(w: RuntimeWorld) -> None:
    """Of a pod that is gone all goes: containers, the sandbox after one more stop, logs (GC-02, 05, 07)."""
    pod = await _crashed(w, 1)
    await w.kill(pod)
    w.disk.make_folder(LOGS)
    w.gone.append("u1")
    w.forget()

    await w.side.garbage_collector.collect()

    assert w.done == ["RemoveContainer c1#0", "StopPodSandbox", "RemovePodSandbox"]
    assert not w.disk.is_folder(LOGS)


@run_by(in_runtime_world)
async def test_full_disk(w: RuntimeWorld) -> None:
    """On a full disk pods that have ended keep nothing, though they are not gone (EVICT-01)."""
    await _crashed(w, 2)
    collector = w.side.garbage_collector

    await collector.reclaim(lambda _: False)
    lives_on = w.done.copy()
    await collector.reclaim(lambda uid: uid == "u1")

    assert [one for one in lives_on if "Remove" in one] == ["RemoveContainer c1#0"]
    assert [one for one in w.done if "c1" in one] == ["RemoveContainer c1#0", "RemoveContainer c1#1"]


@run_by(in_runtime_world)
async def test_sources_not_ready(w: RuntimeWorld) -> None:
    """Before all sources have spoken nobody knows which pods are gone (GC-02, GC-07)."""
    await _crashed(w, 1)
    w.disk.make_folder(LOGS)
    w.gone.append("u1")
    w.sources_ready = False

    await w.side.garbage_collector.collect()

    assert w.done == []
    assert w.disk.is_folder(LOGS)


@run_by(in_runtime_world)
async def test_running_ones_stay(w: RuntimeWorld) -> None:
    """What runs is never removed, nor is a ready sandbox (GC-09)."""
    await w.sync(a_pod())
    w.gone.append("u1")
    w.forget()

    await w.side.garbage_collector.collect()

    assert w.done == []


@run_by(in_runtime_world)
async def test_log_that_stays_keeps_its_container(w: RuntimeWorld) -> None:
    """Logs go first; without that the container stays for the next round (GC-06)."""
    pod = await _crashed(w, 1)
    path = f"{LOGS}/c1/0.log"
    w.disk.make_folder(f"{LOGS}/c1")
    w.disk.write(path, b"")
    dead = await w.newest(pod, "c1")

    with w.disk.broken(path):
        await RecordRemover(w.tools).remove(dead.id)
    assert await w.newest(pod, "c1") == dead
    await RecordRemover(w.tools).remove(dead.id)

    assert w.disk.names(f"{LOGS}/c1") == []


@run_by(in_runtime_world)
async def test_failed_list(w: RuntimeWorld) -> None:
    """A round whose list fails does nothing, and says so (GC-11)."""
    await _crashed(w, 3)
    w.runtime.faults.add("ListContainers")

    await w.side.garbage_collector.collect()
    assert w.done == []


def _records() -> PodRecords:
    states = {"a3": "RUNNING", "a2": "EXITED", "a1": "EXITED", "b1": "EXITED"}
    every = [
        replace(a_record(key[0], state), id=key, created_at=9 - number)
        for number, (key, state) in enumerate(states.items())
    ]
    return PodRecords("u1", containers=tuple(every))


def test_superfluous_instances() -> None:
    """After a death all but the newest dead one of that name go; of an ended pod all (GC-10)."""
    records = _records()

    assert [one.id for one in superfluous(records, "a2", remove_all=False)] == ["a1"]
    assert [one.id for one in superfluous(records, "b1", remove_all=False)] == []
    assert [one.id for one in superfluous(records, "gone", remove_all=False)] == []
    assert [one.id for one in superfluous(records, "gone", remove_all=True)] == ["a2", "a1", "b1"]


def test_deletor_works_in_the_background() -> None:
    """What is due is removed one after another (LOOP-10)."""
    removed: list[str] = []

    async def remove(container_id: str) -> None:
        removed.append(container_id)

    async def work(w: RuntimeWorld) -> None:
        deletor = type(w.side.container_deletor)(remove)
        deletor.container_died(_records(), "b1", remove_all=True)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(1):
                await deletor.run()

    in_runtime_world(work)

    assert removed == ["a2", "a1", "b1"]
