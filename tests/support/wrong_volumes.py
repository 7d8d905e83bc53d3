"""What a volume can say wrongly, and which field a refusal has to name: one row for each mistake."""

from sayings import Json

Row = tuple[Json, str]


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
    _downward({"resourceFieldRef": {"resource": "limits.cpu"}}, ".resourceFieldRef.containerName"),
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
    (_shows({"clusterTrustBundle": {"path": "ca"}}), "projected.sources[0]"),
]
"""What a volume called v says, and which of its fields is wrong."""
