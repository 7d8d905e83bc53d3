"""A mount namespace for one node: a hosts file that knows the node, and a /var/lib/kubelet of its own.

A kubelet without an API server looks its node's name up at each sync of the node, which takes seconds where
nothing answers. And each kubelet serves device plugins below /var/lib/kubelet, whatever its root folder is,
so that two of them would take each other's socket.
"""

import asyncio
import shutil
import tempfile
from pathlib import Path
from typing import Self

from kubelet_conformance.targets.process.child import Child

_HOSTS = Path("/etc/hosts")
_KUBELET = Path("/var/lib/kubelet")
_MOUNT = (
    f'mount -t tmpfs kubelet {_KUBELET} && mount --bind "$0" {_HOSTS} && echo ready && exec sleep infinity'
)
_TOOLS = ("unshare", "nsenter", "mount", "sleep")
_READY = b"ready"


class MountNamespace:
    """Holds the namespace for as long as its context is open; all kubelets of the node are started in it.

    `prefix` is put before a command to run it there. It is empty where no namespace can be made, and the
    command runs as it would without.
    """

    def __init__(self, hosts: Path, node: str) -> None:
        self._hosts = hosts
        self._node = node
        self._holder: Child | None = None
        self._answered = asyncio.Event()
        self.prefix: tuple[str, ...] = ()

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
        # It stays, empty: removing it would take it from all nodes that mount something there.
        _KUBELET.mkdir(parents=True, exist_ok=True)
        # What is mounted in it is seen by nobody else, and goes with it.
        command = ["unshare", "--mount", "--propagation", "slave", "sh", "-c", _MOUNT, str(self._hosts)]
        self._holder = Child(command, {}, self._hear)
        self._watching = asyncio.create_task(self._watch(self._holder), name="watching the namespace")

    async def _watch(self, holder: Child) -> None:
        """One that ends has mounted nothing."""
        await holder.ended()
        self.prefix = ()
        self._answered.set()

    def _hear(self, line: bytes) -> None:
        if line == _READY and self._holder is not None:
            # Who enters a namespace is at its root: a relative path begins where we are.
            self.prefix = ("nsenter", f"--mount=/proc/{self._holder.pid}/ns/mnt", f"--wd={Path.cwd()}", "--")
        self._answered.set()

    def _end(self) -> None:
        if self._holder is not None:
            self._holder.kill()

    async def __aexit__(self, *_: object) -> None:
        """Let it go, with all that is mounted in it."""
        self._end()


async def slow_look_ups(node: str, *, isolated: bool) -> str:
    """What is to be done lest a kubelet waits for its node's name, "" if nothing."""
    try:
        await asyncio.get_running_loop().getaddrinfo(node, None)
    except OSError:
        pass
    else:
        return ""
    if isolated:
        with tempfile.TemporaryDirectory() as folder:
            async with MountNamespace(Path(folder, "hosts"), node) as trial:
                if trial.prefix:
                    return ""
    return (
        f"no address is known for {node}: a kubelet without an API server may wait 5 s for it, often; "
        f"put 127.0.0.1 {node} into {_HOSTS}"
    )
