"""What containers write to files of the node: logs and termination messages, through a hook."""

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

from kubelet_fakes.runtime.records import Container

_NS = 1_000_000_000

#: Where a container leaves its last words unless its annotations say otherwise.
_MESSAGE_PATH = "/dev/termination-log"
_MESSAGE_PATH_NOTE = "io.kubernetes.container.terminationMessagePath"


class HostFiles(Protocol):
    """Files of the node; errors are `OSError`."""

    def append(self, path: str, content: bytes) -> None:
        """Add to a file, which is made if it is not there, as is its folder."""
        ...


class NodeFiles:
    """Files of this machine; `root` is the folder that stands for / in the paths of clients."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def append(self, path: str, content: bytes) -> None:
        """Add to a file, which is made if it is not there, as is its folder."""
        file = self._root / path.removeprefix("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("ab") as opened:
            opened.write(content)


class Logs:
    """Writes for containers; without files it writes nothing."""

    def __init__(self, files: HostFiles | None = None) -> None:
        self.files = files
        self.listeners: dict[Callable[[str], None], str] = {}
        """Each is called with every line of the container whose id it stands for."""

    def open(self, container: Container) -> None:
        """Make the container's log file, if it has one; there already is fine."""
        if self.files is not None and container.log_path:
            self.files.append(container.log_path, b"")

    def say(self, container: Container, at_ns: int) -> None:
        """Write what the container says when it starts."""
        for line in container.script.says:
            self.write(container, line, at_ns)

    def write(self, container: Container, line: str, at_ns: int) -> None:
        """Let the container write a line."""
        if self.files is not None and container.log_path:
            self.files.append(container.log_path, log_line(line, at_ns))
        for listener, container_id in self.listeners.items():
            if container_id == container.id:
                listener(line)

    def write_termination_message(self, container: Container) -> None:
        """Write the container's termination message into the file that is mounted for it."""
        message = container.script.message
        if self.files is None or not message:
            return
        inside = container.config.annotations.get(_MESSAGE_PATH_NOTE, _MESSAGE_PATH)
        for mount in container.config.mounts:
            if mount.container_path == inside:
                self.files.append(mount.host_path, message.encode())


def log_line(text: str, at_ns: int) -> bytes:
    """A line of a container's log in the format of the CRI: time, stream, full line (CRI-36)."""
    seconds, ns = divmod(at_ns, _NS)
    moment = datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    return f"{moment}.{ns:09d}Z stdout F {text}\n".encode()
