"""The environment of a container, from all its sources."""

import base64
from typing import Any, cast

import pytest
from lightkube.models.core_v1 import ConfigMap, Secret
from runtime_world import a_container, a_pod

from kubelet_fakes.clock import run
from kubelet_reference.api import pods
from kubelet_reference.api.expansion import ConfigError, expand
from kubelet_reference.kuberuntime.container.environment import Environment
from kubelet_reference.util.ports import ApiError, ApiServer
from kubelet_reference.util.settings import Settings


class Objects:
    """An API server with one config map and one secret, both named there."""

    async def get_config_map(self, namespace: str, name: str) -> ConfigMap:
        """The config map, if it is that one."""
        self._require(namespace, name, "configmaps")
        return ConfigMap(data={"COLOUR": "red", "SIZE": "small"})

    async def get_secret(self, namespace: str, name: str) -> Secret:
        """The secret, if it is that one."""
        self._require(namespace, name, "secrets")
        return Secret(data={"TOKEN": base64.b64encode(b"hush").decode()})

    def _require(self, namespace: str, name: str, kind: str) -> None:
        if (namespace, name) != ("default", "there"):
            raise ApiError(404, "NotFound", f'{kind} "{name}" not found')


def _made(**fields: Any) -> dict[str, str]:
    pod = a_pod(a_container("c1", **fields), metadata={"labels": {"app": "web"}})
    environment = Environment(cast("ApiServer", Objects()), Settings(node_name="node"))
    return run(environment.make(pod, pods.containers(pod)[0], ("10.0.0.5", "fd00::5")))


def _env(name: str, **source: Any) -> dict[str, Any]:
    return {"name": name, "valueFrom": source}


def test_objects() -> None:
    """Config maps and secrets give variables whole or by key; a declared one wins (START-09)."""
    found = _made(
        envFrom=[{"configMapRef": {"name": "there"}}, {"prefix": "S_", "secretRef": {"name": "there"}}],
        env=[
            {"name": "SIZE", "value": "large"},
            _env("SECRET", secretKeyRef={"name": "there", "key": "TOKEN"}),
            _env("COLOURS", configMapKeyRef={"name": "there", "key": "COLOUR"}),
            {"name": "BOTH", "value": "$(COLOUR) $(SIZE)"},
        ],
    )

    assert found == {
        "SIZE": "large",
        "SECRET": "hush",
        "COLOURS": "red",
        "BOTH": "red large",
        "COLOUR": "red",
        "S_TOKEN": "hush",
    }


def test_fields() -> None:
    """Fields of the pod, its labels, its IPs, and amounts in units of a divisor."""
    paths = {
        "NAME": "metadata.name",
        "APP": "metadata.labels['app']",
        "NODE": "spec.nodeName",
        "IP": "status.podIP",
        "IPS": "status.podIPs",
        "HOST": "status.hostIP",
    }
    fields = [_env(name, fieldRef={"fieldPath": path}) for name, path in paths.items()]
    amount = _env("MEMORY", resourceFieldRef={"resource": "limits.memory", "divisor": "1Mi"})

    found = _made(env=[*fields, amount], resources={"limits": {"memory": "100Mi"}})

    assert found == {
        "NAME": "web",
        "APP": "web",
        "NODE": "node",
        "IP": "10.0.0.5",
        "IPS": "10.0.0.5,fd00::5",
        "HOST": "10.0.0.1",
        "MEMORY": "100",
    }


def test_optional_sources() -> None:
    """An optional source that is not there gives nothing."""
    missing = {"name": "away", "optional": True}

    found = _made(
        envFrom=[{"configMapRef": missing}, {"secretRef": missing}],
        env=[_env("A", secretKeyRef={**missing, "key": "k"}), {"name": "B", "value": "b"}],
    )

    assert found == {"B": "b"}


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ({"configMapKeyRef": {"name": "away", "key": "k"}}, 'configmaps "away" not found'),
        ({"secretKeyRef": {"name": "there", "key": "k"}}, "couldn't find key k in Secret default/there"),
        ({"fieldRef": {"fieldPath": "spec.secret"}}, "unsupported fieldPath"),
        ({"resourceFieldRef": {"resource": "wishes.cpu"}}, "unsupported container resource"),
    ],
    ids=["object", "key", "field", "resource"],
)
def test_missing_sources(source: dict[str, Any], text: str) -> None:
    """What is not there fails the config, in words."""
    with pytest.raises(ConfigError, match=text):
        _made(env=[_env("A", **source)])


@pytest.mark.parametrize(
    ("text", "value"),
    [("$(A)", "1"), ("$$(A)", "$(A)"), ("$(B)", "$(B)"), ("$A", "$A"), ("a$", "a$"), ("$$$(A)", "$1")],
)
def test_expansion(text: str, value: str) -> None:
    """Known names are replaced, unknown ones stay, two dollars are one."""
    assert expand(text, {"A": "1"}) == value
