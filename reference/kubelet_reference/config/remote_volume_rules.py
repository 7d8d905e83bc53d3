"""What must hold between the fields of volumes that lie on other machines.

This kubelet mounts none of them, so the table is the API server's word and nothing more.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from lightkube.models.core_v1 import (
    AzureDiskVolumeSource,
    FCVolumeSource,
    FlexVolumeSource,
    FlockerVolumeSource,
    ISCSIVolumeSource,
    Pod,
)

from kubelet_reference import pods
from kubelet_reference.config.problems import Place
from kubelet_reference.config.rule_words import Rule

_SECRETS = {"cinder": "secretRef", "csi": "nodePublishSecretRef", "storageos": "secretRef"}
"""The volumes that need the name of a secret, if they refer to one."""
_PORTAL_CHARS_MAX = 64
_RESERVED = (".kubernetes.io", ".k8s.io")


def named_secrets(pod: Pod, place: Place) -> None:
    """A secret that is referred to is named."""
    for i, volume in enumerate(pods.spec(pod).volumes or ()):
        for kind, field in _SECRETS.items():
            reference = getattr(getattr(volume, kind), field, None)
            if reference is not None and not reference.name:
                place.field("volumes").item(i).field(kind).field(field).field("name").wrong("missing")


def sources(pod: Pod, place: Place) -> None:
    """Each kind of source has rules of its own."""
    for i, volume in enumerate(pods.spec(pod).volumes or ()):
        at = place.field("volumes").item(i)
        if volume.fc is not None:
            _fibre_channel(volume.fc, at.field("fc"))
        if volume.flocker is not None:
            _flocker(volume.flocker, at.field("flocker"))
        if volume.azureDisk is not None:
            _azure_disk(volume.azureDisk, at.field("azureDisk"))
        if volume.flexVolume is not None:
            _flex(volume.flexVolume, at.field("flexVolume"))
        if volume.iscsi is not None:
            _iscsi(volume.iscsi, volume.name, at.field("iscsi"))


def _fibre_channel(found: FCVolumeSource, place: Place) -> None:
    if bool(found.targetWWNs) == bool(found.wwids):
        place.field("targetWWNs").wrong("expected targetWWNs or wwids, and not both")
    if found.targetWWNs and found.lun is None:
        place.field("lun").wrong("missing beside targetWWNs")


def _flocker(found: FlockerVolumeSource, place: Place) -> None:
    if bool(found.datasetName) == bool(found.datasetUUID):
        place.wrong("expected datasetName or datasetUUID, and not both")


def _azure_disk(found: AzureDiskVolumeSource, place: Place) -> None:
    begin = "/subscriptions/" if found.kind == "Managed" else "https://"
    if not found.diskURI.startswith(begin):
        place.field("diskURI").expected(
            f"{begin}… for a disk of the kind {found.kind or 'Shared'}", found.diskURI
        )


def _flex(found: FlexVolumeSource, place: Place) -> None:
    options = cast("Mapping[str, str]", found.options or {})  # pyright: ignore[reportUnknownMemberType]
    for name in options:
        if f".{name.partition('/')[0].lower()}".endswith(_RESERVED):
            place.field("options").field(name).wrong("kubernetes.io and k8s.io are reserved")


def _iscsi(found: ISCSIVolumeSource, name: str, place: Place) -> None:
    if (found.chapAuthDiscovery or found.chapAuthSession) and found.secretRef is None:
        place.field("secretRef").wrong("missing: CHAP needs it")
    if found.initiatorName is not None and len(f"{name}:{found.targetPortal}") > _PORTAL_CHARS_MAX:
        text = f"expected at most {_PORTAL_CHARS_MAX} characters with the volume's name"
        place.field("targetPortal").wrong(text)


REMOTE_VOLUME_RULES: tuple[Rule, ...] = (named_secrets, sources)
