"""The Node object of this node: what it is, what it has, and how it is."""

import os
import platform
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from cri_api.v1 import api_pb2 as cri

from kubelet_reference.api.quantities import milli, whole
from kubelet_reference.server.api_client.json_fields import Json, parts, text

_PRESSURES = {
    "MemoryPressure": ("KubeletHasSufficientMemory", "KubeletHasInsufficientMemory", "memory"),
    "DiskPressure": ("KubeletHasNoDiskPressure", "KubeletHasDiskPressure", "disk"),
    "PIDPressure": ("KubeletHasSufficientPID", "KubeletHasInsufficientPID", "PID"),
}
_IMAGES_MAX, _NAMES_MAX = 50, 5
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64", "i686": "386", "armv7l": "arm"}
_KIB = 1024


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """What does not change while the kubelet runs."""

    name: str
    ip: str
    minor: int
    runtime: str
    """Its name and version, such as containerd://2.1.0."""
    port: int
    cpu_millicores: int
    memory_bytes: int
    max_pods: int
    root_dir: str
    reserved: Mapping[str, str]
    """Of cpu and memory, what the machine has beside the two above."""


def architecture() -> str:
    """The machine's, in the words of Go."""
    return _ARCHITECTURES.get(platform.machine(), platform.machine())


def node_object(facts: NodeFacts, status: Json) -> Json:
    """The object that the node is registered by."""
    return {
        "kind": "Node",
        "apiVersion": "v1",
        "metadata": {"name": facts.name, "labels": labels(facts.name), "annotations": dict(ANNOTATIONS)},
        "spec": {},
        "status": status,
    }


ANNOTATIONS: Mapping[str, str] = {"volumes.kubernetes.io/controller-managed-attach-detach": "true"}


def labels(name: str) -> dict[str, str]:
    """The labels that a kubelet gives its node."""
    arch = architecture()
    return {
        "beta.kubernetes.io/arch": arch,
        "beta.kubernetes.io/os": "linux",
        "kubernetes.io/arch": arch,
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
    }


def node_status(facts: NodeFacts, images: Sequence[cri.Image], conditions: Sequence[Json]) -> Json:
    """The status as it is now."""
    cpu_millicores, memory_bytes = facts.cpu_millicores, facts.memory_bytes
    offered = {
        "cpu": _cpu(cpu_millicores),
        "ephemeral-storage": f"{_disk_kib(facts.root_dir)}Ki",
        "memory": f"{memory_bytes // _KIB}Ki",
        "pods": str(facts.max_pods),
    }
    there = {
        **offered,
        "cpu": _cpu(cpu_millicores + milli(facts.reserved.get("cpu", "0"))),
        "memory": f"{(memory_bytes + whole(facts.reserved.get('memory', '0'))) // _KIB}Ki",
    }
    return {
        "addresses": [
            {"type": "InternalIP", "address": facts.ip},
            {"type": "Hostname", "address": facts.name},
        ],
        "allocatable": offered,
        "capacity": there,
        "conditions": list(conditions),
        "daemonEndpoints": {"kubeletEndpoint": {"Port": facts.port}},
        "images": _images(images),
        "nodeInfo": _node_info(facts),
    }


def _cpu(millicores: int) -> str:
    return f"{millicores}m" if millicores % 1000 else str(millicores // 1000)


def _disk_kib(path: str) -> int:
    found = os.statvfs(path)
    return found.f_blocks * found.f_frsize // _KIB


def _images(images: Sequence[cri.Image]) -> list[Json]:
    """The largest images, with a few of their names."""
    largest = sorted(images, key=lambda image: (-image.size, image.id))[:_IMAGES_MAX]
    named = [(image, [*image.repo_digests, *image.repo_tags][:_NAMES_MAX]) for image in largest]
    return [{"names": every, "sizeBytes": image.size} for image, every in named if every]


def _node_info(facts: NodeFacts) -> Json:
    version = f"v1.{facts.minor}.0"
    return {
        "architecture": architecture(),
        "bootID": _line("/proc/sys/kernel/random/boot_id"),
        "containerRuntimeVersion": facts.runtime,
        "kernelVersion": os.uname().release,
        "kubeProxyVersion": version,
        "kubeletVersion": version,
        "machineID": _line("/etc/machine-id"),
        "operatingSystem": "linux",
        "osImage": _os_image(),
        "systemUUID": _line("/sys/class/dmi/id/product_uuid"),
    }


def _os_image() -> str:
    try:
        return platform.freedesktop_os_release().get("PRETTY_NAME", "")
    except OSError:
        return ""


def _line(path: str) -> str:
    """A text that the machine has in a file, "" where it has not."""
    try:
        return Path(path).read_text(encoding="utf-8").strip()
    except OSError:
        return ""


def node_conditions(
    pressures: Collection[str], problems: Sequence[str], before: Sequence[Json], now: str
) -> list[Json]:
    """The four conditions that a kubelet keeps: pressures, and whether it can run pods.

    `before` are those of the object, of which the moments of change stay where nothing has changed.
    """
    made = [_pressure(kind, is_met=kind in pressures) for kind in _PRESSURES]
    made.append(_ready(problems))
    last = {each.get("type"): each for each in before}
    return [_dated(each, last.get(each["type"]), now) for each in made]


def _pressure(kind: str, *, is_met: bool) -> Json:
    good, bad, what = _PRESSURES[kind]
    has = "has insufficient" if is_met else "has sufficient"
    message = f"kubelet {has} {what} available"
    if kind == "DiskPressure":
        message = f"kubelet has {'' if is_met else 'no '}disk pressure"
    return _condition(kind, "True" if is_met else "False", bad if is_met else good, message)


def _ready(problems: Sequence[str]) -> Json:
    if not problems:
        return _condition("Ready", "True", "KubeletReady", "kubelet is posting ready status")
    message = problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]"
    return _condition("Ready", "False", "KubeletNotReady", message)


def _condition(kind: str, status: str, reason: str, message: str) -> Json:
    return {"type": kind, "status": status, "reason": reason, "message": message}


def _dated(condition: Json, before: Json | None, now: str) -> Json:
    is_same = before is not None and before.get("status") == condition["status"]
    changed = before["lastTransitionTime"] if before is not None and is_same else now
    return {**condition, "lastHeartbeatTime": now, "lastTransitionTime": changed}


def status_changes(old: Json, new: Json) -> Json:
    """The fields of a status that differ, as a strategic merge patch of it; heartbeats are no difference."""
    changes = {name: value for name, value in new.items() if name != "conditions" and old.get(name) != value}
    if "addresses" in changes:
        changes["addresses"] = [*new["addresses"], {"$patch": "replace"}]
    if _without_heartbeats(old) != _without_heartbeats(new):
        changes["conditions"] = new["conditions"]
    return changes


def _without_heartbeats(status: Json) -> dict[str, tuple[str, ...]]:
    """The kubelet's conditions by type; others belong to somebody else."""
    kinds = {*_PRESSURES, "Ready"}
    fields = ("status", "reason", "message")
    found = [each for each in parts(status, "conditions") if each.get("type") in kinds]
    return {each["type"]: tuple(text(each, name) for name in fields) for each in found}
