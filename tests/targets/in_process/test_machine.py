"""The machine of a node in process: what it tells the kubelet, and the trace."""

import asyncio
from pathlib import Path

import pytest

from kubelet_conformance.targets.controls import NotPossibleError
from kubelet_conformance.targets.in_process.machine import Machine, allocatable, configuration
from kubelet_conformance.targets.live.real_machine import RealMachine
from kubelet_conformance.trace.format.recorder import Item, Recorder
from kubelet_fakes.disk import MemoryDisk
from kubelet_reference.util.ports import Amount
from kubelet_reference.util.settings import Settings


def test_shortage_is_reported_and_measured() -> None:
    """What a scenario makes scarce is read by the kubelet, and stands in the trace."""
    recorder = Recorder(lambda: 0.0)
    machine = Machine(recorder, 1 << 30, lambda _: True, MemoryDisk())
    machine.press("memory.available", "50Mi")
    machine.press("nodefs.available", "5%")
    read = asyncio.run(machine.read())
    machine.relieve("memory.available")
    reported = [item.fields for item in recorder.records if isinstance(item, Item)]

    assert read["memory.available"] == Amount(50 << 20, 1 << 30)
    assert read["nodefs.available"].available * 20 == read["nodefs.available"].capacity
    assert list(asyncio.run(machine.read())) == ["nodefs.available"]
    assert reported[0] == {"what": "memory.available is low", "values": {"memory.available": "50Mi"}}
    assert reported[2] == {"what": "healed: memory.available is low"}


def test_memory_of_a_pod_that_ends_is_free_again() -> None:
    """What a pod used is there again as soon as it runs no more; what had ended before frees nothing."""
    running = {"a", "b"}
    machine = Machine(Recorder(lambda: 0.0), 1 << 30, running.__contains__, MemoryDisk())
    for uid in ("a", "b", "gone"):
        machine.use(uid, {"memory": "100Mi", "volume data": "1Gi", "container c1": "1Mi"})
    machine.press("memory.available", "50Mi")
    before = asyncio.run(machine.read())
    running.remove("a")
    after, usage = asyncio.run(machine.read()), asyncio.run(machine.usage())["a"]

    assert before["memory.available"].available == 50 << 20
    assert after["memory.available"].available == 150 << 20
    assert usage.amounts == {"memory": 100 << 20}
    assert usage.volumes == {"data": 1 << 30}
    assert usage.containers == {"c1": 1 << 20}


def test_shutdown_is_announced_once_for_all() -> None:
    """A kubelet that asks later hears of the shutdown too."""
    recorder = Recorder(lambda: 0.0)

    async def scenario() -> None:
        machine = Machine(recorder, 1 << 30, lambda _: True, MemoryDisk())
        machine.shut_down()
        await machine.announced()
        machine.release()

    asyncio.run(scenario())

    reported = [item.fields["what"] for item in recorder.records if isinstance(item, Item)]
    assert reported == ["the node shuts down", "nothing holds the shutdown up"]


def test_configuration_in_the_words_of_the_api() -> None:
    """Only what was set is recorded, with durations as the API writes them."""
    settings = Settings(
        eviction_hard={"memory.available": "1Gi"},
        eviction_soft={"memory.available": "2Gi"},
        eviction_soft_grace_period={"memory.available": 90},
        shutdown_grace_period=30,
        shutdown_grace_period_by_pod_priority=((0, 10),),
    )

    assert configuration(Settings(node_name="other")) == {}
    assert configuration(settings) == {
        "evictionHard": {"memory.available": "1Gi"},
        "evictionSoft": {"memory.available": "2Gi"},
        "evictionSoftGracePeriod": {"memory.available": "90s"},
        "shutdownGracePeriod": "30s",
        "shutdownGracePeriodByPodPriority": [{"priority": 0, "shutdownGracePeriodSeconds": 10}],
    }
    assert allocatable(Settings(cpu_millicores=500))["cpu"] == "500m"


def test_real_machine_cannot_be_made_to_suffer(tmp_path: Path) -> None:
    """Where nobody has a hand on the machine, that is not possible; files can be left there."""
    machine = RealMachine(tmp_path)
    with pytest.raises(NotPossibleError, match="nodefs"):
        machine.press("nodefs.available", "1Mi")
    with pytest.raises(NotPossibleError):
        machine.relieve("memory.available")
    with pytest.raises(NotPossibleError, match="memory"):
        machine.use("uid", {"memory": "1Gi"})
    with pytest.raises(NotPossibleError, match="shut down"):
        machine.shut_down()
    machine.leave_file("/var/log/pods/a/7.log")

    assert (tmp_path / "var/log/pods/a/7.log").is_file()
