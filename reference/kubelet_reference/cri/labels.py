"""Labels and annotations: what the kubelet writes on sandboxes and containers, and reads back from them.

The runtime is the kubelet's memory. What must survive a restart of the kubelet (to which pod a container
belongs, its restart count, the hash of its definition, its termination message settings) is written on the
container when it is made, and nowhere else (START-05, START-06).

A runtime pod that no source wants is known by its lists alone: it is killed without hooks (WORK-24). A
container in an unknown state is garbage that may still run: its pod's grace and its own preStop hook are read
back from its annotations (TERM-12).
"""

import json
from collections.abc import Mapping

from cri_api.v1 import api_pb2 as cri
from lightkube.models.core_v1 import Container, Pod, PodSpec
from lightkube.models.meta_v1 import ObjectMeta

from kubelet_reference.api import names, pods
from kubelet_reference.api.models import as_json, as_model
from kubelet_reference.api.pods import AnyContainer
from kubelet_reference.api.records import (
    ActuatedResources,
    ContainerRecord,
    ContainerState,
    ListedPod,
    PodRecords,
    SandboxRecord,
)

_STATES: dict[int, ContainerState] = {
    cri.CONTAINER_CREATED: ContainerState.CREATED,
    cri.CONTAINER_RUNNING: ContainerState.RUNNING,
    cri.CONTAINER_EXITED: ContainerState.EXITED,
}


def sandboxes_of(uid: str) -> cri.PodSandboxFilter:
    """The filter for the sandboxes of one pod."""
    chosen = cri.PodSandboxFilter()
    chosen.label_selector[names.POD_UID] = uid
    return chosen


def containers_of(uid: str) -> cri.ContainerFilter:
    """The filter for the containers of one pod."""
    chosen = cri.ContainerFilter()
    chosen.label_selector[names.POD_UID] = uid
    return chosen


def sandbox_labels(pod: Pod) -> dict[str, str]:
    """The pod's own labels and those of its identity (SANDBOX-11)."""
    return {**pods.labels(pod), **_identity(pod)}


def sandbox_annotations(pod: Pod) -> dict[str, str]:
    """The pod's annotations (SANDBOX-11)."""
    return dict(pods.annotations(pod))


def container_labels(pod: Pod, container: AnyContainer) -> dict[str, str]:
    """The identity of the pod and the name of the container (START-05)."""
    return {**_identity(pod), names.CONTAINER_NAME: container.name}


def container_annotations(pod: Pod, container: AnyContainer, restarts: int, digest: str) -> dict[str, str]:
    """What a later kubelet has to know of the container (START-05); `digest` is the definition's hash."""
    found = {
        names.CONTAINER_HASH: digest,
        names.CONTAINER_RESTART_COUNT: str(restarts),
        names.TERMINATION_MESSAGE_PATH: container.terminationMessagePath or "",
        names.TERMINATION_MESSAGE_POLICY: container.terminationMessagePolicy or "",
    }
    grace = pods.spec(pod).terminationGracePeriodSeconds
    if grace is not None:
        found[names.POD_GRACE] = str(grace)
    if container.lifecycle and container.lifecycle.preStop:
        found[names.CONTAINER_PRE_STOP] = _json(as_json(container.lifecycle.preStop))
    if container.ports:
        found[names.CONTAINER_PORTS] = _json([as_json(port) for port in container.ports])
    return found


def container_record(status: cri.ContainerStatus, message: str) -> ContainerRecord:
    """The container that the runtime describes; `message` stands for the runtime's own.

    Its restart count is that of its annotation; one that another client made has none (0).
    """
    return ContainerRecord(
        id=status.id,
        name=status.metadata.name,
        state=container_state(status.state),
        attempt=status.metadata.attempt,
        restart_count=_number(status.annotations.get(names.CONTAINER_RESTART_COUNT)),
        hash=status.annotations.get(names.CONTAINER_HASH, ""),
        created_at=status.created_at,
        started_at=status.started_at,
        finished_at=status.finished_at,
        exit_code=status.exit_code,
        reason=status.reason,
        message=message,
        image=status.image.image,
        image_ref=status.image_ref,
        image_id=status.image_id,
        actuated=_actuated(status),
        stop_signal=cri.Signal.Name(status.stop_signal) if status.stop_signal else "",
    )


def _actuated(status: cri.ContainerStatus) -> ActuatedResources | None:
    """What the container may use, None where the runtime does not report it (RESIZE-06)."""
    if not status.resources.HasField("linux"):
        return None
    linux = status.resources.linux
    return ActuatedResources(linux.cpu_shares, linux.cpu_quota, linux.memory_limit_in_bytes)


def sandbox_record(status: cri.PodSandboxStatus) -> SandboxRecord:
    """The sandbox that the runtime describes; its IPs are the runtime's text, valid or not."""
    ips: tuple[str, ...] | None = None
    if status.HasField("network"):
        every = (status.network.ip, *(more.ip for more in status.network.additional_ips))
        ips = tuple(ip for ip in every if ip)
    return SandboxRecord(
        id=status.id,
        attempt=status.metadata.attempt,
        created_at=status.created_at,
        ready=status.state == cri.SANDBOX_READY,
        host_network=status.linux.namespaces.options.network == cri.NODE,
        ips=ips,
    )


def _identity(pod: Pod) -> dict[str, str]:
    return {
        names.POD_NAME: pods.name(pod),
        names.POD_NAMESPACE: pods.namespace(pod),
        names.POD_UID: pods.uid(pod),
    }


def container_state(state: int) -> ContainerState:
    """The state of a container, in the words of the CRI; what is new to us is unknown."""
    return _STATES.get(state, ContainerState.UNKNOWN)


def _number(text: str | None) -> int:
    return int(text) if text is not None and text.isdecimal() else 0


def _json(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))


def runtime_pod(listed: ListedPod | PodRecords) -> Pod:
    """A pod with the identity and the container names of a runtime pod, and nothing else."""
    every = dict.fromkeys(container.name for container in listed.containers)
    return _pod(listed.uid, listed.name, listed.namespace, [Container(name=name) for name in every])


def restored_pod(status: cri.ContainerStatus) -> Pod:
    """The pod of a container, with that container alone, from labels and annotations."""
    labels, annotations = status.labels, status.annotations
    container: dict[str, object] = {"name": status.metadata.name}
    hook = _decoded(annotations, names.CONTAINER_PRE_STOP)
    if isinstance(hook, dict):
        container["lifecycle"] = {"preStop": hook}
    ports = _decoded(annotations, names.CONTAINER_PORTS)
    if isinstance(ports, list):
        container["ports"] = ports
    grace = annotations.get(names.POD_GRACE)
    return _pod(
        labels.get(names.POD_UID, ""),
        labels.get(names.POD_NAME, ""),
        labels.get(names.POD_NAMESPACE, ""),
        [as_model(Container, container)],
        int(grace) if grace is not None and grace.isdecimal() else None,
    )


def _pod(uid: str, name: str, namespace: str, containers: list[Container], grace: int | None = None) -> Pod:
    metadata = ObjectMeta(name=name, namespace=namespace, uid=uid)
    return Pod(metadata=metadata, spec=PodSpec(containers, terminationGracePeriodSeconds=grace))


def _decoded(annotations: Mapping[str, str], key: str) -> object:
    """The JSON of an annotation; None where there is none, or none that can be read."""
    try:
        return json.loads(annotations.get(key, ""))
    except ValueError:
        return None
