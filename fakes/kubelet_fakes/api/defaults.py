"""What the API server fills in when a pod is created: a kubelet relies on these fields being there.

Source: the defaulting functions of core/v1, and the pod strategy's PrepareForCreate for the status.
"""

import base64
from collections.abc import Iterator
from typing import Any

from kubelet_fakes.api.objects import is_array, is_object
from kubelet_fakes.api.quantity import qos_class

_CONTAINER_LISTS = ("initContainers", "containers", "ephemeralContainers")
_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_HOOKS = ("postStart", "preStop")
_FILE_MODE = 0o644
_TOKEN_SECONDS = 3600
_VOLUMES_WITH_MODE = ("configMap", "secret", "projected", "downwardAPI")

Json = dict[str, Any]


def default_pod(pod: Json) -> None:
    """Fill in a new pod, in place: its spec, and the status that every new pod has."""
    default_pod_spec(pod)
    pod["status"] = {"phase": "Pending", "qosClass": qos_class(pod["spec"])}


def default_pod_spec(pod: Json) -> None:
    """Fill in the pod's spec, in place."""
    spec: Json = pod.setdefault("spec", {})
    spec.setdefault("restartPolicy", "Always")
    # A negative one is an old mistake that counts as 1 (kubernetes/kubernetes#115606).
    grace = spec.setdefault("terminationGracePeriodSeconds", 30)
    spec["terminationGracePeriodSeconds"] = 1 if grace < 0 else grace
    spec.setdefault("dnsPolicy", "ClusterFirst")
    spec.setdefault("securityContext", {})
    spec.setdefault("schedulerName", "default-scheduler")
    spec.setdefault("enableServiceLinks", True)
    for volume in _dicts(spec, "volumes"):
        _default_volume(volume)
    for kind in _CONTAINER_LISTS:
        for container in _dicts(spec, kind):
            _default_container(container, host_network=bool(spec.get("hostNetwork")))


def _default_container(container: Json, *, host_network: bool) -> None:
    container.setdefault("terminationMessagePath", "/dev/termination-log")
    container.setdefault("terminationMessagePolicy", "File")
    container.setdefault("imagePullPolicy", _pull_policy(str(container.get("image") or "")))
    resources: Json = container.setdefault("resources", {})
    if resources.get("limits"):
        resources["requests"] = resources["limits"] | (resources.get("requests") or {})
    for port in _dicts(container, "ports"):
        port.setdefault("protocol", "TCP")
        if host_network and "containerPort" in port:
            port.setdefault("hostPort", port["containerPort"])
    for variable in _dicts(container, "env"):
        _default_field_ref(variable.get("valueFrom"))
    for name in _PROBES:
        if isinstance(container.get(name), dict):
            _default_probe(container[name])
    hooks = container.get("lifecycle")
    for name in _HOOKS:
        if is_object(hooks) and is_object(hooks.get(name)):
            _default_handler(hooks[name])


def default_secret(secret: Json) -> None:
    """Fill in a secret, in place: what is given as plain text becomes data."""
    secret.setdefault("type", "Opaque")
    plain: Json = secret.pop("stringData", {})
    if plain:
        secret["data"] = secret.get("data", {}) | {key: _base64(value) for key, value in plain.items()}


def default_namespace(namespace: Json) -> None:
    """Fill in a new namespace, in place."""
    namespace["status"] = {"phase": "Active"}


def default_service(service: Json) -> None:
    """Fill in a service, in place, but for its cluster IP."""
    spec: Json = service.setdefault("spec", {})
    spec.setdefault("type", "ClusterIP")
    spec.setdefault("sessionAffinity", "None")
    for port in _dicts(spec, "ports"):
        port.setdefault("protocol", "TCP")
        port.setdefault("targetPort", port.get("port"))


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def _pull_policy(image: str) -> str:
    """Always for the tag latest or none at all, else IfNotPresent; a digest pins the image."""
    name, _, digest = image.partition("@")
    tag = name.rpartition("/")[2].partition(":")[2]
    return "Always" if not digest and tag in {"", "latest"} else "IfNotPresent"


def _default_probe(probe: Json) -> None:
    # A zero counts as not given: the API's types do not distinguish the two.
    for field, default in (
        ("timeoutSeconds", 1),
        ("periodSeconds", 10),
        ("successThreshold", 1),
        ("failureThreshold", 3),
    ):
        probe[field] = probe.get(field) or default
    _default_handler(probe)


def _default_handler(handler: Json) -> None:
    http = handler.get("httpGet")
    if is_object(http):
        http.setdefault("path", "/")
        http.setdefault("scheme", "HTTP")
    grpc = handler.get("grpc")
    if is_object(grpc):
        grpc.setdefault("service", "")


def _default_volume(volume: Json) -> None:
    if len(volume) == 1:
        volume["emptyDir"] = {}
    for kind in _VOLUMES_WITH_MODE:
        if isinstance(volume.get(kind), dict):
            volume[kind].setdefault("defaultMode", _FILE_MODE)
    if isinstance(volume.get("hostPath"), dict):
        volume["hostPath"].setdefault("type", "")
    for item in _dicts(volume.get("downwardAPI"), "items"):
        _default_field_ref(item)
    for source in _dicts(volume.get("projected"), "sources"):
        if isinstance(source.get("serviceAccountToken"), dict):
            source["serviceAccountToken"].setdefault("expirationSeconds", _TOKEN_SECONDS)
        for item in _dicts(source.get("downwardAPI"), "items"):
            _default_field_ref(item)


def _default_field_ref(holder: object) -> None:
    if is_object(holder) and is_object(holder.get("fieldRef")):
        holder["fieldRef"].setdefault("apiVersion", "v1")


def _dicts(holder: object, field: str) -> Iterator[Json]:
    """The objects of a list that may be missing; what is no object is left to the validation."""
    items = holder.get(field) if is_object(holder) else None
    for item in items if is_array(items) else ():
        if is_object(item):
            yield item
