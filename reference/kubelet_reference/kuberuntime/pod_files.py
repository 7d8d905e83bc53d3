"""The files of a pod on the node's disk: its hosts file, termination messages, logs and volumes."""

import logging
import posixpath
import re
import sys
from collections.abc import Iterable, Mapping

from cri_api.v1 import api_pb2 as cri
from lightkube.models.core_v1 import Pod

from kubelet_reference.api import pods
from kubelet_reference.api.go_text import text_of
from kubelet_reference.api.pods import AnyContainer
from kubelet_reference.kuberuntime.sandbox_config import hostname, log_directory
from kubelet_reference.util.paths import UnsafeNameError, is_below, part_of_path
from kubelet_reference.util.ports import Disk, Random
from kubelet_reference.util.settings import Settings
from kubelet_reference.util.versions import Behaviour
from kubelet_reference.volumemanager.mounts import VolumeMounts
from kubelet_reference.volumemanager.paths import pod_folder

HOSTS_PATH = "/etc/hosts"
_MARK = "# Kubernetes-managed hosts file"
_LOCAL = (
    "127.0.0.1\tlocalhost",
    "::1\tlocalhost ip6-localhost ip6-loopback",
    "fe00::0\tip6-localnet",
    "fe00::0\tip6-mcastprefix",
    "fe00::1\tip6-allnodes",
    "fe00::2\tip6-allrouters",
)
_LOG, _LOOSE_LOG = re.compile(r"^(\d+)\.log(?:\..*)?$", re.ASCII), re.compile(r"(\d+).log", re.ASCII)
_FOLDER_MODE, _HOSTS_MODE, _MESSAGE_MODE = 0o750, 0o644, 0o666

_log = logging.getLogger("kubelet_reference.pod_files")


def hosts_file(pod: Pod, pod_ips: tuple[str, ...]) -> str:
    """The hosts file of a pod with a network of its own: its name at each of its IPs, and its aliases."""
    lines = [f"{_MARK}.", *_LOCAL, *(f"{ip}\t{hostname(pod)}" for ip in pod_ips), *_aliases(pod)]
    return "\n".join(lines) + "\n"


def restarts_in_logs(names: Iterable[str], behaviour: Behaviour) -> int:
    """The restart count that follows from a container's log files: one more than the highest (RESTART-14).

    Other names are ignored. Up to 1.26 digits, any character and "log" anywhere in a name counted, and a
    number too large ended the search (RESTART-15).
    """
    count = 0
    for name in names:
        match = _LOG.match(name) if behaviour.log_names_are_anchored else _LOOSE_LOG.search(name)
        if match is None:
            continue
        number = int(match[1])
        if number <= sys.maxsize:
            count = max(count, number + 1)
        elif not behaviour.log_names_are_anchored:
            break
    return count


