"""A resize that is carried out: one call for each change, memory that is used is not taken, and the watch."""

from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from lightkube.models.core_v1 import Pod
from on_loop import run_by
from runtime_world import RuntimeWorld, a_container, a_pod, in_runtime_world

from kubelet_reference.util.settings import Settings


def _play(
    work: Callable[[RuntimeWorld], Coroutine[Any, Any, None]],
    *,
    version: str = "1.33",
    gate: bool | None = None,
) -> None:
    gates = {} if gate is None else {"InPlacePodVerticalScaling": gate}
    in_runtime_world(work, version=version, settings=Settings(feature_gates=gates))


def sized(*cores: str, memory: str = "64Mi", **fields: Any) -> Pod:
    """A pod whose containers c1, c2, ... have so many cores each."""
    sizes = [{"cpu": each, "memory": memory} for each in cores]
    return a_pod(
        *(
            a_container(f"c{number}", resources={"requests": size, "limits": size}, **fields)
            for number, size in enumerate(sizes, start=1)
        )
    )


def _rpcs(w: RuntimeWorld) -> list[str]:
    return [
        call.rpc for call in w.runtime.calls if call.rpc in {"UpdateContainerResources", "ContainerStats"}
    ]


@run_by(_play)
async def test_each_change_is_a_call(w: RuntimeWorld) -> None:
    """What grows and what shrinks is changed as it runs, the smaller first, and then watched (RESIZE-04)."""
    await w.sync(sized("500m", "1"))
    w.forget()
    result = await w.sync(sized("1", "500m"))

    assert result.error is None
    assert _rpcs(w) == ["UpdateContainerResources"] * 2
    assert [name for _, name in w.watched] == ["c2:cpu", "c1:cpu"]
    records = await w.records(sized("1", "500m"))
    assert all(met(records) for met in w.watched.values())


@run_by(_play)
async def test_memory_in_use_is_not_taken(w: RuntimeWorld) -> None:
    """A limit below what the container uses is refused, and the pass has failed (RESIZE-05)."""
    await w.sync(sized("1"))
    w.forget()
    result = await w.sync(sized("1", memory="4Mi"))

    assert "its usage is" in result.problem
    assert _rpcs(w) == ["ContainerStats"]
    assert w.watched == {}


@run_by(_play)
async def test_memory_that_is_free_is_taken(w: RuntimeWorld) -> None:
    """A limit above what the container uses is set."""
    await w.sync(sized("1"))
    w.forget()
    result = await w.sync(sized("1", memory="32Mi"))

    assert result.error is None
    assert _rpcs(w) == ["ContainerStats", "UpdateContainerResources"]


@run_by(_play)
async def test_failed_change_ends_the_resize(w: RuntimeWorld) -> None:
    """What comes after a change that failed waits for the next pass."""
    await w.sync(sized("500m", "1"))
    w.forget()
    with w.runtime.faults.add("UpdateContainerResources", code="UNAVAILABLE"):
        result = await w.sync(sized("1", "500m"))

    assert "injected" in result.problem
    assert _rpcs(w) == ["UpdateContainerResources"]


@run_by(_play)
async def test_policy_makes_the_container_anew(w: RuntimeWorld) -> None:
    """A container that has to restart for a resource is stopped and made again in one pass (RESIZE-03)."""
    policy = [{"resourceName": "cpu", "restartPolicy": "RestartContainer"}]
    await w.sync(sized("1", resizePolicy=policy))
    w.forget()
    await w.sync(sized("2", resizePolicy=policy))

    rpcs = [call.rpc for call in w.runtime.calls]
    assert rpcs.index("StopContainer") < rpcs.index("CreateContainer")
    assert "UpdateContainerResources" not in rpcs


@run_by(_play, version="1.32")
async def test_without_the_feature_nothing_is_changed(w: RuntimeWorld) -> None:
    """Before the gate is on other resources are none of the kubelet's business."""
    await w.sync(sized("1"))
    w.forget()
    await w.sync(sized("2"))

    assert _rpcs(w) == []


@pytest.mark.parametrize(("version", "watched"), [("1.30", False), ("1.31", False), ("1.32", True)])
@run_by(_play, takes=("version",), gate=True)
async def test_resized_pods_are_watched_since_1_32(w: RuntimeWorld, *, watched: bool) -> None:
    """Before that a resize shows with the next sync (PLEG-17); other resources are no other definition."""
    await w.sync(sized("1"))
    w.forget()
    await w.sync(sized("2"))

    assert _rpcs(w) == ["UpdateContainerResources"]
    assert bool(w.watched) is watched
