"""What the API server would fill in: the kubelet does it itself for pods that never pass through one."""

from collections.abc import Mapping

from kubelet_reference.config.validation.fields import JsonObject

GRACE_SECONDS = 30
_FILE_MODE = 0o644
_SPEC: Mapping[str, object] = {
    "restartPolicy": "Always",
    "dnsPolicy": "ClusterFirst",
    "schedulerName": "default-scheduler",
    "terminationGracePeriodSeconds": GRACE_SECONDS,
    "enableServiceLinks": True,
}
_PROBE = {"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3}
"""Seconds and counts; 0 stands for the default too."""
_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_HOOKS = ("postStart", "preStop")
_VOLUMES: Mapping[str, Mapping[str, object]] = {
    "secret": {"defaultMode": _FILE_MODE},
    "configMap": {"defaultMode": _FILE_MODE},
    "downwardAPI": {"defaultMode": _FILE_MODE},
    "projected": {"defaultMode": _FILE_MODE},
    "hostPath": {"type": ""},
}


def with_defaults(pod: JsonObject) -> JsonObject:
    """The pod, clean data, with the API's defaults where it says nothing."""
    spec: JsonObject = {**_SPEC, "securityContext": {}, **pod["spec"]}
    for kind in ("initContainers", "containers"):
        if kind in spec:
            spec[kind] = [_container(one, host_network=spec.get("hostNetwork", False)) for one in spec[kind]]
    # A negative grace is an old mistake that stays allowed, and counts as 1.
    if spec["terminationGracePeriodSeconds"] < 0:
        spec["terminationGracePeriodSeconds"] = 1
    if "volumes" in spec:
        spec["volumes"] = [_volume(one) for one in spec["volumes"]]
    return {**pod, "spec": spec}


def default_pull_policy(image: str) -> str:
    """Always for the tag latest, given or implied, else IfNotPresent; a digest is a version (IMAGE-01)."""
    name, _, digest = image.partition("@")
    tag = name.rpartition("/")[2].partition(":")[2] or "latest"
    return "Always" if tag == "latest" and not digest else "IfNotPresent"


def _container(one: JsonObject, *, host_network: bool) -> JsonObject:
    full = {
        "imagePullPolicy": default_pull_policy(one.get("image", "")),
        "terminationMessagePolicy": "File",
        **one,
        "terminationMessagePath": one.get("terminationMessagePath") or "/dev/termination-log",
    }
    if "ports" in one:
        full["ports"] = [_port(port, host_network=host_network) for port in one["ports"]]
    if "resources" in one:
        full["resources"] = _resources(one["resources"])
    if "env" in one:
        full["env"] = [_variable(variable) for variable in one["env"]]
    if "lifecycle" in one:
        full["lifecycle"] = {
            name: _handler(value) if name in _HOOKS else value for name, value in one["lifecycle"].items()
        }
    for name in _PROBES:
        if name in one:
            full[name] = _probe(one[name])
    return full


def _port(port: JsonObject, *, host_network: bool) -> JsonObject:
    on_host = {"hostPort": port["containerPort"]} if host_network and not port.get("hostPort") else {}
    return {"protocol": "TCP", **port, **on_host}


def _resources(resources: JsonObject) -> JsonObject:
    """A limit without a request is the request too."""
    requests = {**resources.get("limits", {}), **resources.get("requests", {})}
    return {**resources, "requests": requests} if requests else resources


def _variable(variable: JsonObject) -> JsonObject:
    reference = variable.get("valueFrom", {})
    if "fieldRef" not in reference:
        return variable
    return {**variable, "valueFrom": {**reference, "fieldRef": {"apiVersion": "v1", **reference["fieldRef"]}}}


def _handler(handler: JsonObject) -> JsonObject:
    if "httpGet" not in handler:
        return handler
    get: JsonObject = handler["httpGet"]
    return {**handler, "httpGet": {"scheme": "HTTP", **get, "path": get.get("path") or "/"}}


def _probe(probe: JsonObject) -> JsonObject:
    return {**_handler(probe), **{name: probe.get(name) or default for name, default in _PROBE.items()}}


def _volume(volume: JsonObject) -> JsonObject:
    """A volume without a source is an empty directory."""
    if volume.keys() <= {"name"}:
        return {**volume, "emptyDir": {}}
    return {
        source: {**_VOLUMES[source], **value} if source in _VOLUMES else value
        for source, value in volume.items()
    }