class PodFiles:
    """Makes and removes the files of pods and containers; errors of the disk are `OSError`."""

    def __init__(self, disk: Disk, random: Random, settings: Settings, behaviour: Behaviour) -> None:
        self._disk = disk
        self._random = random
        self._settings = settings
        self._behaviour = behaviour
        self._volumes = VolumeMounts(disk, settings, with_images=behaviour.mounts_images)

    def make_log_directory(self, pod: Pod) -> None:
        """The folder of the pod's logs, before its sandbox is asked for (SANDBOX-12)."""
        self._disk.make_folder(self._pod_logs(pod))

    def make_container_log_directory(self, pod: Pod, container: str) -> None:
        """The folder of a container's logs, before the container is made (START-07)."""
        self._disk.make_folder(self._logs(pod, container))

    def restarts_in_logs(self, pod: Pod, container: str) -> int:
        """The restart count by a container's logs; 0 if there are none, or they cannot be read."""
        try:
            names = self._disk.names(self._logs(pod, container))
        except OSError:
            return 0
        return restarts_in_logs(names, self._behaviour)

    def remove_log(self, path: str) -> None:
        """Remove a container's log and its rotated parts (GC-06), if it is where logs belong.

        The runtime says where: it cannot have other files removed.
        """
        if not is_below(path, self._settings.pod_logs_dir):
            _log.warning("%s is left: it is no log below %s", path, self._settings.pod_logs_dir)
            return
        folder, name = posixpath.split(posixpath.normpath(path))
        try:
            found = self._disk.names(folder)
        except FileNotFoundError:
            return
        for other in found:
            if other == name or other.startswith(f"{name}."):
                self._disk.remove(posixpath.join(folder, other))

    def log_directories(self) -> dict[str, str]:
        """The pods' log folders by path, each with the UID that its name ends with."""
        root = self._settings.pod_logs_dir
        try:
            names = self._disk.names(root)
        except FileNotFoundError:
            return {}
        return {f"{root}/{name}": name.rpartition("_")[2] for name in names}

    def remove(self, path: str) -> None:
        """Remove a folder with everything in it."""
        self._disk.remove(path)

    def mounts(
        self, pod: Pod, container: AnyContainer, pod_ips: tuple[str, ...], environment: Mapping[str, str]
    ) -> list[cri.Mount]:
        """What is mounted into a new instance: volumes, the hosts file, a fresh file for its last words.

        `environment` is the instance's own. Raises `ConfigError`, and `OSError`.
        """
        found = list(self._volumes.of(pod, container, environment))
        taken = {mount.container_path for mount in found}
        if (pod_ips or pods.host_network(pod)) and HOSTS_PATH not in taken:
            found.append(self._hosts_mount(pod, pod_ips))
        if container.terminationMessagePath:
            found.append(self._message_mount(pod, container))
        return found

    def _hosts_mount(self, pod: Pod, pod_ips: tuple[str, ...]) -> cri.Mount:
        """The hosts file (START-10, START-13): made anew, as the IPs may have changed."""
        content = self._hosts_of_node(pod) if pods.host_network(pod) else hosts_file(pod, pod_ips)
        path = f"{self._folder(pod)}/etc-hosts"
        self._disk.make_folder(self._folder(pod), _FOLDER_MODE)
        self._disk.write(path, content.encode(), _HOSTS_MODE)
        return cri.Mount(container_path=HOSTS_PATH, host_path=path)

    def _hosts_of_node(self, pod: Pod) -> str:
        try:
            own = text_of(self._disk.read(HOSTS_PATH))
        except OSError:
            own = ""
        return "\n".join([f"{_MARK} (host network).", own, *_aliases(pod)])

    def _message_mount(self, pod: Pod, container: AnyContainer) -> cri.Mount:
        """A new empty file for each instance, so that none finds the words of another (START-08)."""
        folder = f"{self._folder(pod)}/containers/{part_of_path('the container name', container.name)}"
        path = f"{folder}/{self._random.token()}"
        self._disk.make_folder(folder, _FOLDER_MODE)
        self._disk.write(path, b"", _MESSAGE_MODE)
        return cri.Mount(container_path=container.terminationMessagePath or "", host_path=path)

    def _folder(self, pod: Pod) -> str:
        return pod_folder(self._settings.root_dir, pods.uid(pod))

    def _logs(self, pod: Pod, container: str) -> str:
        return f"{self._pod_logs(pod)}/{part_of_path('the container name', container)}"

    def _pod_logs(self, pod: Pod) -> str:
        """The folder of the pod's logs; raises `UnsafeNameError` where its name leads elsewhere."""
        folder = log_directory(pod, self._settings)
        if posixpath.dirname(posixpath.normpath(folder)) != posixpath.normpath(self._settings.pod_logs_dir):
            raise UnsafeNameError(f"{folder!r} cannot be the folder of a pod's logs")
        return folder


def _aliases(pod: Pod) -> list[str]:
    aliases = [one for one in pods.spec(pod).hostAliases or () if one.hostnames]
    return ["\t".join((one.ip, *(one.hostnames or ()))) for one in aliases]
