"""What a source's manifest of a pod changes."""

from typing import Any, Literal, NamedTuple, TypeAlias

from kubelet_conformance.contracts.tables.table import Row, Table

Json: TypeAlias = dict[str, Any]
Change: TypeAlias = Literal["deleted", "updated", "reconciled"]


class ManifestParts(NamedTuple):
    """A manifest: its significant part, whether the pod is being terminated, and its status."""

    meaning: Json
    deleting: bool
    status: Json


class ManifestChange(NamedTuple):
    """The manifest of a pod that a source sent last, and the one it sends now."""

    old: ManifestParts
    new: ManifestParts


CHANGES = Table[ManifestChange, Change](
    Row(
        "M5", lambda w: w.old.meaning == w.new.meaning, "reconciled", "nothing but its status is new, if that"
    ),
    Row("M6", lambda w: w.new.deleting, "deleted", "it is to be terminated, whatever else changed"),
    Row("M7", lambda _: True, "updated", "it means something else"),
)
"""The kind of change between a source's last manifest of a pod and its new one."""


def manifest_parts(pod: Json) -> ManifestParts:
    """The parts of a manifest that are compared; the kubelet's own annotations are not (CONFIG-05)."""
    meta: Json = pod.get("metadata") or {}
    annotations: dict[str, str] = meta.get("annotations") or {}
    deletion = (meta.get("deletionTimestamp"), meta.get("deletionGracePeriodSeconds"))
    meaning = {
        "spec": pod.get("spec"),
        "labels": meta.get("labels") or {},
        "deletion": deletion,
        "annotations": {
            key: v for key, v in annotations.items() if not key.startswith("kubernetes.io/config.")
        },
    }
    return ManifestParts(meaning, bool(deletion[0]), pod.get("status") or {})
