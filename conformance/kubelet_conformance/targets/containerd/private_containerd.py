"""A containerd of our own: started privately, killed and started again, removed without a trace."""

import asyncio
import atexit
import os
import subprocess
from pathlib import Path
from typing import Self

from kubelet_conformance.targets.containerd import archive, configuration, host, network
from kubelet_conformance.targets.containerd.home import BASE, Home, locked
from kubelet_conformance.targets.containerd.host_commands import environment, said_by
from kubelet_conformance.targets.containerd.leftovers import NAMESPACE
from kubelet_conformance.targets.containerd.readiness import until_ended, until_listed, until_ready
from kubelet_conformance.targets.containerd.registry import Registry
from kubelet_conformance.targets.containerd.removal import record_absent_folders, remove, remove_orphans
from kubelet_conformance.targets.containerd.requirements import cni_folder, require

IMAGES = ("img:1", "img:2", "side:1")
"""What is on the node from the start, as on the fake one; the registry has the rest."""

_START_SECONDS_MAX = 30.0
_LOG_TAIL_LINES = 15
_OWNER_ONLY, _ANYBODYS = 0o600, 0o1777
_KEPT = ("answers", "attempts", "ends", "files")


class StartError(Exception):
    """containerd did not come up; the text holds the end of its log."""


