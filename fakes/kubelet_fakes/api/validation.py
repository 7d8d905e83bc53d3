"""What the API server refuses when a pod is created, field by field.

Source: ValidatePodCreate and what it calls. It covers what a kubelet's behaviour depends on: names, images,
policies, probes, hooks, ports, mounts and resources; the rest of a real server's rules is left out.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from kubelet_fakes.api.errors import FieldError
from kubelet_fakes.api.objects import EMPTY
from kubelet_fakes.api.quantity import amount

REQUIRED, INVALID, DUPLICATE = "Required value", "Invalid value", "Duplicate value"
FORBIDDEN, UNSUPPORTED, NOT_FOUND = "Forbidden", "Unsupported value", "Not found"

_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_NAME_MAX = 253
_PORT_MAX = 65535
_INT32_MAX = 2**31 - 1
_HANDLERS = ("exec", "httpGet", "tcpSocket", "grpc", "sleep")
_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_NOT_FOR_EPHEMERAL = ("ports", *_PROBES, "lifecycle")
_POLICIES = {
    "restartPolicy": ("Always", "Never", "OnFailure"),
    "dnsPolicy": ("ClusterFirst", "ClusterFirstWithHostNet", "Default", "None"),
}
_CONTAINER_POLICIES = {
    "imagePullPolicy": ("Always", "IfNotPresent", "Never"),
    "terminationMessagePolicy": ("FallbackToLogsOnError", "File"),
}

Json = dict[str, Any]


def check_name(name: str, path: str = "metadata.name") -> Iterator[FieldError]:
    """An object's name is a DNS subdomain of lower case."""
    if not name:
        yield FieldError(path, REQUIRED, "name or generateName is required")
    elif len(name) > _NAME_MAX or not _SUBDOMAIN.fullmatch(name):
        yield FieldError(
            path, INVALID, f'"{name}": a lowercase RFC 1123 subdomain must be at most 253 of [a-z0-9.-]'
        )


def check_runtime_class(thing: Json) -> Iterator[FieldError]:
    """The handler of a runtime class is a DNS label, so it is never empty."""
    if not _LABEL.fullmatch(thing["handler"]):
        yield FieldError("handler", INVALID, f'"{thing["handler"]}": a lowercase RFC 1123 label is expected')


def check_pod(spec: Json) -> Iterator[FieldError]:
    """Everything that is wrong with the spec of a new pod whose defaults are filled in."""
    yield from _check_policies(spec, _POLICIES, "spec")
    deadline = spec.get("activeDeadlineSeconds")
    if deadline is not None and not 1 <= deadline <= _INT32_MAX:
        yield FieldError(
            "spec.activeDeadlineSeconds", INVALID, f"{deadline}: must be between 1 and {_INT32_MAX}"
        )
    if spec.get("nodeName"):
        yield from check_name(spec["nodeName"], "spec.nodeName")
    if spec.get("ephemeralContainers"):
        text = "ephemeral containers not allowed in create requests"
        yield FieldError("spec.ephemeralContainers", FORBIDDEN, text)
    yield from _check_unique(spec.get("volumes", ()), "spec.volumes", {})
    if not spec.get("containers"):
        yield FieldError("spec.containers", REQUIRED)
    yield from _check_containers(spec)


def check_ephemeral(spec: Json) -> Iterator[FieldError]:
    """What is wrong with the ephemeral containers of a pod."""
    others = {each["name"]: "" for kind in ("initContainers", "containers") for each in spec.get(kind, ())}
    found = spec.get("ephemeralContainers", [])
    yield from _check_unique(found, "spec.ephemeralContainers", dict(others))
    for index, container in enumerate(found):
        path = f"spec.ephemeralContainers[{index}]"
        yield from _check_container(container, path, spec)
        for field in _NOT_FOR_EPHEMERAL:
            if container.get(field):
                yield FieldError(f"{path}.{field}", FORBIDDEN, "cannot be set for an Ephemeral Container")
        if container.get("resources"):
            yield FieldError(f"{path}.resources", FORBIDDEN, "cannot be set for an Ephemeral Container")
        target = container.get("targetContainerName")
        if target and target not in others:
            yield FieldError(f"{path}.targetContainerName", NOT_FOUND, f'"{target}"')


def _check_containers(spec: Json) -> Iterator[FieldError]:
    names: dict[str, str] = {}
    for kind in ("containers", "initContainers"):
        containers = spec.get(kind, ())
        yield from _check_unique(containers, f"spec.{kind}", names)
        for index, container in enumerate(containers):
            path = f"spec.{kind}[{index}]"
            yield from _check_container(container, path, spec)
            check: Callable[[Json, str], Iterator[FieldError]]
            check = _check_app if kind == "containers" or is_sidecar(container) else _check_init
            yield from check(container, path)


def is_sidecar(container: Mapping[str, Any]) -> bool:
    """Whether an init container goes on beside the others."""
    return container.get("restartPolicy") == "Always"


def _check_container(container: Json, path: str, spec: Json) -> Iterator[FieldError]:
    """What holds for containers of every kind."""
    if not container.get("image"):
        yield FieldError(f"{path}.image", REQUIRED)
    elif container["image"] != container["image"].strip():
        yield FieldError(f"{path}.image", INVALID, "must not have leading or trailing whitespace")
    yield from _check_policies(container, _CONTAINER_POLICIES, path)
    if container.get("restartPolicy"):
        yield from _check_policies(container, {"restartPolicy": _POLICIES["restartPolicy"]}, path)
    elif container.get("restartPolicyRules"):
        yield FieldError(f"{path}.restartPolicy", REQUIRED, "must be set with restartPolicyRules")
    for index, port in enumerate(container.get("ports", ())):
        yield from _check_port(port, f"{path}.ports[{index}]")
    volumes = [volume["name"] for volume in spec.get("volumes", ())]
    for index, mount in enumerate(container.get("volumeMounts", ())):
        if mount["name"] not in volumes:
            yield FieldError(f"{path}.volumeMounts[{index}].name", NOT_FOUND, f'"{mount["name"]}"')
    yield from _check_resources(container.get("resources") or EMPTY, f"{path}.resources")


