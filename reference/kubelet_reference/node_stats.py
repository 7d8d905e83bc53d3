"""The port `NodeStats` of a real node: the machine tells what is left, the runtime what containers use.

What cannot be measured is left out, and the kubelet takes it that there is enough. The log tells so once, and
again only if it could be measured in between.
"""

from __future__ import annotations

import logging
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager

import grpc
from cri_api.v1 import api_pb2 as cri

from kubelet_reference import names
from kubelet_reference.cri_client import CriClient
from kubelet_reference.cri_errors import wrapped_text
from kubelet_reference.machine_os import OsMachine
from kubelet_reference.node_signals import Amount, PodUsage

_log = logging.getLogger("kubelet_reference.node_stats")


class MeasuredNode:
    """Measures anew each time it is asked; nodefs is the file system that holds `root_dir`."""

    def __init__(self, client: CriClient, machine: OsMachine, root_dir: str) -> None:
        self._client = client
        self._machine = machine
        self._root_dir = root_dir
        self._told: set[str] = set()

    async def read(self) -> Mapping[str, Amount]:
        """The signals that can be read, by name."""
        found: dict[str, Amount] = {}
        with self._noting("memory"):
            found["memory.available"] = self._machine.memory()
        with self._noting("the number of processes"):
            found["pid.available"] = self._machine.processes()
        with self._noting("the disk of the root folder"):
            found |= self._disk("nodefs", self._root_dir)
        with self._noting("the disk of images"):
            found |= self._disk("imagefs", await self._image_folder())
        return found

    async def usage(self) -> Mapping[str, PodUsage]:
        """What each pod uses, by UID."""
        with self._noting("what each pod uses"):
            return usage_by_pod(await self._client.list_container_stats())
        return {}

    def _disk(self, name: str, path: str) -> dict[str, Amount]:
        room, inodes = self._machine.disk(path)
        found = {f"{name}.available": room}
        return found if inodes is None else found | {f"{name}.inodesFree": inodes}

    async def _image_folder(self) -> str:
        """Where the runtime keeps its images; a kubelet asks for the first of its file systems."""
        found = (await self._client.image_fs_info()).image_filesystems
        if not found:
            raise LookupError("the runtime names no file system")
        return found[0].fs_id.mountpoint

    @contextmanager
    def _noting(self, what: str) -> Generator[None]:
        """Go on without what cannot be measured."""
        try:
            yield
        except (OSError, ValueError, LookupError, grpc.RpcError) as error:
            if what not in self._told:
                _log.warning("cannot measure %s, all goes on without: %s", what, wrapped_text(error))
            self._told.add(what)
        else:
            self._told.discard(what)


def usage_by_pod(stats: Iterable[cri.ContainerStats]) -> dict[str, PodUsage]:
    """What pods use, by UID: of each of their containers what the newest instance does.

    That is memory, and of the disk what containers have written beside their volumes. Containers that no
    kubelet has made are nobody's.
    """
    newest: dict[str, dict[str, cri.ContainerStats]] = {}
    for one in sorted(stats, key=lambda one: one.attributes.metadata.attempt):
        labels = one.attributes.labels
        if names.POD_UID in labels and names.CONTAINER_NAME in labels:
            newest.setdefault(labels[names.POD_UID], {})[labels[names.CONTAINER_NAME]] = one
    return {uid: _usage(containers) for uid, containers in newest.items()}


def _usage(containers: Mapping[str, cri.ContainerStats]) -> PodUsage:
    layers = {name: one.writable_layer.used_bytes.value for name, one in containers.items()}
    every = containers.values()
    return PodUsage(
        amounts={
            "memory": sum(one.memory.working_set_bytes.value for one in every),
            "ephemeral-storage": sum(layers.values()),
            "inodes": sum(one.writable_layer.inodes_used.value for one in every),
        },
        containers=layers,
    )
