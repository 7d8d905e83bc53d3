"""Restart policies and rules of containers in manifests: accepted as the API server would (KEP-5307)."""

import json
from typing import Any

import pytest

from kubelet_reference.api import pods
from kubelet_reference.config import ManifestError, read_pod
from kubelet_reference.util.versions import Behaviour

Json = dict[str, Any]
WITHOUT, WITH, WITH_ALL = Behaviour.of("1.34"), Behaviour.of("1.35"), Behaviour.of("1.36")
CODES: Json = {"operator": "In", "values": [42]}
RULE: Json = {"action": "Restart", "exitCodes": CODES}


def manifest(*, init: bool = False, **fields: Any) -> bytes:
    """A pod of one container, with an init container or without, that has these fields."""
    app: Json = {"name": "c1", "image": "img:1"}
    spec: Json = {"containers": [app if init else app | fields]}
    if init:
        spec["initContainers"] = [{"name": "i1", "image": "img:1", **fields}]
    identity = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}}
    return json.dumps({**identity, "spec": spec}).encode()


def refused(content: bytes, behaviour: Behaviour) -> list[str]:
    """What is wrong with the manifest."""
    with pytest.raises(ManifestError) as caught:
        read_pod(content, behaviour)
    return [str(problem) for problem in caught.value.errors]


@pytest.mark.parametrize("init", [False, True])
def test_any_container_may_have_a_policy_and_rules(*, init: bool) -> None:
    """With the gate ContainerRestartRules app and regular init containers have policies of their own."""
    text = manifest(init=init, restartPolicy="Never", restartPolicyRules=[RULE])
    pod = read_pod(text, WITH)
    one = (pods.init_containers(pod) if init else pods.containers(pod))[0]

    assert one.restartPolicy == "Never"
    assert [rule.action for rule in one.restartPolicyRules or ()] == ["Restart"]


def test_only_sidecars_have_a_policy_without_the_gate() -> None:
    """Before 1.35, or with the gate off, only an init container has a policy, and only Always."""
    off = Behaviour.of("1.35", {"ContainerRestartRules": False})
    app = "spec.containers[0].restartPolicy: only allowed in init containers"
    init = 'spec.initContainers[0].restartPolicy: expected Always, got "Never"'

    for behaviour in (WITHOUT, off):
        assert refused(manifest(restartPolicy="Always"), behaviour) == [app]
        assert refused(manifest(init=True, restartPolicy="Never"), behaviour) == [init]
        assert read_pod(manifest(restartPolicyRules=[RULE]), behaviour)
        assert read_pod(manifest(init=True, restartPolicy="Always"), behaviour)


@pytest.mark.parametrize(
    ("rule", "problem"),
    [
        (
            {"action": "Stop", "exitCodes": CODES},
            'action: expected one of Restart, RestartAllContainers, got "Stop"',
        ),
        ({"action": "Restart"}, "exitCodes: missing"),
        (
            {"action": "Restart", "exitCodes": {"operator": "In", "values": list(range(256))}},
            "exitCodes.values: expected at most 255 codes",
        ),
        (
            {"action": "Restart", "exitCodes": CODES | {"operator": "Is"}},
            'exitCodes.operator: expected one of In, NotIn, got "Is"',
        ),
        (
            {"action": "RestartAllContainers", "exitCodes": CODES},
            "action: RestartAllContainers is only allowed with its feature gate",
        ),
    ],
)
def test_wrong_rule_is_refused(rule: Json, problem: str) -> None:
    """A rule has an action that the gates allow, an operator, and at most 255 exit codes."""
    (found,) = refused(manifest(restartPolicy="Never", restartPolicyRules=[rule]), WITH)

    assert found.startswith(f"spec.containers[0].restartPolicyRules[0].{problem}")


def test_rules_need_a_policy_and_are_twenty_at_most() -> None:
    """Rules stand beside a policy for what no rule fits."""
    (alone,) = refused(manifest(restartPolicyRules=[RULE]), WITH)
    (many,) = refused(manifest(restartPolicy="Never", restartPolicyRules=[RULE] * 21), WITH)

    assert alone == "spec.containers[0].restartPolicy: missing beside restartPolicyRules"
    assert many == "spec.containers[0].restartPolicyRules: expected at most 20 rules, got 21"


def test_a_rule_may_restart_the_whole_pod() -> None:
    """With the gate RestartAllContainersOnContainerExits a rule may restart all containers (KEP-5532)."""
    rule = {"action": "RestartAllContainers", "exitCodes": CODES}

    assert read_pod(manifest(restartPolicy="Never", restartPolicyRules=[rule]), WITH_ALL)
