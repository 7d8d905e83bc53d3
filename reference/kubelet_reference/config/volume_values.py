"""What the fields of volumes may hold beyond their type: one row for each field."""

from __future__ import annotations

from collections.abc import Mapping

from lightkube.models import core_v1 as v1
from msgspec import Struct

from kubelet_reference.config.checks import (
    BELOW,
    DNS_LABEL,
    DNS_SUBDOMAIN,
    FILE_BELOW,
    FILE_MODE,
    NOT_EMPTY,
    NOT_UP,
    PULL_POLICY,
    Check,
    between,
    matching,
    one_of,
    optional,
)


def _is_medium(value: object) -> bool:
    return isinstance(value, str) and (value == "Memory" or value.startswith("HugePages"))


_BYTE = between(0, 255)
_PART = "[A-Za-z0-9]([-A-Za-z0-9]*[A-Za-z0-9])?"
_DRIVER = matching("letters, digits, dashes and dots", rf"{_PART}(\.{_PART})*", longest=63)
_ADDRESS = r"([^,:]*|\[[^\],]*\]):[^,:]*"
_ADDRESSES = matching(
    "HOST:PORT, or several of them with commas", f"{_ADDRESS}(,{_ADDRESS})*", longest=1 << 12
)
_INITIATOR = matching(
    "an initiator such as iqn.2001-04.com.example:disk, eui.X or naa.X",
    r"iqn\.\d{4}-\d{2}\.[A-Za-z0-9.-]+:[^,;*&$|\s]+|eui.[A-Za-z0-9]{16}|naa.[A-Za-z0-9]{32}",
    longest=253,
)

VOLUME_VALUES: Mapping[tuple[type[Struct], str], Check] = {
    (v1.Volume, "name"): DNS_LABEL,
    (v1.HostPathVolumeSource, "path"): NOT_UP,
    (v1.HostPathVolumeSource, "type"): optional(
        one_of(
            "DirectoryOrCreate", "Directory", "FileOrCreate", "File", "Socket", "CharDevice", "BlockDevice"
        )
    ),
    (v1.EmptyDirVolumeSource, "medium"): optional(Check('"", Memory or HugePages', _is_medium)),
    (v1.ImageVolumeSource, "pullPolicy"): PULL_POLICY,
    (v1.SecretVolumeSource, "defaultMode"): FILE_MODE,
    (v1.ConfigMapVolumeSource, "defaultMode"): FILE_MODE,
    (v1.DownwardAPIVolumeSource, "defaultMode"): FILE_MODE,
    (v1.ProjectedVolumeSource, "defaultMode"): FILE_MODE,
    (v1.KeyToPath, "key"): NOT_EMPTY,
    (v1.KeyToPath, "path"): FILE_BELOW,
    (v1.KeyToPath, "mode"): FILE_MODE,
    (v1.DownwardAPIVolumeFile, "path"): FILE_BELOW,
    (v1.DownwardAPIVolumeFile, "mode"): FILE_MODE,
    (v1.ServiceAccountTokenProjection, "path"): FILE_BELOW,
    (v1.ServiceAccountTokenProjection, "expirationSeconds"): between(600, 1 << 32),
    (v1.PersistentVolumeClaimSpec, "accessModes"): one_of(
        "ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany", "ReadWriteOncePod"
    ),
    (v1.PersistentVolumeClaimSpec, "storageClassName"): optional(DNS_SUBDOMAIN),
    (v1.PersistentVolumeClaimSpec, "volumeAttributesClassName"): optional(DNS_SUBDOMAIN),
    (v1.PersistentVolumeClaimSpec, "volumeMode"): one_of("Block", "Filesystem"),
    **{
        (kind, field): check
        for kind in (v1.TypedLocalObjectReference, v1.TypedObjectReference)
        for field, check in {
            "name": NOT_EMPTY,
            "kind": NOT_EMPTY,
            "apiGroup": optional(DNS_SUBDOMAIN),
        }.items()
    },
    (v1.TypedObjectReference, "namespace"): optional(DNS_LABEL),
    (v1.CSIVolumeSource, "driver"): _DRIVER,
    (v1.NFSVolumeSource, "server"): NOT_EMPTY,
    (v1.NFSVolumeSource, "path"): matching("an absolute path", "/.*", longest=1 << 12),
    (v1.AWSElasticBlockStoreVolumeSource, "volumeID"): NOT_EMPTY,
    (v1.AWSElasticBlockStoreVolumeSource, "partition"): _BYTE,
    (v1.AzureDiskVolumeSource, "diskName"): NOT_EMPTY,
    (v1.AzureDiskVolumeSource, "diskURI"): NOT_EMPTY,
    (v1.AzureDiskVolumeSource, "cachingMode"): one_of("None", "ReadOnly", "ReadWrite"),
    (v1.AzureDiskVolumeSource, "kind"): one_of("Dedicated", "Managed", "Shared"),
    (v1.AzureFileVolumeSource, "secretName"): NOT_EMPTY,
    (v1.AzureFileVolumeSource, "shareName"): NOT_EMPTY,
    (v1.CinderVolumeSource, "volumeID"): NOT_EMPTY,
    (v1.FCVolumeSource, "lun"): _BYTE,
    (v1.FlexVolumeSource, "driver"): NOT_EMPTY,
    (v1.FlockerVolumeSource, "datasetName"): optional(matching('a name without "/"', "[^/]+", longest=253)),
    (v1.GCEPersistentDiskVolumeSource, "pdName"): NOT_EMPTY,
    (v1.GCEPersistentDiskVolumeSource, "partition"): _BYTE,
    (v1.GitRepoVolumeSource, "repository"): NOT_EMPTY,
    (v1.GitRepoVolumeSource, "directory"): optional(BELOW),
    (v1.GlusterfsVolumeSource, "endpoints"): NOT_EMPTY,
    (v1.GlusterfsVolumeSource, "path"): NOT_EMPTY,
    (v1.ISCSIVolumeSource, "targetPortal"): NOT_EMPTY,
    (v1.ISCSIVolumeSource, "iqn"): _INITIATOR,
    (v1.ISCSIVolumeSource, "initiatorName"): _INITIATOR,
    (v1.ISCSIVolumeSource, "lun"): _BYTE,
    (v1.PhotonPersistentDiskVolumeSource, "pdID"): NOT_EMPTY,
    (v1.PortworxVolumeSource, "volumeID"): NOT_EMPTY,
    (v1.QuobyteVolumeSource, "registry"): _ADDRESSES,
    (v1.QuobyteVolumeSource, "tenant"): matching("a UUID", "(?s:.*)", longest=64),
    (v1.QuobyteVolumeSource, "volume"): NOT_EMPTY,
    (v1.RBDVolumeSource, "image"): NOT_EMPTY,
    (v1.ScaleIOVolumeSource, "gateway"): NOT_EMPTY,
    (v1.ScaleIOVolumeSource, "system"): NOT_EMPTY,
    (v1.StorageOSVolumeSource, "volumeName"): optional(DNS_LABEL),
    (v1.StorageOSVolumeSource, "volumeNamespace"): optional(DNS_LABEL),
    (v1.VsphereVirtualDiskVolumeSource, "volumePath"): NOT_EMPTY,
}
"""The rule for each field that has one."""
