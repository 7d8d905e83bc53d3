"""A kubelet in a process, with the folder it reads, the URL it reads and what is seen of its pods."""

import asyncio
import contextlib
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Self, cast

import msgspec

from kubelet_conformance.contract.applicability import STATIC_GATE, is_on, parse_version
from kubelet_conformance.targets.choice import TargetError
from kubelet_conformance.targets.controls import MANIFEST_FOLDER, NotPossibleError
from kubelet_conformance.targets.in_process.api_server import WorldApi
from kubelet_conformance.targets.in_process.manifests import RootedDisk, WrittenManifests
from kubelet_conformance.targets.kubelet_target.target import KubeletTarget
from kubelet_conformance.targets.process.cleanup import clear
from kubelet_conformance.targets.process.kubelet import ProcessKubelet
from kubelet_conformance.targets.process.kubelet_paths import (
    ENTRIES,
    Places,
    configuration,
    flags,
    flags_as_fields,
    has_api_server,
)
from kubelet_conformance.targets.process.machine.ports import free_ports
from kubelet_conformance.targets.process.manifest_api import FilesAtUrl, FolderApi
from kubelet_conformance.targets.process.manifest_server import ManifestServer
from kubelet_conformance.targets.process.mount_namespace import MountNamespace
from kubelet_conformance.targets.process.pod_files import PodFiles
from kubelet_conformance.targets.process.pod_uids import PodUids
from kubelet_conformance.targets.process.pod_watch import LogEvents, PodWatch
from kubelet_conformance.targets.process.served_api import ServedApi
from kubelet_conformance.trace.format.header import Channels
from kubelet_conformance.trace.format.recorder import Recorder
from kubelet_reference.server.host.clock import LoopClock
from kubelet_reference.server.host.disk import OsDisk

_LOGS = "podLogsDir"
DRIVERS_SINCE = 1, 32
"""From this version on kubelets call the drivers of devices as `DraDriver` serves it."""


