"""Whatever a pod can say wrongly is refused, with the field's name; the rest of the node goes on."""

from __future__ import annotations

import copy
import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kubelet_world import MANIFESTS, in_world

from kubelet_reference.config import ManifestError, read_pod

if TYPE_CHECKING:
    from kubelet_world import World

Json = dict[str, Any]

CONTAINER: Json = {"name": "c1", "image": "img:1", "command": ["run"]}
POD: Json = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "web", "labels": {"app": "web"}},
    "spec": {"containers": [CONTAINER], "volumes": [{"name": "v"}]},
}
EXEC = {"exec": {"command": ["x"]}}
LONG = "a" * 300
NAME = "metadata.name"
KEY = {"key": "k", "path": "p"}

OF_PODS: list[tuple[str, object, str]] = [
    ("metadata.name", "Web", ""),
    ("metadata.name", LONG, ""),
    ("metadata.namespace", "a.b", ""),
    ("metadata.labels", {"-a": "x"}, ".-a"),
    ("metadata.labels", {"a": "no spaces please"}, ".a"),
    ("metadata.labels", {"a/b/c": ""}, ".a/b/c"),
    ("metadata.annotations", {"": "x"}, "."),
    ("metadata.annotations", {"a": "x" * (300 << 10)}, ""),
    ("spec.containers", [], ""),
    ("spec.containers", "c1", ""),
    ("spec.containers", [CONTAINER, CONTAINER], "[1].name"),
    ("spec.ephemeralContainers", [CONTAINER], ""),
    ("spec.resourceClaims", [{"name": "gpu", "resourceClaimName": "g"}], ""),
    ("spec.colour", "red", ""),
    ("spec.restartPolicy", "Sometimes", ""),
    ("spec.dnsPolicy", "Mine", ""),
    ("spec.dnsPolicy", "None", ">spec.dnsConfig.nameservers"),
    ("spec.dnsConfig", {"nameservers": ["10.0.0.1"] * 4}, ".nameservers"),
    ("spec.dnsConfig", {"nameservers": ["one"]}, ".nameservers[0]"),
    ("spec.dnsConfig", {"searches": ["a"] * 33}, ".searches"),
    ("spec.dnsConfig", {"searches": [LONG] * 10}, ".searches"),
    ("spec.dnsConfig", {"options": [{"value": "2"}]}, ".options[0].name"),
    ("spec.preemptionPolicy", "Always", ""),
    ("spec.terminationGracePeriodSeconds", -1, ""),
    ("spec.activeDeadlineSeconds", 0, ""),
    ("spec.activeDeadlineSeconds", 2**31, ""),
    ("spec.hostname", "no.dots", ""),
    ("spec.subdomain", "UPPER", ""),
    ("spec.nodeName", "node_1", ""),
    ("spec.nodeSelector", {"a b": "x"}, ".a b"),
    ("spec.nodeSelector", {"a": "x y"}, ".a"),
    ("spec.serviceAccountName", "a/b", ""),
    ("spec.priorityClassName", "A", ""),
    ("spec.runtimeClassName", "A", ""),
    ("spec.os", {"name": "beos"}, ".name"),
    ("spec.hostNetwork", "maybe", ""),
    ("spec.hostAliases", [{"ip": "1.2.3", "hostnames": ["a"]}], "[0].ip"),
    ("spec.readinessGates", [{"conditionType": "a b"}], "[0].conditionType"),
    ("spec.tolerations", [{"operator": "Maybe"}], "[0].operator"),
    ("spec.tolerations", [{"operator": "Equal", "value": "x"}], "[0].operator"),
    ("spec.tolerations", [{"key": "k", "operator": "Exists", "value": "x"}], "[0].value"),
    ("spec.tolerations", [{"key": "a b", "operator": "Exists"}], "[0].key"),
    ("spec.tolerations", [{"operator": "Exists", "tolerationSeconds": 3}], "[0].effect"),
    ("spec.tolerations", [{"operator": "Exists", "effect": "Never"}], "[0].effect"),
    (
        "spec.topologySpreadConstraints",
        [{"maxSkew": 0, "topologyKey": "k", "whenUnsatisfiable": "DoNotSchedule"}],
        "[0].maxSkew",
    ),
    (
        "spec.topologySpreadConstraints",
        [{"maxSkew": 1, "topologyKey": "k", "whenUnsatisfiable": "DoNotSchedule"}] * 2,
        "[1]",
    ),
    ("spec.securityContext", {"runAsUser": -1}, ".runAsUser"),
    ("spec.securityContext", {"runAsGroup": 2**31}, ".runAsGroup"),
    ("spec.securityContext", {"fsGroup": -5}, ".fsGroup"),
    ("spec.securityContext", {"supplementalGroups": [0, -1]}, ".supplementalGroups[1]"),
    ("spec.securityContext", {"fsGroupChangePolicy": "Never"}, ".fsGroupChangePolicy"),
    ("spec.securityContext", {"sysctls": [{"name": "A!", "value": "1"}]}, ".sysctls[0].name"),
    ("spec.securityContext", {"sysctls": [{"name": "a.b", "value": "1"}] * 2}, ".sysctls[1].name"),
    ("spec.securityContext", {"seccompProfile": {"type": "Localhost"}}, ".seccompProfile.localhostProfile"),
    (
        "spec.securityContext",
        {"seccompProfile": {"type": "Unconfined", "localhostProfile": "p"}},
        ".seccompProfile.localhostProfile",
    ),
    ("spec.volumes", [{"name": "v"}, {"name": "v"}], "[1].name"),
    ("spec.volumes", [{"name": "V"}], "[0].name"),
    ("spec.volumes", [{"name": "v", "emptyDir": {}, "hostPath": {"path": "/p"}}], "[0]"),
    ("spec.volumes", [{"name": "v", "emptyDir": {"sizeLimit": "-1"}}], "[0].emptyDir.sizeLimit"),
    ("spec.volumes", [{"name": "v", "emptyDir": {"medium": "Tape"}}], "[0].emptyDir.medium"),
    ("spec.volumes", [{"name": "v", "hostPath": {"path": "/a/../b"}}], "[0].hostPath.path"),
    ("spec.volumes", [{"name": "v", "hostPath": {"path": "/a", "type": "Door"}}], "[0].hostPath.type"),
    ("spec.volumes", [{"name": "v", "configMap": {}}], "[0].configMap.name"),
    ("spec.volumes", [{"name": "v", "secret": {}}], "[0].secret.secretName"),
    (
        "spec.volumes",
        [{"name": "v", "secret": {"secretName": "s", "defaultMode": 512}}],
        "[0].secret.defaultMode",
    ),
    (
        "spec.volumes",
        [{"name": "v", "configMap": {"name": "m", "items": [{"key": "k", "path": "../p"}]}}],
        "[0].configMap.items[0].path",
    ),
    (
        "spec.volumes",
        [{"name": "v", "configMap": {"name": "m", "items": [{"key": "a b", "path": "p"}]}}],
        "[0].configMap.items[0].key",
    ),
    (
        "spec.volumes",
        [{"name": "v", "persistentVolumeClaim": {"claimName": ""}}],
        "[0].persistentVolumeClaim.claimName",
    ),
    ("spec.volumes", [{"name": "v", "downwardAPI": {"items": [{"path": "p"}]}}], "[0].downwardAPI.items[0]"),
    (
        "spec.volumes",
        [
            {
                "name": "v",
                "downwardAPI": {"items": [{"path": "/p", "fieldRef": {"fieldPath": "metadata.name"}}]},
            }
        ],
        "[0].downwardAPI.items[0].path",
    ),
    ("spec.volumes", [{"name": "v", "projected": {"sources": [{}]}}], "[0].projected.sources[0]"),
    (
        "spec.volumes",
        [
            {
                "name": "v",
                "projected": {"sources": [{"serviceAccountToken": {"path": "t", "expirationSeconds": 5}}]},
            }
        ],
        "[0].projected.sources[0].serviceAccountToken.expirationSeconds",
    ),
    (
        "spec.volumes",
        [
            {
                "name": "v",
                "projected": {
                    "sources": [
                        {"secret": {"name": name, "items": [{"key": "k", "path": "p"}]}} for name in "ab"
                    ]
                },
            }
        ],
        "[0].projected.sources[1].secret.items[0].path",
    ),
    ("spec.volumes", [{"name": "v", "nfs": {"server": "s", "path": "p"}}], "[0].nfs.path"),
]
"""What stands where in a pod, and what of it is named: below it, or elsewhere after ">"."""
OF_CONTAINERS: list[tuple[str, object, str]] = [
    ("name", "C1", ""),
    ("name", None, ""),
    ("image", "", ""),
    ("image", None, ""),
    ("imagePullPolicy", "Maybe", ""),
    ("terminationMessagePolicy", "Never", ""),
    ("command", "run", ""),
    ("args", [1], "[0]"),
    ("tty", "yes", ""),
    ("env", [{"name": "A=B"}], "[0].name"),
    ("env", [{"value": "x"}], "[0].name"),
    ("env", [{"name": "A", "value": 1}], "[0].value"),
    ("env", [{"name": "A", "valueFrom": {}}], "[0].valueFrom"),
    (
        "env",
        [{"name": "A", "value": "x", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
        "[0].valueFrom",
    ),
    (
        "env",
        [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "spec.colour"}}}],
        "[0].valueFrom.fieldRef.fieldPath",
    ),
    (
        "env",
        [{"name": "A", "valueFrom": {"resourceFieldRef": {"resource": "limits.gpu"}}}],
        "[0].valueFrom.resourceFieldRef.resource",
    ),
    (
        "env",
        [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "s", "key": "a b"}}}],
        "[0].valueFrom.secretKeyRef.key",
    ),
    (
        "env",
        [{"name": "A", "valueFrom": {"configMapKeyRef": {"key": "k"}}}],
        "[0].valueFrom.configMapKeyRef.name",
    ),
    ("envFrom", [{}], "[0]"),
    ("ports", [{"containerPort": 0}], "[0].containerPort"),
    ("ports", [{"containerPort": 80, "hostPort": 70_000}], "[0].hostPort"),
    ("ports", [{"containerPort": 80, "hostIP": "here"}], "[0].hostIP"),
    ("ports", [{"containerPort": 80, "protocol": "ICMP"}], "[0].protocol"),
    ("ports", [{"containerPort": 80, "name": "UPPER"}], "[0].name"),
    ("ports", [{"containerPort": 80, "name": "a-very-long-name-of-a-port"}], "[0].name"),
    ("ports", [{"containerPort": 80, "name": "a"}, {"containerPort": 81, "name": "a"}], "[1].name"),
    ("ports", [{"containerPort": 80, "hostPort": 80}, {"containerPort": 81, "hostPort": 80}], "[1].hostPort"),
    ("resources", {"limits": {"cpu": "-1"}}, ".limits.cpu"),
    ("resources", {"limits": {"memory": "lots"}}, ".limits.memory"),
    ("resources", {"limits": {"cpu": "1"}, "requests": {"cpu": "2"}}, ".requests.cpu"),
    ("resources", {"limits": {"gpu": "1"}}, ".limits.gpu"),
    ("resources", {"limits": {"example.com/gpu": "500m"}}, ".limits.example.com/gpu"),
    ("resources", {"requests": {"example.com/gpu": "1"}}, ".limits.example.com/gpu"),
    ("resizePolicy", [{"resourceName": "disk", "restartPolicy": "NotRequired"}], "[0].resourceName"),
    ("resizePolicy", [{"resourceName": "cpu", "restartPolicy": "Perhaps"}], "[0].restartPolicy"),
    ("resizePolicy", [{"resourceName": "cpu", "restartPolicy": "NotRequired"}] * 2, "[1].resourceName"),
    ("securityContext", {"runAsUser": -1}, ".runAsUser"),
    ("securityContext", {"procMount": "Mine"}, ".procMount"),
    ("securityContext", {"privileged": True, "allowPrivilegeEscalation": False}, ".allowPrivilegeEscalation"),
    (
        "securityContext",
        {"capabilities": {"add": ["CAP_SYS_ADMIN"]}, "allowPrivilegeEscalation": False},
        ".allowPrivilegeEscalation",
    ),
    ("securityContext", {"appArmorProfile": {"type": "Localhost"}}, ".appArmorProfile.localhostProfile"),
    ("volumeMounts", [{"name": "w", "mountPath": "/w"}], "[0].name"),
    ("volumeMounts", [{"name": "v", "mountPath": ""}], "[0].mountPath"),
    ("volumeMounts", [{"name": "v", "mountPath": "/a:b"}], "[0].mountPath"),
    ("volumeMounts", [{"name": "v", "mountPath": "/v"}, {"name": "v", "mountPath": "/v"}], "[1].mountPath"),
    ("volumeMounts", [{"name": "v", "mountPath": "/v", "subPath": "../x"}], "[0].subPath"),
    ("volumeMounts", [{"name": "v", "mountPath": "/v", "subPath": "/x"}], "[0].subPath"),
    (
        "volumeMounts",
        [{"name": "v", "mountPath": "/v", "subPath": "a", "subPathExpr": "b"}],
        "[0].subPathExpr",
    ),
    ("volumeMounts", [{"name": "v", "mountPath": "/v", "mountPropagation": "Up"}], "[0].mountPropagation"),
    (
        "volumeMounts",
        [{"name": "v", "mountPath": "/v", "mountPropagation": "Bidirectional"}],
        "[0].mountPropagation",
    ),
    (
        "volumeMounts",
        [{"name": "v", "mountPath": "/v", "recursiveReadOnly": "Enabled"}],
        "[0].recursiveReadOnly",
    ),
    ("restartPolicy", "Sometimes", ""),
]
"""What stands where in a container, of any kind."""
OF_APPS: list[tuple[str, object, str]] = [
    ("livenessProbe", {}, ""),
    ("livenessProbe", {**EXEC, "tcpSocket": {"port": 80}}, ""),
    ("livenessProbe", {"exec": {}}, ".exec.command"),
    ("livenessProbe", {**EXEC, "periodSeconds": -1}, ".periodSeconds"),
    ("livenessProbe", {**EXEC, "successThreshold": 2}, ".successThreshold"),
    ("livenessProbe", {**EXEC, "terminationGracePeriodSeconds": 0}, ".terminationGracePeriodSeconds"),
    ("readinessProbe", {**EXEC, "terminationGracePeriodSeconds": 5}, ".terminationGracePeriodSeconds"),
    ("readinessProbe", {"httpGet": {"port": 0}}, ".httpGet.port"),
    ("readinessProbe", {"httpGet": {"port": 80, "scheme": "FTP"}}, ".httpGet.scheme"),
    ("readinessProbe", {"httpGet": {"path": "/"}}, ".httpGet.port"),
    (
        "readinessProbe",
        {"httpGet": {"port": 80, "httpHeaders": [{"name": "a b", "value": "x"}]}},
        ".httpGet.httpHeaders[0].name",
    ),
    ("startupProbe", {"tcpSocket": {"port": "NO"}}, ".tcpSocket.port"),
    ("startupProbe", {"grpc": {"port": 70_000}}, ".grpc.port"),
    ("lifecycle", {"preStop": {}}, ".preStop"),
    ("lifecycle", {"preStop": {"exec": {"command": []}}}, ".preStop.exec.command"),
    ("lifecycle", {"preStop": {"sleep": {"seconds": -1}}}, ".preStop.sleep.seconds"),
    ("lifecycle", {"preStop": {"sleep": {"seconds": 31}}}, ".preStop.sleep.seconds"),
    ("lifecycle", {"postStart": {**EXEC, "sleep": {"seconds": 1}}}, ".postStart"),
]
"""What stands where in an app container."""


