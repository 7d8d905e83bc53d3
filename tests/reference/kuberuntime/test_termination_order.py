"""The turns of sidecars when their pod is killed."""

from typing import Any

from lightkube.models.core_v1 import Pod
from on_loop import run_by
from runtime_world import RuntimeWorld, a_container, a_pod, in_runtime_world


def _served(*app: str, **sidecar: Any) -> Pod:
    """A pod with the sidecars s1 and s2, which take 1 s to stop, and c1, which runs `app`."""
    inits = [a_container(name, "run", "stopdelay=1", **sidecar) for name in ("s1", "s2")]
    for one in inits:
        one["restartPolicy"] = "Always"
    return a_pod(a_container("c1", *(app or ("run",))), initContainers=inits)


async def _started(w: RuntimeWorld, pod: Pod) -> float:
    """Start all of the pod; when its kill may begin."""
    for _ in range(3):
        await w.sync(pod)
    w.forget()
    return w.clock.monotonic()


def _stops(w: RuntimeWorld, began: float) -> list[tuple[str, float, int]]:
    """Each container that was stopped, when, and with what timeout."""
    calls = w.calls("StopContainer")
    names = [line.split()[1].partition("#")[0] for line in w.done if line.startswith("StopContainer")]
    return [(name, call.t - began, call.request.timeout) for name, call in zip(names, calls, strict=True)]


@run_by(in_runtime_world)
async def test_turns_are_cut_short_by_the_grace(w: RuntimeWorld) -> None:
    """When the app containers use up the grace, sidecars wait no longer and have 2 s (SIDECAR-14)."""
    pod = _served("run", "stopdelay=60")
    began = await _started(w, pod)

    await w.kill(pod, 4)

    assert sorted(_stops(w, began)) == [("c1", 0, 4), ("s1", 4, 2), ("s2", 4, 2)]


@run_by(in_runtime_world, version="1.28")
async def test_all_at_one_time_in_1_28(w: RuntimeWorld) -> None:
    """Before 1.29 nobody waits for anybody."""
    pod = _served("run", "stopdelay=3")
    began = await _started(w, pod)

    await w.kill(pod, 10)

    assert sorted(_stops(w, began)) == [("c1", 0, 10), ("s1", 0, 10), ("s2", 0, 10)]
