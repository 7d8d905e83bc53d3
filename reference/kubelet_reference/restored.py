"""Pods as far as the runtime's records tell, for killing what no source knows.

A runtime pod that no source wants is known by its lists alone: it is killed without hooks (WORK-24). A
container in an unknown state is garbage that may still run: its pod's grace and its own preStop hook are read
back from its annotations (TERM-12).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import cast

from cri_api.v1 import api_pb2 as cri
from lightkube.models.core_v1 import Pod

from kubelet_reference import names
from kubelet_reference.records import ListedPod, PodRecords


def runtime_pod(listed: ListedPod | PodRecords) -> Pod:
    """A pod with the identity and the container names of a runtime pod, and nothing else."""
    every = dict.fromkeys(container.name for container in listed.containers)
    return _pod(listed.uid, listed.name, listed.namespace, [{"name": name} for name in every], {})


def restored_pod(status: cri.ContainerStatus) -> Pod:
    """The pod of a container, with that container alone, from labels and annotations."""
    labels, annotations = status.labels, status.annotations
    container: dict[str, object] = {"name": labels.get(names.CONTAINER_NAME) or status.metadata.name}
    hook = _decoded(annotations, names.CONTAINER_PRE_STOP)
    if isinstance(hook, dict):
        container["lifecycle"] = {"preStop": hook}
    ports = _decoded(annotations, names.CONTAINER_PORTS)
    if isinstance(ports, list):
        container["ports"] = ports
    return _pod(
        labels.get(names.POD_UID, ""),
        labels.get(names.POD_NAME, ""),
        labels.get(names.POD_NAMESPACE, ""),
        [container],
        annotations,
    )


def _pod(
    uid: str, name: str, namespace: str, containers: list[dict[str, object]], annotations: Mapping[str, str]
) -> Pod:
    metadata: dict[str, object] = {"uid": uid, "name": name, "namespace": namespace}
    spec: dict[str, object] = {"containers": containers}
    deletion_grace, grace = annotations.get(names.POD_DELETION_GRACE), annotations.get(names.POD_GRACE)
    if deletion_grace is not None and deletion_grace.isdecimal():
        metadata["deletionGracePeriodSeconds"] = int(deletion_grace)
    if grace is not None and grace.isdecimal():
        spec["terminationGracePeriodSeconds"] = int(grace)
    pod = Pod.from_dict({"metadata": metadata, "spec": spec})  # pyright: ignore[reportUnknownMemberType]
    return cast("Pod", pod)


def _decoded(annotations: Mapping[str, str], key: str) -> object:
    """The JSON of an annotation; None where there is none, or none that can be read."""
    try:
        return json.loads(annotations.get(key, "null"))
    except ValueError:
        return None