class PrivateContainerd:
    """One containerd with runc, a bridge and images, for as long as its context is open.

    Starting blocks the loop for the moments in which the machine's own programs run; killing and stopping are
    no coroutines, so that nothing can break them off.

    Args:
        images: Names of images to put onto the node.
        base: Holds its folder. Give another one only to keep instances apart that must not see each other.
    """

    def __init__(self, images: tuple[str, ...] = IMAGES, base: Path = BASE) -> None:
        self.images = images
        self._base = base
        self._home: Home | None = None
        self._daemon: subprocess.Popen[bytes] | None = None
        self._registry: Registry | None = None
        self._pid = os.getpid()
        self.seen_ids: frozenset[str] = frozenset()
        """The ids of sandboxes and containers that were there when it was removed."""

    @property
    def home(self) -> Home:
        """Where its things lie; `RuntimeError` before it is started and after it is stopped."""
        if self._home is None:
            raise RuntimeError("this containerd is not started")
        return self._home

    @property
    def socket(self) -> Path:
        """Where it listens."""
        return self.home.socket

    @property
    def address(self) -> str:
        """The endpoint as a kubelet takes it: unix:// and the socket."""
        return f"unix://{self.socket}"

    @property
    def registry(self) -> Registry:
        """Where it gets images from; `RuntimeError` while it is not started."""
        if self._registry is None:
            raise RuntimeError("this containerd is not started")
        return self._registry

    @property
    def running(self) -> bool:
        """Whether the daemon runs."""
        return self._daemon is not None and self._daemon.poll() is None

    @property
    def pid(self) -> int:
        """The daemon's process id, or that of the last one."""
        return self._daemon.pid if self._daemon is not None else 0

    async def __aenter__(self) -> Self:
        """Start it."""
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        """Remove it."""
        self.stop()

    async def start(self) -> None:
        """Start the daemon and wait until it is ready; again after `kill`, with all that it had.

        Raises:
            CannotRunError: Something that it needs is missing on this machine.
            StartError: It ended, or was not ready in time. All is removed then.
        """
        if self.running:
            raise RuntimeError("this containerd runs already")
        is_new = self._home is None
        try:
            if is_new:
                self._settle()
            self._spawn()
            await self._until_ready()
            if is_new:
                self._import(self.images)
                await self._until_listed()
        except BaseException:
            self.stop()
            raise

    def kill(self) -> None:
        """Kill the daemon (SIGKILL). Shims and containers go on."""
        if self._daemon is not None:
            self._daemon.kill()
            self._daemon.wait()

    def stop(self) -> None:
        """Remove it and everything that it made; again is fine. Raises `RemovalError` if anything is left."""
        if os.getpid() != self._pid:
            # A fork of the owner ends: what is not its own stays.
            return
        atexit.unregister(self.stop)
        home, self._home = self._home, None
        registry, self._registry = self._registry, None
        if registry is not None:
            registry.close()
        if home is not None:
            self.seen_ids = remove(home)
        if self._daemon is not None:
            self._daemon.wait()

    # What is on the node and in the registry.

    def add_image(self, name: str, *, user: str = "") -> None:
        """Put an image onto the node; the CRI side knows it a moment later."""
        self.registry.publish(name, user=user)
        self._import((name,))

    def publish_image(self, name: str, *, there: bool = True) -> None:
        """Whether the registry has an image; by default it has all."""
        self.registry.publish(name, there=there)

    def set_file(self, name: str, *, there: bool) -> None:
        """What `xf NAME` finds in any container."""
        file = self.home.shared / "files" / name
        file.touch() if there else file.unlink(missing_ok=True)

    def answer_http(self, path: str, status: int) -> None:
        """What `serve` answers at this path in any container, 200 by default; 0 hangs up."""
        (self.home.shared / "answers" / path.replace("/", ":")).write_text(f"{status}\n", encoding="utf-8")

    # How it is made.

    def _settle(self) -> None:
        """Everything that has to be there before the daemon."""
        require()
        atexit.register(self.stop)
        with locked(self._base):
            remove_orphans(self._base)
            record_absent_folders(self._base)
            home = self._home = Home.make(self._base)
            subnet = network.choose_subnet(network.routed())
            network.make_bridge(home.name, subnet)
        registry = self._registry = Registry()
        for folder in (home.networks, home.registries / "_default", home.shared):
            folder.mkdir(parents=True)
        for name in _KEPT:
            (home.shared / name).mkdir()
            (home.shared / name).chmod(_ANYBODYS)
        for file, text in {
            home.config: configuration.containerd_config(home, cni_folder(), _snapshotter(home)),
            home.spec: configuration.base_spec(said_by("ctr", "oci", "spec"), home.shared),
            home.networks / "10-pods.conflist": network.network_list(home.name, subnet, str(home.leases)),
            home.registries / "_default" / "hosts.toml": configuration.registry_hosts(registry.address),
        }.items():
            file.write_text(text, encoding="utf-8")

    def _spawn(self) -> None:
        """Start the daemon, in a session of its own: Ctrl-C in the terminal is not for it."""
        name, _, value = self.home.mark.partition("=")
        with self.home.log.open("ab") as log:
            self._daemon = subprocess.Popen(  # noqa: S603 - our own words, no shell
                ("containerd", "--config", str(self.home.config)),  # noqa: S607 - wherever it is installed
                env=environment(**{name: value}),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    async def _until_ready(self) -> None:
        """Wait until it is ready, or until it ends."""
        ready = asyncio.create_task(until_ready(self.socket))
        ended = asyncio.create_task(until_ended(self.pid))
        try:
            await asyncio.wait(
                (ready, ended), timeout=_START_SECONDS_MAX, return_when=asyncio.FIRST_COMPLETED
            )
            if ended.done():
                raise StartError(f"containerd ended as it started{self._said()}")
            if not ready.done():
                raise StartError(f"containerd was not ready after {_START_SECONDS_MAX:g} s{self._said()}")
            ready.result()
        finally:
            ready.cancel()
            ended.cancel()
            await asyncio.wait((ready, ended))
        self.socket.chmod(_OWNER_ONLY)

    def _said(self) -> str:
        lines = self.home.log.read_text(encoding="utf-8", errors="replace").splitlines()
        return "".join(f"\n  {line}" for line in lines[-_LOG_TAIL_LINES:])

    def _import(self, names: tuple[str, ...]) -> None:
        """Put images onto the node: ours from an archive, the sandbox's with the first."""
        sources = {archive.full_name(name): self.registry.source(name) for name in names}
        pause = configuration.SANDBOX_IMAGE
        sources[pause] = archive.image_source(pause, command=("pause",))
        file = self.home.folder / "images.tar"
        file.write_bytes(archive.archive(sources))
        name, _, value = self.home.mark.partition("=")
        options = ("--namespace", NAMESPACE, "--address", str(self.socket))
        said_by("ctr", *options, "images", "import", str(file), **{name: value})
        file.unlink()

    async def _until_listed(self) -> None:
        """Wait until the CRI plugin lists the images."""
        wanted = [archive.full_name(name) for name in (*self.images, configuration.SANDBOX_IMAGE)]
        try:
            async with asyncio.timeout(_START_SECONDS_MAX):
                await until_listed(self.socket, wanted)
        except TimeoutError:
            raise StartError(f"containerd does not list its images{self._said()}") from None


def _snapshotter(home: Home) -> str:
    """Overlays save copies; over another overlay, as in most containers, they cannot be mounted."""
    mounted = [each for each in host.mounts() if home.folder.is_relative_to(each.point)]
    beneath = max(mounted, key=lambda each: len(each.point))
    return "native" if beneath.type == "overlay" else "overlayfs"
