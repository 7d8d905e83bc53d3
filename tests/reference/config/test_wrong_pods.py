"""Whatever a pod can say wrongly is refused, with the field's name; the rest of the node goes on."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kubelet_world import MANIFESTS, World, in_world
from on_loop import run_by
from sayings import CONTAINER, POD, Saying, in_apps, in_inits, in_pods, in_specs, in_volumes
from wrong_containers import OF_APPS, OF_CONTAINERS, OF_INITS
from wrong_pods import OF_METADATA, OF_PODS, OF_SCHEDULING, OF_WHOLES
from wrong_volumes import OF_VOLUMES

from kubelet_reference.config import ManifestError, read_pod
from kubelet_reference.util.versions import Behaviour

Json = dict[str, Any]

KINDS: dict[str, list[Saying]] = {
    "metadata": [in_pods(*row) for row in OF_METADATA],
    "pods": [in_pods(*row) for row in OF_PODS],
    "scheduling": [in_pods(*row) for row in OF_SCHEDULING],
    "apps": [in_apps(*row) for row in (*OF_CONTAINERS, *OF_APPS)],
    "inits": [in_inits(*row) for row in (*OF_CONTAINERS, *OF_INITS)],
    "volumes": [in_volumes(*row) for row in OF_VOLUMES],
    "wholes": OF_WHOLES,
}
"""Everything that is wrong, by what it is about."""
WRONG = [one for kind in KINDS.values() for one in kind]

RIGHT_CONTAINERS: list[tuple[str, object]] = [
    ("env", [{"name": "9 lives!"}, {"name": "A", "value": "x"}]),
    ("env", [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.annotations['A/B']"}}}]),
    (
        "env",
        [{"name": "A", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu", "divisor": "1000m"}}}],
    ),
    (
        "env",
        [{"name": "A", "valueFrom": {"resourceFieldRef": {"resource": "requests.memory", "divisor": "1Mi"}}}],
    ),
    ("envFrom", [{"prefix": "A_", "secretRef": {"name": "s"}}]),
    ("ports", [{"containerPort": 80, "name": ""}, {"containerPort": 80, "protocol": "UDP"}]),
    ("resources", {"limits": {"memory": "1.5", "hugepages-1Gi": "2Gi"}}),
    ("resources", {"requests": {"kubernetes.io/thing": "500m"}}),
    ("volumeMounts", [{"name": "v", "mountPath": "/v", "subPath": "a/..b", "mountPropagation": "None"}]),
    ("volumeMounts", [{"name": "v", "mountPath": "/v", "readOnly": True, "recursiveReadOnly": "Enabled"}]),
    ("volumeDevices", [{"name": "claimed", "devicePath": "/dev/d"}]),
    ("securityContext", {"seccompProfile": {"type": "RuntimeDefault"}, "procMount": "Default"}),
]
RIGHT_VOLUMES: list[tuple[Json]] = [
    ({"configMap": {"name": "m", "items": [{"key": "any key", "path": "a/..b"}]}},),
    ({"downwardAPI": {"items": [{"path": "p", "fieldRef": {"fieldPath": "metadata.labels"}}]}},),
    ({"hostPath": {"path": "/a", "type": ""}},),
]
RIGHT = [
    in_pods("metadata.generateName", "web-"),
    in_pods("metadata.annotations", {"Upper.Case/Name": ""}),
    in_pods("spec.schedulerName", ""),
    in_pods("spec.imagePullSecrets", [{"name": "A_"}]),
    in_pods("spec.dnsConfig", {"searches": ["example.com.", "svc"], "options": [{"name": "ndots"}]}),
    in_pods("spec.hostAliases", [{"ip": "::1"}]),
    in_pods("spec.tolerations", [{"operator": "Exists"}, {"key": "a", "value": ""}]),
    in_pods("spec.overhead", {"cpu": "100m", "example.com/a": "1"}),
    in_pods("spec.resources", {"limits": {"cpu": "1", "hugepages-2Mi": "4Mi"}}),
    in_pods("spec.securityContext", {"seccompProfile": {"type": "Localhost", "localhostProfile": "a/..b"}}),
    in_specs({"os": {"name": "linux"}, "securityContext": {"runAsUser": 1}}),
    in_specs(
        {"containers": [{**CONTAINER, "lifecycle": {"stopSignal": "SIGUSR1"}}], "os": {"name": "linux"}}
    ),
    in_specs(
        {"containers": [{**CONTAINER, "securityContext": {"procMount": "Unmasked"}}], "hostUsers": False}
    ),
    in_specs(
        {
            "serviceAccountName": "me",
            "volumes": [
                {"name": "v", "projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}},
            ],
            "containers": [CONTAINER],
        }
    ),
    in_specs(
        {
            "containers": [{**CONTAINER, "ports": [{"containerPort": 80, "hostPort": 80}]}],
            "initContainers": [
                {**CONTAINER, "name": name, "ports": [{"containerPort": 80, "hostPort": 80}]} for name in "ab"
            ],
        }
    ),
    in_specs(
        {
            "resources": {"requests": {"cpu": "1"}},
            "containers": [{**CONTAINER, "resources": {"requests": {"cpu": "1"}}}],
            "initContainers": [{**CONTAINER, "name": "i1", "resources": {"requests": {"cpu": "1"}}}],
        }
    ),
    in_apps("livenessProbe", {"httpGet": {"port": 80, "path": "", "scheme": ""}}),
    *(in_volumes(*row) for row in RIGHT_VOLUMES),
    *(say(*row) for say in (in_apps, in_inits) for row in RIGHT_CONTAINERS),
]
"""What looks like one of the mistakes, and is none."""


def refused_fields(pod: Json, version: str = "1.32") -> list[str]:
    """The fields that a refusal names."""
    with pytest.raises(ManifestError) as caught:
        read_pod(json.dumps(pod).encode(), Behaviour.of(version))
    return [problem.field for problem in caught.value.errors]


@pytest.mark.parametrize("wrong", WRONG, ids=[f"{i}-{one.field}"[:60] for i, one in enumerate(WRONG)])
def test_wrong_field_is_named(wrong: Saying) -> None:
    """Each of these mistakes is found, and its field named."""
    assert wrong.field in refused_fields(wrong.put(POD))


@pytest.mark.parametrize("right", RIGHT, ids=[f"{i}-{one.field}"[:60] for i, one in enumerate(RIGHT)])
def test_right_field_is_taken(right: Saying) -> None:
    """What is right is not taken for the mistake next to it."""
    assert read_pod(json.dumps(right.put(POD)).encode())


def test_sidecars_are_resized_since_1_33() -> None:
    """An init container has a resize policy from 1.33 on."""
    said = in_inits("resizePolicy", [{"resourceName": "cpu", "restartPolicy": "NotRequired"}])
    pod = said.put(POD)

    assert refused_fields(pod, "1.32") == [said.field]
    assert read_pod(json.dumps(pod).encode(), Behaviour.of("1.33"))


@pytest.mark.parametrize(
    ("field", "spec"),
    [
        ("spec.serviceAccountName", {"serviceAccountName": "robot"}),
        ("spec.imagePullSecrets", {"imagePullSecrets": [{"name": "s"}]}),
        (
            "spec.containers[0].envFrom[0].configMapRef",
            {"containers": [{**CONTAINER, "envFrom": [{"configMapRef": {"name": "m"}}]}]},
        ),
        (
            "spec.containers[0].env[0].valueFrom.secretKeyRef",
            {
                "containers": [
                    {
                        **CONTAINER,
                        "env": [{"name": "E", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}],
                    }
                ]
            },
        ),
        ("spec.volumes[0].secret", {"volumes": [{"name": "v", "secret": {"secretName": "s"}}]}),
        (
            "spec.volumes[0].projected.sources[0].configMap",
            {"volumes": [{"name": "v", "projected": {"sources": [{"configMap": {"name": "m"}}]}}]},
        ),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_static_pod_refers_to_no_api_object(field: str, spec: Json) -> None:
    """From 1.34 on a manifest that refers to an object of the API server is refused (STATIC-22)."""
    pod = in_specs(spec, field).put(POD)

    assert field in refused_fields(pod, "1.34")
    assert read_pod(json.dumps(pod).encode(), Behaviour.of("1.33"))


def test_the_pod_without_a_mistake_is_taken() -> None:
    """The pod that all mistakes are put into is fine by itself."""
    assert read_pod(json.dumps(POD).encode())


@settings(max_examples=200)
@given(st.lists(st.sampled_from([one for one in WRONG if one.place]), min_size=2, max_size=4))
def test_several_mistakes_in_one_pod(wrong: list[Saying]) -> None:
    """A pod with several mistakes is refused for what is wrong in it."""
    made = {one.place[:2]: one for one in wrong}
    pod = POD
    for one in made.values():
        pod = one.put(pod)

    assert {one.field for one in made.values()} & set(refused_fields(pod))


#: Every kind of mistake comes as often as any other, however many rows it has.
MISTAKES = st.sampled_from(sorted(KINDS)).flatmap(lambda kind: st.sampled_from(KINDS[kind]))


@settings(max_examples=100)
@given(st.lists(MISTAKES, min_size=1, max_size=5), st.integers(1, 3))
@run_by(in_world)
async def test_the_rest_of_the_node_goes_on(world: World, wrong: list[Saying], good: int) -> None:
    """A kubelet runs none of the wrong pods and all of the others."""
    for number, one in enumerate(wrong):
        world.disk.write(f"{MANIFESTS}/wrong-{number}.yaml", json.dumps(one.put(POD)).encode())
    for number in range(good):
        world.write(f"good-{number}")
    await world.start()
    await world.let(30)

    assert [world.phase(f"good-{number}-node") for number in range(good)] == ["Running"] * good
    assert len(world.calls("RunPodSandbox")) == good