def wrong_in_pod(place: str, value: object, field: str) -> tuple[Json, str]:
    """A pod with this in it, and the field that is wrong."""
    return _put(POD, place, value), field[1:] if field.startswith(">") else f"{place}{field}"


def wrong_in_container(place: str, value: object, field: str, *, init: bool = False) -> tuple[Json, str]:
    """A pod with this in a container, and the field that is wrong."""
    one = {**CONTAINER, "name": "i1"} if init else dict(CONTAINER)
    if value is None:
        del one[place]
    else:
        one[place] = value
    kind = "initContainers" if init else "containers"
    return _put(POD, f"spec.{kind}", [one]), f"spec.{kind}[0].{place}{field}"


def _put(pod: Json, place: str, value: object) -> Json:
    changed = copy.deepcopy(pod)
    *above, last = place.split(".")
    inner = changed
    for name in above:
        inner = inner.setdefault(name, {})
    inner[last] = value
    return changed


WRONG = [
    *(wrong_in_pod(*each) for each in OF_PODS),
    *(wrong_in_container(*each) for each in (*OF_CONTAINERS, *OF_APPS)),
    *(wrong_in_container(*each, init=True) for each in OF_CONTAINERS),
]


def refused_fields(pod: Json) -> list[str]:
    """The fields that a refusal names."""
    with pytest.raises(ManifestError) as caught:
        read_pod(json.dumps(pod).encode())
    return [problem.field for problem in caught.value.problems]


