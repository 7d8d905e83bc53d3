"""Manifests: what is read, what is filled in, and what is refused with which words."""

import json
from contextlib import suppress
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from lightkube.models.core_v1 import Pod

from kubelet_reference.api import pods
from kubelet_reference.api.resources import limits, requests
from kubelet_reference.config import ManifestError, read_pod, read_pods
from kubelet_reference.config.documents import LARGEST

GOOD = """
apiVersion: v1
kind: Pod
metadata: {name: web, creationTimestamp: null, labels: {app: web}}
spec:
  terminationGracePeriodSeconds: 5
  hostNetwork: false
  initContainers: [{name: i1, image: "img:1"}]
  containers:
  - name: c1
    image: img:1
    command: [run]
    ports: [{containerPort: 80, hostPort: 8080, name: http}]
    env: [{name: TIME, value: "12:30"}, {name: NAME, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]
    resources: {limits: {cpu: 1, memory: 1Gi}, requests: {cpu: 500m}}
    livenessProbe: {httpGet: {port: http}, periodSeconds: 0}
    lifecycle: {preStop: {exec: {command: [stop]}}}
    volumeMounts: [{name: v, mountPath: /v}]
  volumes: [{name: v}, {name: config, configMap: {name: x}}]
"""


def refused(text: str | bytes) -> list[str]:
    """What is wrong with the manifest, finding by finding."""
    with pytest.raises(ManifestError) as caught:
        read_pod(text.encode() if isinstance(text, str) else text)
    return [str(problem) for problem in caught.value.errors]


def test_pod_gets_the_defaults_of_the_api() -> None:
    """What the manifest leaves out is what the API server would have filled in."""
    pod = read_pod(GOOD.encode())

    one = pods.containers(pod)[0]
    assert (one.terminationMessagePolicy, one.terminationMessagePath) == ("File", "/dev/termination-log")
    assert (limits(one), requests(one)) == ({"cpu": "1", "memory": "1Gi"}, {"cpu": "500m", "memory": "1Gi"})
    assert [port.protocol for port in one.ports or ()] == ["TCP"]


def test_grace_period_is_thirty_seconds() -> None:
    """A manifest without a grace period gets 30 s."""
    pod = read_pod(GOOD.replace("terminationGracePeriodSeconds: 5", "").encode())

    assert pods.grace_seconds(pod) == 30


def test_host_network_takes_the_container_port() -> None:
    """On the host's network the host port is the container's."""
    text = GOOD.replace("hostNetwork: false", "hostNetwork: true").replace(", hostPort: 8080", "")

    assert [port.hostPort for port in pods.containers(read_pod(text.encode()))[0].ports or ()] == [80]


def test_json_is_read_as_yaml_is() -> None:
    """The same manifest as JSON is the same pod; escapes that only JSON has are fine."""
    data = yaml.safe_load(GOOD)
    data["metadata"]["annotations"] = {"note": "\N{GRINNING FACE}"}

    pod = read_pod(json.dumps(data, indent="\t").encode())

    assert pods.annotations(pod) == {"note": "\N{GRINNING FACE}"}
    assert pods.spec(pod) == pods.spec(read_pod(GOOD.encode()))


