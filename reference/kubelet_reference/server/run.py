"""One run of the process: from the first contact with the runtime until a signal ends it."""

import asyncio
import os
import signal
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NoReturn, TypeAlias, cast

from cri_api.v1 import api_pb2 as cri

from kubelet_reference.api.quantities import milli, whole
from kubelet_reference.kubelet.kubelet import Kubelet
from kubelet_reference.server.api_client.api_link import ApiLink, linked
from kubelet_reference.server.api_client.kubeconfig import Access
from kubelet_reference.server.api_client.node_object import NodeFacts
from kubelet_reference.server.configuration import Configuration
from kubelet_reference.server.host.channel import Channel
from kubelet_reference.server.host.channel import Service as CriService
from kubelet_reference.server.host.disk import OsDisk
from kubelet_reference.server.host.event_log import LoggedEvents
from kubelet_reference.server.host.manifest_url import FetchedManifests
from kubelet_reference.server.host.node_address import node_address
from kubelet_reference.server.host.node_stats import MeasuredNode, OsMachine, StatsClient
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

Service: TypeAlias = Callable[[], Coroutine[Any, Any, NoReturn]]
"""What runs beside the kubelet until it is cancelled."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the command line and the configuration together ask for."""

    configuration: Configuration
    behaviour: Behaviour
    node_name: str
    root_dir: str
    access: Access | None = None
    """To an API server, None where there is none."""


def settings_of(wanted: Wanted) -> Settings:
    """The core's settings; what the machine has and is not reserved is what the node offers."""
    access, reserved = wanted.access, wanted.configuration.system_reserved
    memory_bytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return replace(
        wanted.configuration,
        node_name=wanted.node_name,
        node_ip=node_address(access.server) if access is not None else wanted.configuration.node_ip,
        with_api_server=access is not None,
        root_dir=wanted.root_dir,
        cpu_millicores=1000 * (os.cpu_count() or 1) - milli(reserved.get("cpu", "0")),
        memory_bytes=memory_bytes - whole(reserved.get("memory", "0")),
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
                kubelet, services = await _ready(wanted, stack)
            except asyncio.CancelledError:
                if asked.is_set():
                    return
                raise
            await _run(kubelet, services, asked)


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


async def _ready(wanted: Wanted, stack: AsyncExitStack) -> tuple[Kubelet, list[Service]]:
    """A kubelet that has seen its runtime and is served over HTTP, and what is to run beside it."""
    given = wanted.configuration
    channel = await stack.enter_async_context(Channel(given.runtime_socket))
    images_channel = channel
    if given.image_socket not in {"", given.runtime_socket}:
        images_channel = await stack.enter_async_context(Channel(given.image_socket))
    runtime = cast("RuntimeService", CriService(channel, "RuntimeService"))
    images = cast("ImageService", CriService(images_channel, "ImageService"))
    seconds = min(FIRST_ANSWER_SECONDS, given.runtime_request_timeout)
    version = await check_runtime(channel, runtime, seconds)
    await check_images(images_channel, images, seconds)
    settings = settings_of(wanted)
    ports = _ports(wanted, settings, runtime, images)
    link = None
    if wanted.access is not None:
        link = await stack.enter_async_context(_linked(wanted, wanted.access, ports))
        ports = replace(ports, api=link.server, tokens=link.tokens, events=link.events)
    behaviour = with_gates(wanted.behaviour, given.feature_gates)
    kubelet = Kubelet(ports, settings, behaviour)
    await stack.enter_async_context(served(kubelet, given))
    _tell(wanted, version)
    return kubelet, [] if link is None else [partial(link.run, kubelet, _facts(wanted, settings, version))]


@asynccontextmanager
async def _linked(wanted: Wanted, access: Access, ports: Ports) -> AsyncGenerator[ApiLink]:
    """The link to an API server that has answered, or need not yet; raises `BadInputError`."""
    async with linked(access, ports.clock, ports.random, wanted.node_name, ports.events) as link:
        await link.check(wanted.node_name, may_wait=bool(_manifests(wanted)))
        yield link


def _facts(wanted: Wanted, settings: Settings, version: cri.VersionResponse) -> NodeFacts:
    return NodeFacts(
        name=wanted.node_name,
        ip=settings.node_ip,
        minor=wanted.behaviour.minor,
        runtime=f"{version.runtime_name}://{version.runtime_version}",
        port=wanted.configuration.port,
        cpu_millicores=settings.cpu_millicores,
        memory_bytes=settings.memory_bytes,
        reserved=wanted.configuration.system_reserved,
        max_pods=settings.max_pods,
        root_dir=wanted.root_dir,
    )


def _ports(wanted: Wanted, settings: Settings, runtime: RuntimeService, images: ImageService) -> Ports:
    """The world of this kubelet, without an API server."""
    clock = WallClock()
    network = RealPodNetwork()
    headers = wanted.configuration.static_pod_url_header
    return Ports(
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
        stats=MeasuredNode(StatsClient(runtime, images, settings), OsMachine(), wanted.root_dir),
    )


def _manifests(wanted: Wanted) -> list[str]:
    """Where manifests come from."""
    given = wanted.configuration
    return [source for source in (given.static_pod_path, given.static_pod_url) if source]


def _tell(wanted: Wanted, version: cri.VersionResponse) -> None:
    given = wanted.configuration
    sources = [*_manifests(wanted), *([wanted.access.origin] if wanted.access is not None else [])]
    LOG.info(
        "Started kubelet-reference as node %s, Kubernetes 1.%d, on %s %s at unix://%s, pods from %s",
        wanted.node_name,
        wanted.behaviour.minor,
        version.runtime_name,
        version.runtime_version,
        given.runtime_socket,
        " and ".join(sources) or "nowhere: name a folder with --pod-manifest-path",
    )


async def _run(kubelet: Kubelet, services: Sequence[Service], asked: asyncio.Event) -> None:
    """Run the kubelet, and services beside it, until the signal, or until something fails."""
    running = asyncio.create_task(kubelet.run(), name="kubelet")
    beside = [asyncio.create_task(service()) for service in services]
    try:
        await asyncio.wait({running, *beside}, return_when=asyncio.FIRST_COMPLETED)
    except asyncio.CancelledError:
        if not asked.is_set():
            running.cancel()
            raise
    await kubelet.stop()
    for task in beside:
        task.cancel()
    for result in await asyncio.gather(running, *beside, return_exceptions=True):
        if isinstance(result, Exception):
            raise result
    LOG.info("Ended")
