"""Fields of manifests that few pods have: they are taken as they are, or refused, all the same."""

from kubelet_conformance.node import Node, container, pod, witness
from kubelet_conformance.scenarios.config.test_manifest_fields import Fields, only_good_ones_are_run

_LONGEST = "a." * 126 + "a"
_RULE = {"action": "Restart", "exitCodes": {"operator": "In", "values": [1]}}
_ANNOTATIONS_MAX = 256 << 10
_SEEN = {"name": "c1", "image": "img:1", "imageID": "", "ready": False, "restartCount": 0}
_WRITTEN = {"manager": "me", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1"}
_AT_TWO_ADDRESSES = [
    {"containerPort": number, "hostPort": 7, "hostIP": f"10.0.0.{number}"} for number in (1, 2)
]
_RARE: Fields = {
    # The kubelet and its mirrors have annotations of their own.
    "metadata.annotations": (({"a": "x" * (_ANNOTATIONS_MAX - 700)},), ()),
    "metadata.managedFields.0": (({**_WRITTEN, "fieldsV1": {"f:spec": {}}},), ()),
    "status.containerStatuses.0": (({**_SEEN, "allocatedResources": {"cpu": 1}},), ()),
    "spec.overhead": (({"cpu": 1},), ({"cpu": "one"},)),
    "spec.dnsPolicy": (("None",), ()),
    "spec.dnsConfig": (
        ({"nameservers": ["1.1.1.1"], "searches": [f"{_LONGEST}."]},),
        ({"searches": [f"{_LONGEST}a."]},),
    ),
    "spec.securityContext.sysctls": ((), ([{"name": f"{_LONGEST}a", "value": "1"}],)),
    "spec.containers.0.lifecycle.preStop": (
        ({"httpGet": {"port": 1}},),
        ({"httpGet": {"port": 1}, "sleep": {"seconds": 1}},),
    ),
    "spec.containers.0.ports": ((_AT_TWO_ADDRESSES,), ()),
    "spec.containers.0.resources": (
        ({"limits": {"cpu": 1, "a.b/c": 1}, "requests": {"cpu": 0.5, "a.b/c": 1}},),
        (),
    ),
    "spec.containers.0.env.0": (
        ({"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name", "apiVersion": "v1"}}},),
        (),
    ),
    "spec.volumes.0.downwardAPI": (
        ({"items": [{"path": "a", "resourceFieldRef": {"containerName": "c1", "resource": "limits.cpu"}}]},),
        (),
    ),
}


@witness("STATIC-26", kubernetes=(1, 32), until=(1, 32), needs="room for many pods")
async def test_fields_that_few_pods_have(node: Node) -> None:
    """What a pod seldom has is taken as it is, or refused, all the same."""
    await only_good_ones_are_run(node, pod(volumes=[{"name": "a"}]), _RARE, [])


_FILE_KEY = {"volumeName": "a", "path": "b", "key": "c"}
_RARE_IN_1_36: Fields = {
    "spec.os": (({"name": "linux"},), ()),
    "spec.hostnameOverride": (("a" * 64,), ("a" * 65, "A", "")),
    "spec.containers.0.lifecycle.stopSignal": (("SIGUSR1",), ("RUNTIME_DEFAULT", "SIGOTHER")),
    "spec.containers.0.env.0": (
        (),
        (
            {
                "name": "A",
                "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}, "fileKeyRef": _FILE_KEY},
            },
        ),
    ),
}


@witness("STATIC-26", kubernetes=(1, 36), needs="room for many pods")
async def test_fields_that_few_pods_of_newer_versions_have(node: Node) -> None:
    """Names of hosts and signals are taken within their limits, and where they have a sense."""
    volumes = [{"name": "a"}]
    signal = container(lifecycle={"stopSignal": "SIGTERM"})
    bad = [
        pod(signal, volumes=volumes),
        pod(volumes=volumes, hostnameOverride="a", hostNetwork=True),
        pod(volumes=volumes, hostnameOverride="a", setHostnameAsFQDN=True),
    ]
    await only_good_ones_are_run(node, pod(volumes=volumes), _RARE_IN_1_36, bad)


@witness("STATIC-26", kubernetes=(1, 36), feature_gates={"RestartAllContainersOnContainerExits": False})
async def test_rule_whose_gate_is_off_is_refused(node: Node) -> None:
    """A rule that restarts all containers is taken only where that is on."""
    fields: Fields = {
        "spec.containers.0.restartPolicyRules": (([_RULE],), ([{**_RULE, "action": "RestartAllContainers"}],))
    }
    good = pod(container("c1", restartPolicy="Never"), volumes=[{"name": "a"}])
    await only_good_ones_are_run(node, good, fields, [])