#: What stands in the good manifest, what takes its place, and what is then said.
WRONG: tuple[tuple[str, str, str], ...] = (
    ("kind: Pod", "kind: Deployment", 'kind: expected Pod, got "Deployment"'),
    ("kind: Pod", "", "kind: missing"),
    ("apiVersion: v1", "apiVersion: 1", "apiVersion: expected v1, got 1"),
    ("name: web, creation", "creation", "metadata.name: missing"),
    (
        "creationTimestamp: null",
        "creationTimestamp: 2020-01-01",
        'metadata.creationTimestamp: expected a time such as 2030-01-31T12:00:00Z, got "2020-01-01"',
    ),
    ("{app: web}", "{app: 1}", "metadata.labels.app: expected a string, got 1"),
    ("{app: web}", "[app]", "metadata.labels: expected an object, got a list"),
    ("Seconds: 5", 'Seconds: "5"', 'spec.terminationGracePeriodSeconds: expected a whole number, got "5"'),
    ("Seconds: 5", "Seconds: 1.5", "spec.terminationGracePeriodSeconds: expected a whole number, got 1.5"),
    ("hostNetwork: false", "hostNetwork: 0", "spec.hostNetwork: expected true or false, got 0"),
    ("hostNetwork: false", "hostNetwrk: false", "spec.hostNetwrk: unknown field, did you mean hostNetwork?"),
    ("hostNetwork: false", "zzz: {}", "spec.zzz: unknown field"),
    (
        "hostNetwork: false",
        "restartPolicy: Sometimes",
        'spec.restartPolicy: expected one of Always, OnFailure, Never, got "Sometimes"',
    ),
    ("hostNetwork: false", "resourceClaims: [{name: x}]", "spec.resourceClaims: not allowed in a manifest"),
    (
        "hostNetwork: false",
        "ephemeralContainers: [{name: d, image: x}]",
        "spec.ephemeralContainers: not allowed in a manifest",
    ),
    ("name: i1", "name: c1", 'spec.containers[0].name: "c1" is taken by spec.initContainers[0].name'),
    (
        'image: "img:1"',
        'image: "img:1", restartPolicy: Never',
        'spec.initContainers[0].restartPolicy: expected Always, got "Never"',
    ),
    (
        'image: "img:1"',
        'image: "img:1", livenessProbe: {exec: {}}',
        "spec.initContainers[0].livenessProbe: not allowed in init containers",
    ),
    ("    image: img:1\n", "", "spec.containers[0].image: missing"),
    (
        "image: img:1\n",
        "image: img:1\n    imagePullPolicy: Sometimes\n",
        'spec.containers[0].imagePullPolicy: expected one of Always, IfNotPresent, Never, got "Sometimes"',
    ),
    ("[run]", "run", 'spec.containers[0].command: expected a list, got "run"'),
    (
        "Port: 80,",
        "Port: 80000,",
        "spec.containers[0].ports[0].containerPort: expected a number from 1 to 65535",
    ),
    (
        "name: http}]",
        "name: http}, {containerPort: 81, name: http}]",
        'spec.containers[0].ports[1].name: "http" is taken by spec.containers[0].ports[0].name',
    ),
    (
        "name: http}]",
        "name: http}, {containerPort: 81, hostPort: 8080}]",
        'spec.containers[0].ports[1].hostPort: "TCP :8080" is taken by spec.containers[0].ports[0].hostPort',
    ),
    (
        "name: NAME, valueFrom",
        "name: NAME, value: x, valueFrom",
        "spec.containers[0].env[1].valueFrom: not allowed beside value",
    ),
    ('"12:30"', "yes", "spec.containers[0].env[0].value: expected a string, got true"),
    ("name: NAME", 'name: "A=B"', "spec.containers[0].env[1].name: expected the name of a variable"),
    (
        "memory: 1Gi",
        "memory: lots",
        'spec.containers[0].resources.limits.memory: expected a quantity such as 500m or 1Gi, got "lots"',
    ),
    (
        "cpu: 500m",
        "cpu: 2",
        'spec.containers[0].resources.requests.cpu: expected at most the limit 1, got "2"',
    ),
    (
        "periodSeconds: 0",
        "periodSeconds: -1",
        "spec.containers[0].livenessProbe.periodSeconds: expected a number from 0 to 2147483647, got -1",
    ),
    (
        "periodSeconds: 0",
        "successThreshold: 2",
        "spec.containers[0].livenessProbe.successThreshold: expected 1, got 2",
    ),
    (
        "periodSeconds: 0",
        "exec: {command: [x]}",
        "spec.containers[0].livenessProbe: expected one of exec, httpGet, tcpSocket, grpc, got exec and",
    ),
    (
        "port: http",
        "path: /",
        "spec.containers[0].livenessProbe.httpGet.port: missing",
    ),
    (
        "preStop: {exec: {command: [stop]}}",
        "preStop: {}",
        "spec.containers[0].lifecycle.preStop: expected one of exec, httpGet, tcpSocket, sleep, got none",
    ),
    (
        "[{name: v, mountPath: /v}]",
        "[{name: w, mountPath: /v}]",
        'spec.containers[0].volumeMounts[0].name: expected the name of a volume of the pod, got "w"',
    ),
    (
        "[{name: v}, {name: config",
        "[{name: v}, {name: v",
        'spec.volumes[1].name: "v" is taken by spec.volumes[0].name',
    ),
    (
        "[{name: v},",
        "[{name: v, emptyDir: {}, hostPath: {path: /}},",
        "spec.volumes[0]: expected one source, got emptyDir and hostPath",
    ),
)


