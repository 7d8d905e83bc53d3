"""One run of the process: from the first contact with the runtime until a signal ends it."""

import asyncio
import os
import signal
from collections.abc import Generator
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Any, cast

from cri_api.v1 import api_pb2 as cri

from kubelet_reference.cri.client import CriClient
from kubelet_reference.kubelet.kubelet import Kubelet
from kubelet_reference.server.configuration import Configuration
from kubelet_reference.server.host.channel import Channel, Service
from kubelet_reference.server.host.disk import OsDisk
from kubelet_reference.server.host.event_log import LoggedEvents
from kubelet_reference.server.host.manifest_url import FetchedManifests
from kubelet_reference.server.host.node_stats import MeasuredNode, OsMachine
from kubelet_reference.server.host.pod_network import RealPodNetwork
from kubelet_reference.server.host.system_clock import WallClock, wall_chance
from kubelet_reference.server.loading import with_gates
from kubelet_reference.server.lock import locked
from kubelet_reference.server.log import LOG
from kubelet_reference.server.runtime_check import FIRST_ANSWER_SECONDS, check_images, check_runtime
from kubelet_reference.server.server import served
from kubelet_reference.util.ports import ImageService, Ports, RuntimeService
from kubelet_reference.util.settings import Settings
from kubelet_reference.util.versions import Behaviour

_SIGNALS = (signal.SIGTERM, signal.SIGINT)
_ENDED_AT_ONCE = 130


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the command line and the configuration together ask for."""

    configuration: Configuration
    behaviour: Behaviour
    node_name: str
    root_dir: str


def settings_of(wanted: Wanted) -> Settings:
    """The core's settings; what the machine has is what the node offers."""
    return replace(
        wanted.configuration,
        node_name=wanted.node_name,
        with_api_server=False,
        root_dir=wanted.root_dir,
        cpu_millicores=1000 * (os.cpu_count() or 1),
        memory_bytes=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
    )


async def live(wanted: Wanted) -> None:
    """Run until a signal; containers go on running. A second signal ends the process at once.

    Raises:
        BadInputError: The node is not fit for a kubelet: no runtime, a port in use, a folder in use.
        ExceptionGroup: A mistake in the kubelet.
    """
    with _until_signal() as asked:
        async with AsyncExitStack() as stack:
            stack.enter_context(locked(wanted.root_dir))
            try:
                kubelet = await _ready(wanted, stack)
            except asyncio.CancelledError:
                if asked.is_set():
                    return
                raise
            await _run(kubelet, asked)


@contextmanager
def _until_signal() -> Generator[asyncio.Event]:
    """An event for the first signal, which also cancels whatever the task waits for at that moment."""
    loop = asyncio.get_running_loop()
    task = cast("asyncio.Task[Any]", asyncio.current_task())
    asked = asyncio.Event()

    def arrived(number: signal.Signals) -> None:
        if asked.is_set():
            os._exit(_ENDED_AT_ONCE)
        LOG.info("%s: ending, containers go on running; a second signal ends at once", number.name)
        asked.set()
        task.cancel()

    for number in _SIGNALS:
        loop.add_signal_handler(number, arrived, number)
    try:
        yield asked
    finally:
        for number in _SIGNALS:
            loop.remove_signal_handler(number)


async def _ready(wanted: Wanted, stack: AsyncExitStack) -> Kubelet:
    """A kubelet that has seen its runtime and is served over HTTP."""
    given = wanted.configuration
    channel = await stack.enter_async_context(Channel(given.runtime_socket))
    images_channel = channel
    if given.image_socket not in {"", given.runtime_socket}:
        images_channel = await stack.enter_async_context(Channel(given.image_socket))
    runtime = cast("RuntimeService", Service(channel, "RuntimeService"))
    images = cast("ImageService", Service(images_channel, "ImageService"))
    seconds = min(FIRST_ANSWER_SECONDS, given.runtime_request_timeout)
    version = await check_runtime(channel, runtime, seconds)
    await check_images(images_channel, images, seconds)
    kubelet = _kubelet(wanted, runtime, images)
    await stack.enter_async_context(served(kubelet, given))
    _tell(wanted, version)
    return kubelet


def _kubelet(wanted: Wanted, runtime: RuntimeService, images: ImageService) -> Kubelet:
    clock = WallClock()
    network = RealPodNetwork()
    headers = wanted.configuration.static_pod_url_header
    settings = settings_of(wanted)
    ports = Ports(
        clock=clock,
        random=wall_chance(),
        runtime=runtime,
        images=images,
        events=LoggedEvents(),
        # Pods write into these two, and must not lead the kubelet out of them.
        disk=OsDisk(clock, (wanted.root_dir, wanted.configuration.pod_logs_dir)),
        url=FetchedManifests(headers),
        http=network,
        network=network,
        stats=MeasuredNode(CriClient(runtime, images, settings), OsMachine(), wanted.root_dir),
    )
    behaviour = with_gates(wanted.behaviour, wanted.configuration.feature_gates)
    return Kubelet(ports, settings, behaviour)


def _tell(wanted: Wanted, version: cri.VersionResponse) -> None:
    given = wanted.configuration
    sources = [source for source in (given.static_pod_path, given.static_pod_url) if source]
    LOG.info(
        "Started kubelet-reference as node %s, Kubernetes 1.%d, on %s %s at unix://%s, pods from %s",
        wanted.node_name,
        wanted.behaviour.minor,
        version.runtime_name,
        version.runtime_version,
        given.runtime_socket,
        " and ".join(sources) or "nowhere: name a folder with --pod-manifest-path",
    )


async def _run(kubelet: Kubelet, asked: asyncio.Event) -> None:
    """Run the kubelet until the signal, or until something fails."""
    running = asyncio.create_task(kubelet.run(), name="kubelet")
    try:
        await asyncio.wait({running})
    except asyncio.CancelledError:
        if not asked.is_set():
            running.cancel()
            raise
    await kubelet.stop()
    await running
    LOG.info("Ended")
