"""What a volume can say wrongly, and which field a refusal has to name: one row for each mistake."""

from sayings import Json

Row = tuple[Json, str]

CLAIM: Json = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
ISCSI: Json = {"targetPortal": "10.0.0.1", "iqn": "iqn.2001-04.com.example:disk", "lun": 0}


def claim(spec: Json, **metadata: object) -> Json:
    """An ephemeral volume whose claim says this."""
    template = {"spec": {**CLAIM, **spec}, "metadata": metadata}
    return {"ephemeral": {"volumeClaimTemplate": template}}


def _claim(spec: Json, field: str) -> Row:
    return claim(spec), f"ephemeral.volumeClaimTemplate.spec.{field}"


def _key(kind: str, item: Json, field: str) -> Row:
    shown = {"configMap": {"name": "m"}, "secret": {"secretName": "s"}}[kind]
    return {kind: {**shown, "items": [{"key": "k", "path": "p", **item}]}}, f"{kind}.items[0].{field}"


def _downward(item: Json, field: str) -> Row:
    return {"downwardAPI": {"items": [{"path": "p", **item}]}}, f"downwardAPI.items[0]{field}"


def _shows(*sources: Json) -> Json:
    return {"projected": {"sources": list(sources)}}


OF_VOLUMES: list[Row] = [
    ({"name": "V"}, "name"),
    ({"emptyDir": {}, "hostPath": {"path": "/p"}}, ""),
    ({"emptyDir": {"sizeLimit": "-1"}}, "emptyDir.sizeLimit"),
    ({"emptyDir": {"medium": "Tape"}}, "emptyDir.medium"),
    ({"hostPath": {"path": ""}}, "hostPath.path"),
    ({"hostPath": {"path": "/a/../b"}}, "hostPath.path"),
    ({"hostPath": {"path": "/a", "type": "Door"}}, "hostPath.type"),
    ({"image": {}}, "image.reference"),
    ({"image": {"reference": "img:1", "pullPolicy": "Perhaps"}}, "image.pullPolicy"),
    ({"configMap": {}}, "configMap.name"),
    ({"secret": {}}, "secret.secretName"),
    ({"secret": {"secretName": "s", "defaultMode": 512}}, "secret.defaultMode"),
    ({"configMap": {"name": "m", "defaultMode": -1}}, "configMap.defaultMode"),
    ({"downwardAPI": {"defaultMode": 512}}, "downwardAPI.defaultMode"),
    ({"projected": {"defaultMode": 512}}, "projected.defaultMode"),
    _key("configMap", {"path": "../p"}, "path"),
    _key("configMap", {"path": "..p"}, "path"),
    _key("configMap", {"key": ""}, "key"),
    _key("secret", {"path": "/p"}, "path"),
    _key("secret", {"mode": -1}, "mode"),
    ({"persistentVolumeClaim": {"claimName": ""}}, "persistentVolumeClaim.claimName"),
    _downward({}, ""),
    _downward({"path": "/p", "fieldRef": {"fieldPath": "metadata.name"}}, ".path"),
    _downward({"mode": 512, "fieldRef": {"fieldPath": "metadata.name"}}, ".mode"),
    _downward({"fieldRef": {"fieldPath": "status.podIP"}}, ".fieldRef.fieldPath"),
    _downward({"fieldRef": {"fieldPath": "metadata.annotations['']"}}, ".fieldRef.fieldPath."),
    _downward({"resourceFieldRef": {"resource": "limits.cpu"}}, ".resourceFieldRef.containerName"),
    _downward(
        {"resourceFieldRef": {"containerName": "c1", "resource": "limits.cpu", "divisor": "2"}},
        ".resourceFieldRef.divisor",
    ),
    (_shows({}), "projected.sources[0]"),
    (_shows({"configMap": {"name": "a"}, "secret": {"name": "a"}}), "projected.sources[0]"),
    (_shows({"configMap": {}}), "projected.sources[0].configMap.name"),
    (_shows({"secret": {}}), "projected.sources[0].secret.name"),
    (
        _shows({"serviceAccountToken": {"path": "t", "expirationSeconds": 5}}),
        "projected.sources[0].serviceAccountToken.expirationSeconds",
    ),
    (_shows({"serviceAccountToken": {"path": "t"}}), "projected.sources[0].serviceAccountToken"),
    (_shows({"serviceAccountToken": {"path": ""}}), "projected.sources[0].serviceAccountToken.path"),
    (_shows({"clusterTrustBundle": {"path": "ca"}}), "projected.sources[0].clusterTrustBundle"),
    (
        _shows(*({"secret": {"name": name, "items": [{"key": "k", "path": "p"}]}} for name in "ab")),
        "projected.sources[1].secret.items[0].path",
    ),
    ({"ephemeral": {}}, "ephemeral.volumeClaimTemplate"),
    _claim({"accessModes": []}, "accessModes"),
    _claim({"accessModes": ["ReadSometimes"]}, "accessModes[0]"),
    _claim({"accessModes": ["ReadWriteOncePod", "ReadOnlyMany"]}, "accessModes"),
    _claim({"resources": {}}, "resources.requests.storage"),
    _claim({"resources": {"requests": {"storage": "0"}}}, "resources.requests.storage"),
    _claim({"storageClassName": "A_"}, "storageClassName"),
    _claim({"volumeAttributesClassName": "A_"}, "volumeAttributesClassName"),
    _claim({"volumeMode": "Tape"}, "volumeMode"),
    _claim({"selector": {"matchLabels": {"a": "x y"}}}, "selector.matchLabels.a"),
    _claim({"dataSource": {"kind": "Secret", "name": "s"}}, "dataSource.kind"),
    _claim({"dataSource": {"kind": "PersistentVolumeClaim", "name": ""}}, "dataSource.name"),
    _claim({"dataSource": {"kind": "", "name": "s"}}, "dataSource.kind"),
    _claim({"dataSource": {"kind": "Disk", "name": "d", "apiGroup": "A_"}}, "dataSource.apiGroup"),
    _claim({"dataSourceRef": {"kind": "Disk", "name": "d", "apiGroup": "A_"}}, "dataSourceRef.apiGroup"),
    _claim({"dataSourceRef": {"kind": "", "name": "d"}}, "dataSourceRef.kind"),
    _claim({"dataSourceRef": {"kind": "PersistentVolumeClaim", "name": ""}}, "dataSourceRef.name"),
    _claim(
        {"dataSourceRef": {"kind": "PersistentVolumeClaim", "name": "d", "namespace": "a.b"}},
        "dataSourceRef.namespace",
    ),
    _claim(
        {
            "dataSource": {"kind": "PersistentVolumeClaim", "name": "a"},
            "dataSourceRef": {"kind": "PersistentVolumeClaim", "name": "b"},
        },
        "dataSource",
    ),
    _claim(
        {
            "dataSource": {"kind": "PersistentVolumeClaim", "name": "a"},
            "dataSourceRef": {"kind": "PersistentVolumeClaim", "name": "a", "namespace": "n"},
        },
        "dataSource",
    ),
    (claim({}, name="mine"), "ephemeral.volumeClaimTemplate.metadata.name"),
    (claim({}, labels={"a": "x y"}), "ephemeral.volumeClaimTemplate.metadata.labels.a"),
    (claim({}, annotations={"a b": ""}), "ephemeral.volumeClaimTemplate.metadata.annotations.a b"),
    ({"csi": {"driver": ""}}, "csi.driver"),
    ({"csi": {"driver": "a_b"}}, "csi.driver"),
    ({"csi": {"driver": "d", "nodePublishSecretRef": {}}}, "csi.nodePublishSecretRef.name"),
    ({"nfs": {"server": "", "path": "/p"}}, "nfs.server"),
    ({"nfs": {"server": "s", "path": "p"}}, "nfs.path"),
    ({"awsElasticBlockStore": {"volumeID": ""}}, "awsElasticBlockStore.volumeID"),
    ({"awsElasticBlockStore": {"volumeID": "v", "partition": 256}}, "awsElasticBlockStore.partition"),
    ({"azureDisk": {"diskName": "", "diskURI": "https://d"}}, "azureDisk.diskName"),
    ({"azureDisk": {"diskName": "d", "diskURI": ""}}, "azureDisk.diskURI"),
    ({"azureDisk": {"diskName": "d", "diskURI": "ftp://d"}}, "azureDisk.diskURI"),
    ({"azureDisk": {"diskName": "d", "diskURI": "https://d", "kind": "Managed"}}, "azureDisk.diskURI"),
    ({"azureDisk": {"diskName": "d", "diskURI": "https://d", "kind": "Own"}}, "azureDisk.kind"),
    ({"azureDisk": {"diskName": "d", "diskURI": "https://d", "cachingMode": "A"}}, "azureDisk.cachingMode"),
    ({"azureFile": {"secretName": "", "shareName": "s"}}, "azureFile.secretName"),
    ({"azureFile": {"secretName": "s", "shareName": ""}}, "azureFile.shareName"),
    ({"cephfs": {"monitors": []}}, "cephfs.monitors"),
    ({"cinder": {"volumeID": ""}}, "cinder.volumeID"),
    ({"cinder": {"volumeID": "v", "secretRef": {}}}, "cinder.secretRef.name"),
    ({"fc": {}}, "fc.targetWWNs"),
    ({"fc": {"targetWWNs": ["w"], "wwids": ["w"], "lun": 0}}, "fc.targetWWNs"),
    ({"fc": {"targetWWNs": ["w"]}}, "fc.lun"),
    ({"fc": {"targetWWNs": ["w"], "lun": 256}}, "fc.lun"),
    ({"flexVolume": {"driver": ""}}, "flexVolume.driver"),
    (
        {"flexVolume": {"driver": "d", "options": {"x.kubernetes.io/a": "b"}}},
        "flexVolume.options.x.kubernetes.io/a",
    ),
    ({"flocker": {}}, "flocker"),
    ({"flocker": {"datasetName": "a", "datasetUUID": "u"}}, "flocker"),
    ({"flocker": {"datasetName": "a/b"}}, "flocker.datasetName"),
    ({"gcePersistentDisk": {"pdName": ""}}, "gcePersistentDisk.pdName"),
    ({"gcePersistentDisk": {"pdName": "d", "partition": -1}}, "gcePersistentDisk.partition"),
    ({"gitRepo": {"repository": ""}}, "gitRepo.repository"),
    ({"gitRepo": {"repository": "r", "directory": "../up"}}, "gitRepo.directory"),
    ({"glusterfs": {"endpoints": "", "path": "p"}}, "glusterfs.endpoints"),
    ({"glusterfs": {"endpoints": "e", "path": ""}}, "glusterfs.path"),
    ({"iscsi": {**ISCSI, "targetPortal": ""}}, "iscsi.targetPortal"),
    ({"iscsi": {**ISCSI, "iqn": "disk"}}, "iscsi.iqn"),
    ({"iscsi": {**ISCSI, "lun": 256}}, "iscsi.lun"),
    ({"iscsi": {**ISCSI, "chapAuthSession": True}}, "iscsi.secretRef"),
    ({"iscsi": {**ISCSI, "initiatorName": "me"}}, "iscsi.initiatorName"),
    ({"iscsi": {**ISCSI, "initiatorName": ISCSI["iqn"], "targetPortal": "a" * 63}}, "iscsi.targetPortal"),
    ({"photonPersistentDisk": {"pdID": ""}}, "photonPersistentDisk.pdID"),
    ({"portworxVolume": {"volumeID": ""}}, "portworxVolume.volumeID"),
    ({"quobyte": {"registry": "host", "volume": "v"}}, "quobyte.registry"),
    ({"quobyte": {"registry": "host:1", "volume": ""}}, "quobyte.volume"),
    ({"quobyte": {"registry": "host:1", "volume": "v", "tenant": "t" * 65}}, "quobyte.tenant"),
    ({"rbd": {"monitors": [], "image": "i"}}, "rbd.monitors"),
    ({"rbd": {"monitors": ["m"], "image": ""}}, "rbd.image"),
    (
        {"scaleIO": {"gateway": "", "system": "s", "secretRef": {"name": "s"}, "volumeName": "v"}},
        "scaleIO.gateway",
    ),
    (
        {"scaleIO": {"gateway": "g", "system": "", "secretRef": {"name": "s"}, "volumeName": "v"}},
        "scaleIO.system",
    ),
    ({"scaleIO": {"gateway": "g", "system": "s", "secretRef": {"name": "s"}}}, "scaleIO.volumeName"),
    ({"storageos": {}}, "storageos.volumeName"),
    ({"storageos": {"volumeName": "V"}}, "storageos.volumeName"),
    ({"storageos": {"volumeName": "v", "volumeNamespace": "N"}}, "storageos.volumeNamespace"),
    ({"storageos": {"volumeName": "v", "secretRef": {}}}, "storageos.secretRef.name"),
    ({"vsphereVolume": {"volumePath": ""}}, "vsphereVolume.volumePath"),
]
"""What a volume called v says, and which of its fields is wrong."""
