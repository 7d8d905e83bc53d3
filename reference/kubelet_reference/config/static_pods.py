"""Static pods: what the kubelet makes of a manifest (STATIC-01 to STATIC-05)."""

from enum import StrEnum
from hashlib import blake2b

import msgspec
from lightkube.models.core_v1 import Pod

from kubelet_reference.api import names, pods
from kubelet_reference.config.validation.fields import JsonObject

_TOLERATES_EVERYTHING = {"operator": "Exists", "effect": "NoExecute"}


class Source(StrEnum):
    """Where a pod comes from, as the annotation config.source says it."""

    API = "api"
    FILE = "file"
    HTTP = "http"


def static_pod(pod: Pod, source: Source, origin: str, node_name: str, minor: int) -> Pod:
    """The pod as it runs on this node: named after it, with a UID even where the manifest has none.

    `origin` is the path or URL of the manifest, `pod` what it holds, `minor` the kubelet's version.
    """
    data: JsonObject = msgspec.to_builtins(pod)
    uid = pods.uid(pod) or manifest_uid(pod, f"{source} {origin}", node_name, minor)
    metadata: JsonObject = data["metadata"]
    spec: JsonObject = data["spec"]
    data["metadata"] = {
        **metadata,
        "name": f"{pods.name(pod)}-{node_name.lower()}",
        "namespace": pods.namespace(pod),
        "uid": uid,
        "annotations": {**metadata.get("annotations", {}), names.CONFIG_HASH: uid},
    }
    data["spec"] = {**spec, "nodeName": node_name}
    if source is Source.FILE:
        data["spec"]["tolerations"] = [*spec.get("tolerations", ()), _TOLERATES_EVERYTHING]
    return msgspec.convert(data, Pod)


def manifest_uid(pod: Pod, origin: str, node_name: str, minor: int) -> str:
    """A UID that changes when the pod, its manifest's place or the node does (STATIC-02).

    Nor does one version of the kubelet give the UID of another: each hashes all fields that a pod has in it.
    """
    identity = msgspec.json.encode((pod, origin, node_name, minor), order="deterministic")
    return blake2b(identity, digest_size=16).hexdigest()
