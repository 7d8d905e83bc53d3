"""Which records a list holds: the parts of a filter are joined by and (CRI-09)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from cri_api.v1 import api_pb2 as cri

from kubelet_fakes.runtime.records import POD_UID, Container, Sandbox


class Index:
    """The records by the UID of their pod, so that asking for one pod costs nothing on a full node."""

    def __init__(self) -> None:
        self.sandboxes: dict[str, dict[str, Sandbox]] = {}
        self.containers: dict[str, dict[str, Container]] = {}

    def add_sandbox(self, sandbox: Sandbox) -> None:
        """A sandbox was made."""
        self.sandboxes.setdefault(sandbox.uid_label, {})[sandbox.id] = sandbox

    def add_container(self, container: Container) -> None:
        """A container was made."""
        self.containers.setdefault(container.uid_label, {})[container.id] = container

    def drop_sandbox(self, sandbox: Sandbox) -> None:
        """A sandbox is gone."""
        _drop(self.sandboxes, sandbox.uid_label, sandbox.id)

    def drop_container(self, container: Container) -> None:
        """A container is gone."""
        _drop(self.containers, container.uid_label, container.id)


def _drop(index: dict[str, dict[str, Sandbox]] | dict[str, dict[str, Container]], uid: str, key: str) -> None:
    records = index[uid]
    del records[key]
    if not records:
        del index[uid]


def has_labels(labels: Mapping[str, str], selector: Mapping[str, str]) -> bool:
    """Whether every pair of the selector is there, exactly."""
    return all(labels.get(key) == value for key, value in selector.items())


def sandboxes_that_match(
    asked: cri.PodSandboxFilter, everything: Mapping[str, Sandbox], index: Index
) -> Iterable[Sandbox]:
    """The sandboxes that meet the whole filter, oldest first."""
    found: Iterable[Sandbox] = everything.values()
    if asked.id:
        found = filter(None, [everything.get(asked.id)])
    elif POD_UID in asked.label_selector:
        found = index.sandboxes.get(asked.label_selector[POD_UID], {}).values()
    if asked.HasField("state"):
        found = [one for one in found if one.state == asked.state.state]
    if asked.label_selector:
        found = [one for one in found if has_labels(one.config.labels, asked.label_selector)]
    return found


def containers_that_match(
    asked: cri.ContainerFilter,
    everything: Mapping[str, Container],
    sandboxes: Mapping[str, Sandbox],
    index: Index,
) -> Iterable[Container]:
    """The containers that meet the whole filter, oldest first."""
    found: Iterable[Container] = everything.values()
    if asked.id:
        found = filter(None, [everything.get(asked.id)])
    elif asked.pod_sandbox_id:
        sandbox = sandboxes.get(asked.pod_sandbox_id)
        found = sandbox.containers.values() if sandbox else ()
    elif POD_UID in asked.label_selector:
        found = index.containers.get(asked.label_selector[POD_UID], {}).values()
    if asked.pod_sandbox_id:
        found = [one for one in found if one.sandbox.id == asked.pod_sandbox_id]
    if asked.HasField("state"):
        found = [one for one in found if one.state == asked.state.state]
    if asked.label_selector:
        found = [
            container for container in found if has_labels(container.config.labels, asked.label_selector)
        ]
    return found
