"""What of a pod's volumes a container is given."""

import logging
from collections.abc import Iterator, Mapping

from cri_api.v1 import api_pb2 as cri
from lightkube.models.core_v1 import Pod, VolumeMount

from kubelet_reference.api import pods
from kubelet_reference.api.expansion import ConfigError, expand, references
from kubelet_reference.api.pods import AnyContainer
from kubelet_reference.util.ports import Disk
from kubelet_reference.util.settings import Settings
from kubelet_reference.volumemanager.paths import SHOWS_CONTENT, plugin_of, subpath_target, volume_path

_PROPAGATION = {
    "HostToContainer": cri.PROPAGATION_HOST_TO_CONTAINER,
    "Bidirectional": cri.PROPAGATION_BIDIRECTIONAL,
}

_log = logging.getLogger("kubelet_reference.volumes")


class VolumeMounts:
    """Turns the mounts of a container into those that a runtime is asked for."""

    def __init__(self, disk: Disk, settings: Settings, *, with_images: bool = False) -> None:
        self._disk = disk
        self._root = settings.root_dir
        self._with_images = with_images

    def of(self, pod: Pod, container: AnyContainer, environment: Mapping[str, str]) -> Iterator[cri.Mount]:
        """Each mount of the container, in order; raises `ConfigError`, and `OSError`.

        Images are left out where this kubelet mounts them: the runtime does that.
        """
        volumes = pods.spec(pod).volumes or ()
        shown = {one.name for one in volumes if one.image is not None} if self._with_images else set[str]()
        for index, wanted in enumerate(container.volumeMounts or ()):
            if wanted.name in shown:
                continue
            yield self._mount(pod, container, index, wanted, environment)

    def _mount(
        self,
        pod: Pod,
        container: AnyContainer,
        index: int,
        wanted: VolumeMount,
        environment: Mapping[str, str],
    ) -> cri.Mount:
        volume = next((one for one in pods.spec(pod).volumes or () if one.name == wanted.name), None)
        if volume is None:
            raise ConfigError(
                f'cannot find volume "{wanted.name}" to mount into container "{container.name}"'
            )
        path, plugin = volume_path(self._root, pod, volume), plugin_of(volume)
        part = _part(wanted, environment)
        if part:
            target = subpath_target(self._root, pod, wanted.name, container.name, index)
            path = self._bound(path, part, target, wanted.name, container.name)
        return cri.Mount(
            container_path=wanted.mountPath if wanted.mountPath.startswith("/") else f"/{wanted.mountPath}",
            host_path=path,
            readonly=bool(wanted.readOnly) or plugin in SHOWS_CONTENT,
            propagation=_PROPAGATION.get(wanted.mountPropagation or "", cri.PROPAGATION_PRIVATE),
        )

    def _bound(self, volume: str, part: str, target: str, name: str, container: str) -> str:
        """Where the part of a volume can be mounted from, safe from links that a pod made in it.

        The pod's event does not say why it fails: that could reveal the host's files.
        """
        try:
            return self._disk.bind(volume, part, target)
        except OSError as error:
            _log.warning("subPath %r of %s cannot be used: %s", part, volume, error)
            text = f'failed to prepare subPath for volumeMount "{name}" of container "{container}"'
            raise ConfigError(text) from error


def _part(wanted: VolumeMount, environment: Mapping[str, str]) -> str:
    """The part of the volume that is wanted, "" for all; raises `ConfigError` for one that leads out."""
    part = wanted.subPath or ""
    if wanted.subPathExpr:
        unknown = sorted({name for name in references(wanted.subPathExpr) if not environment.get(name)})
        if unknown:
            raise ConfigError(f"missing value for {', '.join(unknown)}")
        part = expand(wanted.subPathExpr, environment)
    if part.startswith("/"):
        raise ConfigError(f"error SubPath `{part}` must not be an absolute path")
    if ".." in part.split("/"):
        raise ConfigError(f"unable to provision SubPath `{part}`: must not contain '..'")
    return part