@pytest.mark.parametrize(("there", "instead", "said"), WRONG, ids=[row[2] for row in WRONG])
def test_wrong_field_is_named(there: str, instead: str, said: str) -> None:
    """Each mistake is refused with the path of its field, what was expected and what stands there."""
    assert there in GOOD

    assert any(text.startswith(said) for text in refused(GOOD.replace(there, instead, 1)))


def test_all_mistakes_are_reported_at_once() -> None:
    """Two wrong fields are two findings."""
    text = GOOD.replace("[run]", "run").replace("hostNetwork: false", "hostNetwork: 0")

    assert len(refused(text)) == 2


TOO_DEEP = "not YAML: maximum recursion depth exceeded"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "expected a pod, got null"),
        ("[]", "expected a pod, got an empty list"),
        ("hello", 'expected a pod, got "hello"'),
        ("a: [", "not YAML: line 1, column 5"),
        ("a: 1\n---\nb: 2", "not YAML: line 2, column 1"),
        ("a: !!python/object:os.system x", "not YAML: line 1, column 4"),
        ("a: !!int x", "not YAML: invalid literal"),
        pytest.param("[" * 1_500, TOO_DEEP, id="lists", marks=pytest.mark.slow),
        pytest.param("{" * 1_500, TOO_DEEP, id="objects", marks=pytest.mark.slow),
        (b"\xff\xfe\x00\xd8", "not YAML: unacceptable character"),
        (b"\x00", "not YAML: unacceptable character"),
        (b"x" * (LARGEST + 1), f"expected at most {LARGEST} bytes, got {LARGEST + 1}"),
    ],
    ids=lambda value: ascii(value)[:60],
)
def test_what_is_no_manifest_is_refused(text: str | bytes, said: str) -> None:
    """What is not YAML, not one document or not an object is refused, whatever it is."""
    found = refused(text)

    assert len(found) == 1
    assert found[0].startswith(said)


def test_negative_grace_counts_as_one_second() -> None:
    """A pod with a negative grace period is not refused."""
    pod = read_pod(GOOD.replace("Seconds: 5", "Seconds: -5").encode())

    assert pods.grace_seconds(pod) == 1


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        ({"metadata": {"name": "b"}, "spec": {}}, "spec.containers: missing"),
        (1, "expected a pod, got 1"),
    ],
    ids=["no container", "no pod"],
)
def test_list_with_a_refused_pod_is_refused(bad: object, said: str) -> None:
    """A list is refused for one pod of it; items need not say that they are pods."""
    good = {"metadata": {"name": "a"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    (found,) = read_pods(json.dumps({"apiVersion": "v1", "kind": "PodList", "items": [good]}).encode())

    assert pods.name(found) == "a"
    with pytest.raises(ManifestError) as caught:
        read_pods(json.dumps({"apiVersion": "v1", "kind": "PodList", "items": [good, bad]}).encode())
    assert str(caught.value) == said


def test_body_of_another_kind_is_refused_whole() -> None:
    """A body that is neither pod nor list has no pods at all."""
    with pytest.raises(ManifestError, match='kind: expected Pod, got "Service"'):
        read_pods(b"{apiVersion: v1, kind: Service}")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
PATHS: tuple[tuple[str | int, ...], ...] = (
    ("metadata",),
    ("metadata", "annotations"),
    ("spec",),
    ("spec", "containers"),
    ("spec", "containers", 0),
    ("spec", "containers", 0, "livenessProbe"),
    ("spec", "containers", 0, "resources", "limits"),
    ("spec", "containers", 0, "ports", 0, "containerPort"),
    ("spec", "volumes", 1, "configMap"),
    ("spec", "affinity"),
    ("status",),
)


@pytest.mark.slow
@given(st.sampled_from(PATHS), JSON)
def test_anything_anywhere_is_a_pod_or_a_manifest_error(path: tuple[str | int, ...], value: object) -> None:
    """Whatever stands in whatever field, the outcome is a pod or a refusal, never another error."""
    data: Any = yaml.safe_load(GOOD)
    place = data
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value

    body = json.dumps({"apiVersion": "v1", "kind": "PodList", "items": [data]}).encode()
    found: tuple[Pod, ...] = ()
    with suppress(ManifestError):
        found = read_pods(body)

    assert all(pods.containers(pod) for pod in found)