class ProcessNode:
    """The kubelet's side of a target, for as long as its context is open; the kubelet is not started yet.

    Args:
        target: the kubelet.
        folder: private to it; what it made there is removed in the end.
        runtime: the socket that the kubelet is to connect to.
        recorder: takes desired pods and observations.
        node_name: the node's name.
        settings: what a scenario sets of the kubelet's configuration.
        then: the kubelet that takes turns with it, if one does.
        isolated: in a mount namespace where that is possible; the runtime sees no mounts of the kubelet.

    Raises:
        NotPossibleError: The settings cannot be set in this kubelet.
    """

    def __init__(  # noqa: PLR0913, PLR0917 - a kubelet, its places, and what it is given
        self,
        target: KubeletTarget,
        folder: Path,
        runtime: Path,
        recorder: Recorder,
        node_name: str = "node-1",
        settings: Mapping[str, object] | None = None,
        *,
        then: KubeletTarget | None = None,
        isolated: bool = False,
    ) -> None:
        given = flags(settings or {})
        both = (target,) if then is None else (target, then)
        self._targets = [replace(each, command=(*each.command, *given)) for each in both]
        self._target = self._targets[0]
        self._folder = folder
        self._runtime = runtime
        self._recorder = recorder
        self._node_name = node_name
        self._settings = settings or {}
        self.configuration: dict[str, Any] | None = None
        """What the kubelet is started with, None where there is no such file."""
        self.root = Path("/")
        """Where this process finds the files that the kubelet sees."""
        self._server = ManifestServer()
        self._namespace = MountNamespace(folder / "hosts", node_name) if isolated else None
        self._watching: asyncio.Task[None] | None = None
        self.standalone = target.pods != "api" or not has_api_server(self._settings)
        """It has no API server."""
        self._version = max(parse_version(each.kubernetes) for each in both)
        self._served = None if self.standalone else ServedApi(recorder, node_name, self._version)

    @property
    def channels(self) -> Channels:
        """What its record can be trusted for, given that all calls of the runtime are recorded."""
        if not self.standalone:
            return Channels(cri="full", pods="sent", api="full", events="full")
        can = self._target.capabilities
        return Channels(
            cri="full",
            pods="sent",
            api="served" if "statuses" in can else "none",
            events="limited" if "events" in can else "none",
        )

    @property
    def allocatable(self) -> dict[str, str] | None:
        """What the node has for its pods, None where that is not known."""
        return None if self._served is None else self._served.allocatable

    @property
    def kubelet_root(self) -> Path:
        """The kubelet's root folder."""
        return self._places.root

    @property
    def has_devices(self) -> bool:
        """The kubelet prepares the devices of claims, by a driver that it can call (KEP-4381)."""
        is_able = self._version >= DRIVERS_SINCE and not self.standalone
        return is_able and is_on("DynamicResourceAllocation", self.feature_gates, self._version)

    @property
    def feature_gates(self) -> dict[str, bool]:
        """Those that are known to be set: by the target file, in the configuration, or by a scenario."""
        return {**self._target.feature_gates, **((self.configuration or {}).get("featureGates") or {})}

    async def __aenter__(self) -> Self:
        """Prepare its places."""
        await self._server.start()
        try:
            if self._served is not None:
                await self._served.__aenter__()
            self._prepare()
            if self._namespace is not None:
                self.kubelet.prefix = (await self._namespace.__aenter__()).prefix
                self.root = self._namespace.root
            self._files = PodFiles(self._recorder, self._places.root / "pods", self.root)
            await self._files.__aenter__()
        except BaseException:
            await self._close_servers()
            raise
        return self

    async def _close_servers(self) -> None:
        if self._served is not None:
            await self._served.__aexit__()
        await self._server.close()

    def _prepare(self) -> None:
        if "static_pod_url" in self._settings and "url" not in self._target.capabilities:
            raise NotPossibleError("a kubelet that reads manifests from a URL")
        places = self._places = Places(
            self._folder,
            self._node_name,
            self._runtime,
            self._target.kubernetes,
            free_ports(),
            self._server.url,
        )
        found = [configuration(each, places, self._settings) for each in self._targets]
        if not all(each is None or _LOGS in each for each in found):
            # Before 1.30 logs are where they are: the other kubelet is to find them there.
            found = [
                each and {name: value for name, value in each.items() if name != _LOGS} for each in found
            ]
        self.configuration = found[0] and {**found[0], **flags_as_fields(self._settings)}
        configs = ["" if each is None else msgspec.yaml.encode(each).decode() for each in found]
        path = str(self._settings.get("static_pod_path", MANIFEST_FOLDER))
        disk = RootedDisk(OsDisk(LoopClock(0)), self._folder, in_place=path)
        # The fakes' disk and URL name more methods than are used.
        self.manifests = WrittenManifests(cast("Any", disk), cast("Any", self._server), self._recorder, path)
        if self._served is None:
            self.kubelet = ProcessKubelet(self._targets, places, configs, self._recorder)
            self.api: FolderApi | WorldApi = self._folder_api(places)
            return
        self.api, kubeconfig = self._served.world, self._served.kubeconfig
        missing = self._served.missing
        self.kubelet = ProcessKubelet(self._targets, places, configs, self._recorder, kubeconfig, missing)

    def _folder_api(self, places: Places) -> FolderApi:
        """Pods as files; what the kubelet makes of them is seen in its list of pods and its log."""
        watch = PodWatch(places.filled(self._target.pod_list), self._recorder, lambda: self.kubelet.running)
        if "events" in self._target.capabilities:
            uids = PodUids(self._recorder, self._node_name)
            self.kubelet.on_line.append(LogEvents(self._recorder, uids.of_event).read_line)
        if "statuses" in self._target.capabilities:
            self._watching = asyncio.create_task(watch.run(), name="watching pods")
        may_refer = not is_on(STATIC_GATE, self.feature_gates, self._version)
        by_url = self._target.pods == "url"
        files = FilesAtUrl(self.manifests) if by_url else self.manifests
        source = "http" if by_url else "file"
        return FolderApi(files, self._node_name, watch.pod, may_refer=may_refer, source=source)

    def keep_log(self, path: Path) -> None:
        """Copy what the kubelet has written so far on standard output and standard error."""
        if self._places.log.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(self._places.log, path)

    async def __aexit__(self, *_: object) -> None:
        """Kill it if it still runs, and clear its folder; `TargetError` if something resists."""
        try:
            await self.kubelet.kill()
        finally:
            await self._files.__aexit__()
            if self._watching is not None:
                self._watching.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await self._watching
            if self._namespace is not None:
                await self._namespace.__aexit__()
            await self._close_servers()
            left = await asyncio.to_thread(clear, self._folder, ENTRIES)
        if left:
            raise TargetError("; ".join(left))
