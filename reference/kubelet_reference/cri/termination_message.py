"""The termination message of a container: from its termination message file, or the end of its log."""

from cri_api.v1 import api_pb2 as cri

from kubelet_reference.api import names
from kubelet_reference.api.go_text import text_of
from kubelet_reference.util.paths import is_below
from kubelet_reference.util.ports import Disk
from kubelet_reference.util.settings import Settings

FALLBACK = "FallbackToLogsOnError"
MESSAGE_BYTES, TAIL_BYTES, TAIL_LINES = 4096, 2048, 80
_LOG_BYTES = 65_536
"""As much of the end of a log as surely holds its last words: a line has up to 16 KiB and a short head."""
_LOG_FIELDS = 3
"""Time, stream and tag come before the text in each line of a CRI log."""


class TerminationMessages:
    """Reads messages from the node's disk (START-11).

    The runtime says where they are: files that lie elsewhere than the kubelet's own are not read.
    """

    def __init__(self, disk: Disk, settings: Settings) -> None:
        self._disk = disk
        self._pods = f"{settings.root_dir}/pods"
        self._logs = settings.pod_logs_dir

    def message(self, status: cri.ContainerStatus) -> str:
        """The runtime's message with the container's own last words after it; only for one that exited."""
        if status.state != cri.CONTAINER_EXITED:
            return status.message
        words = self._file(status) or (self._log(status) if falls_back(status) else None)
        return ": ".join(text for text in (status.message, words) if text)

    def _file(self, status: cri.ContainerStatus) -> str | None:
        path = status.annotations.get(names.TERMINATION_MESSAGE_PATH)
        host_path = next((mount.host_path for mount in status.mounts if mount.container_path == path), "")
        if not is_below(host_path, self._pods):
            return None
        try:
            return text_of(self._disk.read_end(host_path, MESSAGE_BYTES))
        except FileNotFoundError:
            return None
        except OSError as error:
            return f"Error on reading termination log {host_path}: {error}"

    def _log(self, status: cri.ContainerStatus) -> str | None:
        if not is_below(status.log_path, self._logs):
            return None
        try:
            return log_tail(self._disk.read_end(status.log_path, _LOG_BYTES))
        except OSError:
            return None


def falls_back(status: cri.ContainerStatus) -> bool:
    """Whether the log stands in for a missing message: by policy, after a failure."""
    policy = status.annotations.get(names.TERMINATION_MESSAGE_POLICY)
    return policy == FALLBACK and status.exit_code != 0


def log_tail(log: bytes) -> str:
    """The text of the last lines of a CRI log: 80 lines and 2048 bytes at most."""
    lines = text_of(log).splitlines(keepends=True)[-TAIL_LINES:]
    texts = [line.split(" ", _LOG_FIELDS)[-1] for line in lines]
    return text_of("".join(texts).encode()[-TAIL_BYTES:])
