"""Where the volumes of a pod are on the disk: in the kubelet's own folders, by pod UID.

    <root>/pods/<uid>/volumes/kubernetes.io~<plugin>/<volume>
    <root>/pods/<uid>/volume-subpaths/<volume>/<container>/<number of the mount>

After a restart a kubelet knows from there what its earlier process has made.
"""

from enum import StrEnum

from lightkube.models.core_v1 import Pod, Volume

from kubelet_reference.api import pods
from kubelet_reference.util.paths import part_of_path


class SetUpError(Exception):
    """A volume cannot be made now; the text says why, in the kubelet's words."""


class Plugin(StrEnum):
    """A kind of volume, by the name of its plugin in the kubelet."""

    EMPTY_DIR = "empty-dir"
    HOST_PATH = "host-path"
    CONFIG_MAP = "configmap"
    SECRET = "secret"  # noqa: S105 - a kind of volume
    DOWNWARD_API = "downward-api"
    PROJECTED = "projected"


FOLDER_MODE = 0o755
"""The permissions of folders that the kubelet makes for containers."""
SHOWS_CONTENT = frozenset({Plugin.CONFIG_MAP, Plugin.SECRET, Plugin.DOWNWARD_API, Plugin.PROJECTED})
"""What shows objects or the pod itself: it is kept up to date, and no container may write to it."""
ON_TMPFS = frozenset({Plugin.SECRET, Plugin.DOWNWARD_API, Plugin.PROJECTED})
"""What is never written to a real disk."""
_SOURCES = {
    "emptyDir": Plugin.EMPTY_DIR,
    "hostPath": Plugin.HOST_PATH,
    "configMap": Plugin.CONFIG_MAP,
    "secret": Plugin.SECRET,
    "downwardAPI": Plugin.DOWNWARD_API,
    "projected": Plugin.PROJECTED,
}
FOLDERS = frozenset(f"kubernetes.io~{plugin}" for plugin in Plugin)
"""The folders, one for each plugin, in which volumes are known to be ours."""


def plugin_of(volume: Volume) -> Plugin:
    """What makes the volume; raises `SetUpError` if nothing here can. Without a source it is an emptyDir."""
    for source, plugin in _SOURCES.items():
        if getattr(volume, source) is not None:
            return plugin
    if volume != Volume(name=volume.name):
        raise SetUpError(f"volume {volume.name} is of a kind that is not supported by this kubelet")
    return Plugin.EMPTY_DIR


def used_volumes(pod: Pod) -> list[Volume]:
    """The volumes that a container of the pod mounts; the pod does not wait for others."""
    used = {mount.name for one in pods.all_containers(pod) for mount in one.volumeMounts or ()}
    # Images are the runtime's to mount.
    return [one for one in pods.spec(pod).volumes or () if one.name in used and one.image is None]


def pod_folder(root_dir: str, uid: str) -> str:
    """The folder of a pod; raises `UnsafeNameError` for a UID that is no name of a folder."""
    return f"{root_dir}/pods/{part_of_path('the pod UID', uid)}"


def volumes_folder(root_dir: str, uid: str) -> str:
    """The folder of a pod's volumes."""
    return f"{pod_folder(root_dir, uid)}/volumes"


def volume_path(root_dir: str, pod: Pod, volume: Volume) -> str:
    """The volume's path; raises `SetUpError`, and `UnsafeNameError` for a name that leads elsewhere."""
    if volume.hostPath is not None:
        return volume.hostPath.path
    name = part_of_path("the volume name", volume.name)
    return f"{volumes_folder(root_dir, pods.uid(pod))}/kubernetes.io~{plugin_of(volume)}/{name}"


def subpaths_folder(root_dir: str, uid: str) -> str:
    """The folder in which parts of a pod's volumes are shown."""
    return f"{pod_folder(root_dir, uid)}/volume-subpaths"


def subpath_target(root_dir: str, pod: Pod, volume: str, container: str, index: int) -> str:
    """Where the part of a volume is shown that a container's mount of this number wants."""
    folder = subpaths_folder(root_dir, pods.uid(pod))
    of_volume = part_of_path("the volume name", volume)
    of_container = part_of_path("the container name", container)
    return f"{folder}/{of_volume}/{of_container}/{index}"
