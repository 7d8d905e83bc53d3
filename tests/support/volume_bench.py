"""Volumes by themselves: on a disk in memory or on a real one, with a small API server, on virtual time."""

from collections.abc import Mapping
from typing import Any

import msgspec
from config_doubles import Events, SmallApi, a_pod
from cri_api.v1 import api_pb2 as cri
from fixed_random import FixedRandom
from lightkube.models.core_v1 import ConfigMap, Pod, Secret

from kubelet_fakes.disk import MemoryDisk
from kubelet_reference.api import pods
from kubelet_reference.config.defaults import with_defaults
from kubelet_reference.kuberuntime.pod_files import PodFiles
from kubelet_reference.server.host.clock import LoopClock
from kubelet_reference.util.ports import Disk
from kubelet_reference.util.settings import Settings
from kubelet_reference.util.versions import Behaviour
from kubelet_reference.volumemanager import Volumes

Json = dict[str, Any]
ROOT = "/var/lib/kubelet"
LOGS = "/var/log/pods"
EPOCH_NS = 1_767_225_600 * 10**9
"""2026-01-01T00:00:00Z, when each bench begins."""


def config_map(**data: str) -> ConfigMap:
    """A config map."""
    return msgspec.convert({"data": data}, ConfigMap)


def secret(**data: str) -> Secret:
    """A secret; the values are what the API gives, base64."""
    return msgspec.convert({"data": data}, Secret)


def pod_with(*volumes: Json, mounts: list[Json] | None = None, uid: str = "u1", **metadata: Any) -> Pod:
    """A pod whose container mounts all of these volumes; `mounts` says it otherwise."""
    shown = [{"name": volume["name"], "mountPath": f"/{volume['name']}"} for volume in volumes]
    container = {"name": "c1", "image": "img:1", "volumeMounts": shown if mounts is None else mounts}
    given = with_defaults({"spec": {"volumes": list(volumes)}})["spec"]["volumes"]
    return a_pod(uid=uid, spec={"volumes": given, "containers": [container]}, **metadata)


class VolumeBench:
    """Volumes, and those they work with; make it in a running loop, or where no time is needed."""

    def __init__(self, disk: Disk | None = None, root: str = ROOT, *, api: bool = True) -> None:
        self.disk = disk or MemoryDisk()
        self.api = SmallApi()
        self.events = Events()
        self.clock = LoopClock(EPOCH_NS)
        self.settings = Settings(root_dir=root, pod_logs_dir=f"{root}/logs" if root != ROOT else LOGS)
        self._server = self.api if api else None
        self.volumes = self.new_life()
        self.files = PodFiles(self.disk, FixedRandom(), self.settings, Behaviour.of("1.32"))

    def new_life(self) -> Volumes:
        """The volumes of a kubelet that has just started."""
        self.volumes = Volumes(self._server, self.disk, self.clock, self.events.recorder, self.settings)
        return self.volumes

    def path(self, kind: str, name: str = "v", uid: str = "u1") -> str:
        """Where a volume lies."""
        return f"{self.settings.root_dir}/pods/{uid}/volumes/kubernetes.io~{kind}/{name}"

    def reported(self) -> list[str]:
        """The texts of the events so far."""
        return [event.message for event in self.events.emitted]

    def mounts(self, pod: Pod, environment: Mapping[str, str] | None = None) -> list[cri.Mount]:
        """What the pod's first container is given of its volumes."""
        container = pods.containers(pod)[0]
        found = self.files.mounts(pod, container, (), environment or {})
        return [mount for mount in found if mount.container_path != container.terminationMessagePath]
