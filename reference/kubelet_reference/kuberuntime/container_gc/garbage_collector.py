"""Removes what is left of dead containers and sandboxes, once a minute.

A collection has three parts, in this order: containers, then the sandboxes that are empty by now, then log
folders. As long as a pod is desired its newest dead instances stay, for its status shows them (GC-01): one of
each container, and one sandbox. When its content may go, everything dead of it goes (GC-02, GC-05).
"""

import logging
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass

import grpc
from cri_api.v1 import api_pb2 as cri

from kubelet_reference.cri.errors import wrapped_text
from kubelet_reference.cri.labels import restored_pod
from kubelet_reference.kuberuntime.container.kill_container import ContainerKill, ContainerKiller
from kubelet_reference.kuberuntime.container_gc.container_deletor import RecordRemover
from kubelet_reference.kuberuntime.container_gc.container_gc_rules import collectable_containers, limits_of
from kubelet_reference.kuberuntime.runtime_tools import RuntimeTools

PERIOD = 60.0
"""Seconds from the end of one collection to the next."""
_UNKNOWN = "Container is in unknown state, try killing it before removal"

_log = logging.getLogger("kubelet_reference.garbage_collection")


@dataclass(frozen=True, slots=True)
class GarbageRules:
    """What the garbage collector asks and calls outside the runtime.

    `sources_ready` says whether every source of pods was seen, `should_content_be_removed` whether a pod
    (by UID) is gone for good, with its containers stopped. `remove_images` removes all images that may go,
    `failed` is called with the reason of a failed collection.
    """

    sources_ready: Callable[[], bool]
    should_content_be_removed: Callable[[str], bool]
    remove_images: Callable[[], Awaitable[None]]
    failed: Callable[[str], None]


@dataclass(eq=False)
class GarbageCollector:
    """Removes dead containers, sandboxes and their logs; a failed removal is tried at the next collection."""

    tools: RuntimeTools
    remover: RecordRemover
    container_killer: ContainerKiller
    rules: GarbageRules

    async def run(self) -> None:
        """Collect each minute, for ever."""
        while True:
            await self.collect()
            await self.tools.clock.sleep(PERIOD)

    async def collect(self) -> None:
        """Collect once. A failure of the runtime is reported by an event (GC-11)."""
        try:
            await self.collect_containers()
            await self.collect_sandboxes()
        except grpc.RpcError as error:
            _log.warning("container garbage collection failed: %s", wrapped_text(error))
            self.rules.failed(wrapped_text(error))
        else:
            self.collect_logs()

    async def reclaim(self, has_ended: Callable[[str], bool]) -> None:
        """Remove at once what the node can do without as it runs out of disk (EVICT-01).

        Pods that have ended, by UID, keep nothing. What no container was made from is no longer kept either.
        """
        try:
            await self.collect_containers(has_ended)
            await self.collect_sandboxes()
            await self.rules.remove_images()
        except grpc.RpcError as error:
            _log.warning("nothing was reclaimed: %s", wrapped_text(error))

    async def collect_containers(self, has_ended: Callable[[str], bool] = lambda _: False) -> None:
        """Remove dead containers, of each name the oldest first; all of pods that have ended (by UID)."""

        def all_may_go(uid: str) -> bool:
            return self.may_go_entirely(uid) or (self.rules.sources_ready() and has_ended(uid))

        listed = await self.tools.client.list_containers()
        for container in self.choose(listed.containers, all_may_go):
            await self._remove_container(container)

    def choose(
        self, containers: Iterable[cri.Container], all_may_go: Callable[[str], bool]
    ) -> list[cri.Container]:
        """The containers to remove, in their order."""
        return collectable_containers(
            containers, all_may_go, limits_of(self.tools.settings, self.tools.clock.wall_ns())
        )

    def may_go_entirely(self, uid: str) -> bool:
        """Whether nothing of a pod is kept; unknown before all sources are seen (GC-02)."""
        return self.rules.sources_ready() and self.rules.should_content_be_removed(uid)

    async def collect_sandboxes(self) -> None:
        """Remove dead sandboxes that hold no container any more."""
        containers = await self.tools.client.list_containers()
        occupied = {container.pod_sandbox_id for container in containers.containers}
        sandboxes = await self.tools.client.list_sandboxes()
        for sandbox in collectable_sandboxes(sandboxes.items, occupied, self.rules.should_content_be_removed):
            await self._remove_sandbox(sandbox.id)

    def collect_logs(self) -> None:
        """Remove the log folders of pods that are gone (GC-07)."""
        if not self.rules.sources_ready():
            return
        for path, uid in self.tools.files.log_directories().items():
            if self.rules.should_content_be_removed(uid):
                self._remove_folder(path)

    async def _remove_container(self, container: cri.Container) -> None:
        """Remove a container; one in an unknown state may still run, and is stopped first (GC-04)."""
        if container.state == cri.CONTAINER_UNKNOWN and not await self._stop_unknown(container.id):
            return
        await self.remover.remove(container.id)

    async def _stop_unknown(self, container_id: str) -> bool:
        """Stop a container by what its annotations say of its pod (TERM-12); whether that went well."""
        try:
            status = await self.tools.client.container_status(container_id)
        except grpc.RpcError as error:
            _log.warning("container %s cannot be read: %s", container_id, wrapped_text(error))
            return False
        name = status.metadata.name
        kill = ContainerKill(restored_pod(status), container_id, name, message=_UNKNOWN)
        return (await self.container_killer.kill_container(kill)).reason is None

    async def _remove_sandbox(self, sandbox_id: str) -> None:
        """Stop a sandbox once more, whatever it says of itself, then remove it (GC-05, CRI-41)."""
        try:
            await self.tools.client.stop_sandbox(sandbox_id)
            await self.tools.client.remove_sandbox(sandbox_id)
        except grpc.RpcError as error:
            _log.warning("sandbox %s was not removed: %s", sandbox_id, wrapped_text(error))

    def _remove_folder(self, path: str) -> None:
        try:
            self.tools.files.remove(path)
        except OSError as error:
            _log.warning("%s was not removed: %s", path, error)


def collectable_sandboxes(
    sandboxes: Iterable[cri.PodSandbox], occupied: set[str], should_content_be_removed: Callable[[str], bool]
) -> list[cri.PodSandbox]:
    """The sandboxes to remove, the oldest of each pod first: not ready, and without containers.

    The newest sandbox of a pod stays, unless the pod's content may go (GC-05).
    """
    units: dict[str, list[cri.PodSandbox]] = {}
    for one in sandboxes:
        units.setdefault(one.metadata.uid, []).append(one)
    found: list[cri.PodSandbox] = []
    for uid, every in units.items():
        old = sorted(every, key=lambda one: one.created_at)
        if not should_content_be_removed(uid):
            old.pop()
        found += [one for one in old if one.state != cri.SANDBOX_READY and one.id not in occupied]
    return found