@pytest.mark.parametrize(
    ("pod", "field"), WRONG, ids=[f"{i}-{field}"[:60] for i, (_, field) in enumerate(WRONG)]
)
def test_wrong_field_is_named(pod: Json, field: str) -> None:
    """Each of these mistakes is found, and its field named."""
    assert field in refused_fields(pod)


def test_the_pod_without_a_mistake_is_taken() -> None:
    """The pod that all mistakes are put into is fine by itself."""
    assert read_pod(json.dumps(POD).encode())


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.sampled_from(WRONG), min_size=1, max_size=5), st.integers(1, 3))
def test_the_rest_of_the_node_goes_on(wrong: list[tuple[Json, str]], good: int) -> None:
    """A kubelet refuses each wrong pod with an event that names the field, and runs the others."""

    async def story(world: World) -> None:
        for number, (pod, _) in enumerate(wrong):
            world.disk.write(f"{MANIFESTS}/wrong-{number}.yaml", json.dumps(pod).encode())
        for number in range(good):
            world.write(f"good-{number}")
        await world.start()
        await world.let(30)

        refusals = [event.message for event in world.events if event.reason == "FailedValidation"]
        for number, (pod, field) in enumerate(wrong):
            told = [text for text in refusals if f"wrong-{number}.yaml is refused" in text]
            assert [field in text for text in told] == [True], (pod, field)
        assert [world.phase(f"good-{number}-node") for number in range(good)] == ["Running"] * good
        assert len(world.calls("RunPodSandbox")) == good

    in_world(story)
