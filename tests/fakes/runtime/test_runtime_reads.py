"""What a runtime reports when it is read: unchanged replies, statistics, details, refusals."""

import pytest
from cri_api.v1 import api_pb2 as cri
from cri_node import Node


async def test_unchanged_replies_are_the_same_message(node: Node) -> None:
    """A list is answered by the same message while nothing changes, and never altered."""
    container = await node.running("exit 0 5")
    both = cri.ListContainersRequest(), cri.ListContainersRequest(filter=cri.ContainerFilter())
    lists = [await node.runtime.ListContainers(each) for each in both]
    sandboxes = [await node.runtime.ListPodSandbox(cri.ListPodSandboxRequest()) for _ in range(2)]
    status = await node.status(container)
    generation = node.runtime.core.store.generation
    await node.clock.sleep(5)
    later = await node.runtime.ListContainers(both[0])

    assert lists[0] is lists[1]
    assert sandboxes[0] is sandboxes[1]
    assert later is not lists[0]
    assert (lists[0].containers[0].state, later.containers[0].state) == (1, 2)
    assert (status.state, (await node.status(container)).state) == (1, 2)
    assert node.runtime.core.store.generation > generation


async def test_file_system_and_statistics(node: Node) -> None:
    """What a kubelet reads for its summary is whole: the use of the image file system, attributes, CPU."""
    container = await node.running()
    await node.clock.sleep(10)
    (usage,) = (await node.runtime.ImageFsInfo(cri.ImageFsInfoRequest())).image_filesystems
    (stats,) = (await node.runtime.ListContainerStats(cri.ListContainerStatsRequest())).stats
    request = cri.ContainerStatsRequest(container_id=container)
    (pod,) = (await node.runtime.ListPodSandboxStats(cri.ListPodSandboxStatsRequest())).stats

    assert usage.used_bytes.value > 0
    assert usage.fs_id.mountpoint == "/"
    assert (stats.attributes.id, stats.attributes.metadata.name) == (container, "c1")
    assert stats.cpu.usage_core_nano_seconds.value == pytest.approx(100_000_000, abs=10)
    assert (await node.runtime.ContainerStats(request)).stats == stats
    assert pod.linux.containers[0] == stats


async def test_verbose_statuses_have_details(node: Node) -> None:
    """A verbose status has what a person asks for, and is otherwise the same."""
    container = await node.running("run stopdelay=1")
    plain = cri.ContainerStatusRequest(container_id=container)
    verbose = cri.ContainerStatusRequest(container_id=container, verbose=True)
    reply = await node.runtime.ContainerStatus(verbose)

    assert "stopdelay=1" in reply.info["info"]
    assert reply.status == (await node.runtime.ContainerStatus(plain)).status
