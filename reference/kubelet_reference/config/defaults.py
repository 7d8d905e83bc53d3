"""What the API server would fill in: the kubelet does it itself for pods that never pass through one.

Other defaults, such as those of probes, are where the field is read.
"""

from kubelet_reference.config.validation.fields import JsonObject

GRACE_SECONDS = 30
_FILE_MODE = 0o644
_OF_FILES = ("configMap", "secret", "downwardAPI", "projected")
"""The volumes whose files have a mode."""


def with_defaults(pod: JsonObject) -> JsonObject:
    """The pod, clean data, with the API's defaults where it says nothing."""
    spec: JsonObject = {"terminationGracePeriodSeconds": GRACE_SECONDS, **pod["spec"]}
    for kind in ("initContainers", "containers"):
        if kind in spec:
            spec[kind] = [_container(one, host_network=spec.get("hostNetwork", False)) for one in spec[kind]]
    if "volumes" in spec:
        spec["volumes"] = [_volume(one) for one in spec["volumes"]]
    # A negative grace is an old mistake that stays allowed, and counts as 1.
    if spec["terminationGracePeriodSeconds"] < 0:
        spec["terminationGracePeriodSeconds"] = 1
    return {**pod, "spec": spec}


def _container(one: JsonObject, *, host_network: bool) -> JsonObject:
    full = {
        "terminationMessagePolicy": "File",
        **one,
        "terminationMessagePath": one.get("terminationMessagePath") or "/dev/termination-log",
    }
    if "ports" in one:
        full["ports"] = [_port(port, host_network=host_network) for port in one["ports"]]
    return full


def _volume(one: JsonObject) -> JsonObject:
    return {**one, **{kind: {"defaultMode": _FILE_MODE, **one[kind]} for kind in _OF_FILES if kind in one}}


def _port(port: JsonObject, *, host_network: bool) -> JsonObject:
    on_host = {"hostPort": port["containerPort"]} if host_network and not port.get("hostPort") else {}
    return {"protocol": "TCP", **port, **on_host}
