"""The reference kubelet in this process, with an API server, a manifest folder and a URL, on wall time."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Self, cast

from kubelet_conformance.targets.controls import MANIFEST_FOLDER
from kubelet_conformance.targets.cri_endpoint import channel_to, services_at
from kubelet_conformance.targets.in_process.api_server import (
    KubeletApi,
    RecordedApi,
    RecordedEvents,
    node_object,
)
from kubelet_conformance.targets.in_process.kubelet import InProcessKubelet
from kubelet_conformance.targets.in_process.machine import allocatable, configuration
from kubelet_conformance.targets.in_process.manifests import RootedDisk, WrittenManifests
from kubelet_conformance.targets.process.kubelet_paths import CONFIGURATION
from kubelet_conformance.targets.process.manifest_api import unique_uids
from kubelet_conformance.trace.format.header import Channels
from kubelet_conformance.trace.format.recorder import Recorder
from kubelet_fakes.api import ApiCore
from kubelet_fakes.web import MemoryUrl
from kubelet_reference.kubelet.kubelet import Kubelet
from kubelet_reference.kubelet.parts import Parts
from kubelet_reference.server.host.clock import SeededRandom
from kubelet_reference.server.host.disk import OsDisk
from kubelet_reference.server.host.pod_network import RealPodNetwork
from kubelet_reference.util.ports import Clock, FetchError, ImageService, PodEvent, Ports, RuntimeService
from kubelet_reference.util.settings import Settings
from kubelet_reference.util.versions import Behaviour


class ReferenceNode:
    """The kubelet's side of a target, for as long as its context is open; the kubelet is not started yet.

    Args:
        parts: what the kubelet is made of.
        behaviour: of which version it is.
        seed: of its chance.
        folder: empty and private to it.
        runtime: the socket that the kubelet is to connect to.
        recorder: takes desired pods and observations.
        clock: the time it lives in.
        node_name: the node's name.
        settings: what a scenario sets of the kubelet's configuration.
        know: called for each pod that an event is about, with its UID and its namespace.
    """

    def __init__(  # noqa: PLR0913 - a kubelet, its places, and what it is given
        self,
        *,
        parts: Parts,
        behaviour: Behaviour,
        seed: int,
        folder: Path,
        runtime: Path,
        recorder: Recorder,
        clock: Clock,
        node_name: str,
        settings: Mapping[str, object],
        know: Callable[[str, str], None],
    ) -> None:
        self._parts = parts
        self._behaviour = behaviour
        self._seed = seed
        self._runtime = runtime
        self._clock = clock
        self._disk = OsDisk(clock)
        self._url = MemoryUrl(FetchError)
        self._settings = _settings(folder, node_name, settings)
        self._events = _Events(recorder, know)
        self._lives = 0
        core = ApiCore(clock.wall_ns, unique_uids())
        recorded = RecordedApi(core, recorder, node_name)
        self._kubelet_api = KubeletApi(recorded.connection)
        self.api = recorded.world
        self.api.put("Node", node_object(node_name))
        path = self._settings.static_pod_path.removeprefix(str(folder))
        disk = cast("Any", RootedDisk(self._disk, folder))
        self.manifests = WrittenManifests(disk, self._url, recorder, path)
        self.kubelet = InProcessKubelet(self._new_kubelet, recorder)
        self.feature_gates = dict(self._settings.feature_gates)
        self.configuration = configuration(self._settings)
        self.allocatable = allocatable(self._settings)
        self.channels = Channels(cri="full", pods="sent", api="full", events="full")
        self.standalone = False

    async def __aenter__(self) -> Self:
        """Connect to the runtime, in no hurry: a kubelet waits for its runtime too."""
        self._channel = channel_to(self._runtime)
        self._services = services_at(self._channel)
        return self

    async def __aexit__(self, *_: object) -> None:
        """Kill it if it still runs; raises what made it end by itself, if anything did."""
        try:
            await self.kubelet.kill()
        finally:
            await self._channel.close()

    def _new_kubelet(self) -> Kubelet:
        self._lives += 1
        network = RealPodNetwork()
        ports = Ports(
            clock=self._clock,
            random=SeededRandom(self._seed + self._lives),
            runtime=cast("RuntimeService", self._services),
            images=cast("ImageService", self._services),
            api=self._kubelet_api,
            events=self._events,
            disk=self._disk,
            url=self._url,
            http=network,
            network=network,
        )
        return Kubelet(ports, self._settings, self._behaviour, self._parts)


class _Events(RecordedEvents):
    """Events on the record; `know` is called first, with the pod that each is about."""

    def __init__(self, recorder: Recorder, know: Callable[[str, str], None]) -> None:
        super().__init__(recorder)
        self._know = know

    def emit(self, event: PodEvent) -> None:
        """Take the event."""
        metadata = event.pod.metadata
        if metadata is not None:
            self._know(metadata.uid or "", metadata.namespace or "")
        super().emit(event)


def _settings(folder: Path, node_name: str, given: Mapping[str, object]) -> Settings:
    """The kubelet's configuration, with everything that it writes in the private folder."""
    changes: dict[str, Any] = dict(given)
    settings = replace(Settings(node_name=node_name, static_pod_path=MANIFEST_FOLDER), **changes)
    path = settings.static_pod_path
    return replace(
        settings,
        static_pod_path=f"{folder}{path}" if path.startswith(CONFIGURATION) else path,
        root_dir=f"{folder}/kubelet",
        pod_logs_dir=f"{folder}/pods",
    )