def _check_app(container: Json, path: str) -> Iterator[FieldError]:
    """Probes and hooks of a container that is meant to stay."""
    for name in _PROBES:
        probe = container.get(name)
        if probe:
            yield from _check_probe(probe, f"{path}.{name}", only_one_success=name != "readinessProbe")
    for name, hook in (container.get("lifecycle") or EMPTY).items():
        if name in {"postStart", "preStop"}:
            yield from _check_handler(hook, f"{path}.lifecycle.{name}")


def _check_init(container: Json, path: str) -> Iterator[FieldError]:
    """An init container that is meant to end has neither hooks nor probes."""
    for field in ("lifecycle", *_PROBES):
        if container.get(field):
            text = "must not be set for init containers without restartPolicy=Always"
            yield FieldError(f"{path}.{field}", FORBIDDEN, text)


def _check_probe(probe: Json, path: str, *, only_one_success: bool) -> Iterator[FieldError]:
    yield from _check_handler(probe, path)
    for field in (
        "initialDelaySeconds",
        "timeoutSeconds",
        "periodSeconds",
        "successThreshold",
        "failureThreshold",
    ):
        if probe.get(field, 0) < 0:
            yield FieldError(
                f"{path}.{field}", INVALID, f"{probe[field]}: must be greater than or equal to 0"
            )
    if only_one_success and probe["successThreshold"] != 1:
        yield FieldError(f"{path}.successThreshold", INVALID, f"{probe['successThreshold']}: must be 1")
    grace = probe.get("terminationGracePeriodSeconds")
    if grace is not None and not only_one_success:
        yield FieldError(
            f"{path}.terminationGracePeriodSeconds", INVALID, "must not be set for readinessProbes"
        )
    elif grace is not None and grace <= 0:
        yield FieldError(f"{path}.terminationGracePeriodSeconds", INVALID, f"{grace}: must be greater than 0")


def _check_handler(handler: Json, path: str) -> Iterator[FieldError]:
    """Exactly one way to ask, and what it needs."""
    given = [name for name in _HANDLERS if handler.get(name) is not None]
    if not given:
        yield FieldError(path, REQUIRED, "must specify a handler type")
    for name in given[1:]:
        yield FieldError(f"{path}.{name}", FORBIDDEN, "may not specify more than 1 handler type")
    if given and given[0] == "exec" and not handler["exec"].get("command"):
        yield FieldError(f"{path}.exec.command", REQUIRED)
    if given and given[0] in {"httpGet", "tcpSocket", "grpc"}:
        port = handler[given[0]].get("port")
        if isinstance(port, int) and not 1 <= port <= _PORT_MAX:
            yield FieldError(f"{path}.{given[0]}.port", INVALID, f"{port}: must be between 1 and {_PORT_MAX}")


def _check_port(port: Json, path: str) -> Iterator[FieldError]:
    number = port.get("containerPort", 0)
    if not 1 <= number <= _PORT_MAX:
        yield FieldError(f"{path}.containerPort", INVALID, f"{number}: must be between 1 and {_PORT_MAX}")
    if port.get("protocol") not in {"TCP", "UDP", "SCTP"}:
        yield FieldError(
            f"{path}.protocol", UNSUPPORTED, f'"{port.get("protocol")}": supported: "SCTP", "TCP", "UDP"'
        )


def _check_resources(resources: Json, path: str) -> Iterator[FieldError]:
    """Amounts are quantities of at least 0, and no request is above its limit."""
    for kind in ("limits", "requests"):
        for name, text in (resources.get(kind) or EMPTY).items():
            try:
                negative = amount(text) < 0
            except ValueError as error:
                yield FieldError(f"{path}.{kind}[{name}]", INVALID, str(error))
                return
            if negative:
                yield FieldError(f"{path}.{kind}[{name}]", INVALID, f'"{text}": must be >= 0')
    limits = resources.get("limits") or EMPTY
    for name, text in (resources.get("requests") or EMPTY).items():
        if name in limits and amount(text) > amount(limits[name]):
            detail = f'"{text}": must be less than or equal to {name} limit of {limits[name]}'
            yield FieldError(f"{path}.requests", INVALID, detail)


def _check_policies(
    thing: Mapping[str, Any], policies: Mapping[str, tuple[str, ...]], path: str
) -> Iterator[FieldError]:
    for field, supported in policies.items():
        if thing.get(field) not in supported:
            words = ", ".join(f'"{each}"' for each in supported)
            yield FieldError(f"{path}.{field}", UNSUPPORTED, f'"{thing.get(field)}": supported: {words}')


def _check_unique(things: Iterable[Json], path: str, names: dict[str, str]) -> Iterator[FieldError]:
    """Names are DNS labels, each used once; `names` are those used already, and grows."""
    for index, thing in enumerate(things):
        name = thing.get("name", "")
        if not name:
            yield FieldError(f"{path}[{index}].name", REQUIRED)
        elif not _LABEL.fullmatch(name):
            yield FieldError(
                f"{path}[{index}].name", INVALID, f'"{name}": a lowercase RFC 1123 label is expected'
            )
        elif name in names:
            yield FieldError(f"{path}[{index}].name", DUPLICATE, f'"{name}"')
        names[name] = path
