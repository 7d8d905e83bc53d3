"""A mount namespace for one node: a hosts file that knows the node, and fixed folders of its own.

A kubelet without an API server looks its node's name up at each sync of the node, which takes seconds where
nothing answers. And each kubelet uses some folders whatever its root folder is: two of them would take each
other's socket for device plugins, and what they write there would stay behind.
"""

import asyncio
import shutil
import tempfile
from pathlib import Path
from typing import Self

from kubelet_conformance.targets.process.child import Child

_HOSTS = Path("/etc/hosts")
_FOLDERS = (
    *("/var/lib/kubelet", "/var/log/pods", "/var/log/containers"),
    "/usr/libexec/kubernetes/kubelet-plugins",
)
"""What kubelets use at these paths, whatever they are configured to."""
_MOUNT = f"""
set -e
for folder in {" ".join(_FOLDERS)}; do
    above=$folder
    while [ ! -d "$above" ]; do above=$(dirname "$above"); done
    if [ "$above" != "$folder" ]; then
        # The machine does not have it, and shall not get it: it is made in a layer above the folder that it
        # has, through which the kubelet's own files must not be seen.
        case "$0" in "$above"/*) exit 1; esac
        mkdir "$1" && mount -t tmpfs kubelet "$1" && mkdir "$1/upper" "$1/work"
        mount -t overlay -o "lowerdir=$above,upperdir=$1/upper,workdir=$1/work" kubelet "$above"
        umount --lazy "$1" && rmdir "$1"
        mkdir -p "$folder"
    fi
    mount -t tmpfs kubelet "$folder"
done
mount --bind "$0" {_HOSTS}
echo ready
exec sleep infinity
"""
_TOOLS = ("unshare", "nsenter", "mount", "umount", "sleep")
_READY = b"ready"


class MountNamespace:
    """Holds the namespace for as long as its context is open; all kubelets of the node are started in it.

    `prefix` is put before a command to run it there, and below `root` others find the files that are there.
    Where no namespace can be made these are empty and `/`, and the command runs as it would without.
    """

    def __init__(self, hosts: Path, node: str) -> None:
        self._hosts = hosts
        self._node = node
        self._holder: Child | None = None
        self._answered = asyncio.Event()
        self.prefix: tuple[str, ...] = ()
        self.root = Path("/")

    async def __aenter__(self) -> Self:
        """Make it, if that is possible."""
        if all(map(shutil.which, _TOOLS)):
            try:
                self._begin()
            except OSError:
                self._end()
            else:
                await self._answered.wait()
        return self

    def _begin(self) -> None:
        self._hosts.write_text(
            f"127.0.0.1 {self._node}\n{_HOSTS.read_text(encoding='utf-8')}", encoding="utf-8"
        )
        # What is mounted in it is seen by nobody else, and goes with it.
        command = ["unshare", "--mount", "--propagation", "slave", "sh", "-c", _MOUNT]
        self._holder = Child([*command, str(self._hosts), f"{self._hosts}.layer"], {}, self._hear)
        self._watching = asyncio.create_task(self._watch(self._holder), name="watching the namespace")

    async def _watch(self, holder: Child) -> None:
        """One that ends has mounted nothing."""
        await holder.ended()
        self.prefix, self.root = (), Path("/")
        self._answered.set()

    def _hear(self, line: bytes) -> None:
        if line == _READY and self._holder is not None:
            # Who enters a namespace is at its root: a relative path begins where we are.
            self.prefix = ("nsenter", f"--mount=/proc/{self._holder.pid}/ns/mnt", f"--wd={Path.cwd()}", "--")
            self.root = Path(f"/proc/{self._holder.pid}/root")
        self._answered.set()

    def _end(self) -> None:
        if self._holder is not None:
            self._holder.kill()

    async def __aexit__(self, *_: object) -> None:
        """Let it go, with all that is mounted in it."""
        self._end()


async def can_isolate(node: str) -> bool:
    """Whether a namespace can be made here."""
    with tempfile.TemporaryDirectory() as folder:
        async with MountNamespace(Path(folder, "hosts"), node) as trial:
            return bool(trial.prefix)


async def slow_look_ups(node: str) -> str:
    """What is to be done lest a kubelet outside a namespace waits for its node's name, "" if nothing."""
    try:
        await asyncio.get_running_loop().getaddrinfo(node, None)
    except OSError:
        pass
    else:
        return ""
    return (
        f"no address is known for {node}: a kubelet without an API server may wait 5 s for it, often; "
        f"put 127.0.0.1 {node} into {_HOSTS}"
    )
