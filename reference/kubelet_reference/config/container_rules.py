"""What must hold between the fields of a container."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from kubelet_reference import pods
from kubelet_reference.config.rule_words import containers, exactly_one, is_qualified_name, unique
from kubelet_reference.quantities import parse_quantity

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from lightkube.models.core_v1 import Container, LifecycleHandler, Pod, Probe

    from kubelet_reference.config.problems import Place
    from kubelet_reference.config.rule_words import Rule

__all__ = ("CONTAINER_RULES",)

_HANDLERS = ("exec", "httpGet", "tcpSocket", "grpc")
_HOOK_HANDLERS = ("exec", "httpGet", "tcpSocket", "sleep")
_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_HOOKS = ("postStart", "preStop")
_SOURCES_OF_VALUES = ("configMapKeyRef", "fieldRef", "fileKeyRef", "resourceFieldRef", "secretKeyRef")
_PLAIN_RESOURCES = frozenset({"cpu", "memory", "ephemeral-storage"})
_HUGE_PAGES = "hugepages-"
_NO_RESOURCE = "expected cpu, memory, ephemeral-storage, hugepages-SIZE or a name with a domain"
_NO_OVERCOMMIT = "it cannot be overcommitted"


def images(pod: Pod, place: Place) -> None:
    """Every container has an image."""
    for one, where in containers(pod, place):
        if not one.image:
            where.field("image").wrong("missing")


def init_containers_have_no_probes(pod: Pod, place: Place) -> None:
    """An init container that is no sidecar has neither hooks nor probes."""
    for i, one in enumerate(pods.init_containers(pod)):
        if not pods.is_sidecar(one):
            for name in ("lifecycle", *_PROBES):
                if getattr(one, name) is not None:
                    place.field("initContainers").item(i).field(name).wrong("not allowed in init containers")


def probes(pod: Pod, place: Place) -> None:
    """A probe does one thing; readiness alone may ask for several successes, and has no grace of its own."""
    for one, where in containers(pod, place):
        for name in _PROBES:
            probe = cast("Probe | None", getattr(one, name))
            if probe is not None:
                at = where.field(name)
                exactly_one(probe, _HANDLERS, at)
                _handler(probe, at)
                if name != "readinessProbe" and probe.successThreshold not in {None, 1}:
                    at.field("successThreshold").expected("1", probe.successThreshold)
                if name == "readinessProbe" and probe.terminationGracePeriodSeconds is not None:
                    at.field("terminationGracePeriodSeconds").wrong("not allowed for readiness probes")


def hooks(pod: Pod, place: Place) -> None:
    """A hook does one thing, and sleeps no longer than the pod may take to end."""
    grace = pods.grace_seconds(pod)
    for one, where in containers(pod, place):
        for name in _HOOKS if one.lifecycle else ():
            hook = cast("LifecycleHandler | None", getattr(one.lifecycle, name))
            if hook is not None:
                at = where.field("lifecycle").field(name)
                exactly_one(hook, _HOOK_HANDLERS, at)
                _handler(hook, at)
                if hook.sleep is not None and hook.sleep.seconds > grace:
                    at.field("sleep").field("seconds").expected(f"at most {grace}", hook.sleep.seconds)


def _handler(handler: Probe | LifecycleHandler, place: Place) -> None:
    """A command has words, a path begins with the root."""
    if handler.exec is not None and not handler.exec.command:
        place.field("exec").field("command").wrong("missing")
    if handler.httpGet is not None and not handler.httpGet.path:
        place.field("httpGet").field("path").wrong("missing")


def ports(pod: Pod, place: Place) -> None:
    """Port names are unique in a container, host ports in a pod; on the host's network both ports agree."""
    on_host: list[tuple[Place, str]] = []
    for one, where in containers(pod, place):
        named: list[tuple[Place, str]] = []
        for i, port in enumerate(one.ports or ()):
            at = where.field("ports").item(i)
            if port.name:
                named.append((at.field("name"), port.name))
            if port.hostPort:
                on_host.append((at.field("hostPort"), f"{port.protocol} {port.hostIP or ''}:{port.hostPort}"))
            if pods.host_network(pod) and port.hostPort != port.containerPort:
                at.field("hostPort").expected(f"{port.containerPort} on the host's network", port.hostPort)
        unique(named)
    unique(on_host)


def environment(pod: Pod, place: Place) -> None:
    """A variable has a value or one source of it, not both; a whole source is a config map or a secret."""
    for one, where in containers(pod, place):
        for i, variable in enumerate(one.env or ()):
            if variable.valueFrom is not None:
                source = where.field("env").item(i).field("valueFrom")
                exactly_one(variable.valueFrom, _SOURCES_OF_VALUES, source)
                if variable.value:
                    source.wrong("not allowed beside value")
                for kind in ("configMapKeyRef", "secretKeyRef"):
                    reference = getattr(variable.valueFrom, kind)
                    if reference is not None and not reference.name:
                        source.field(kind).field("name").wrong("missing")
        for i, whole in enumerate(one.envFrom or ()):
            exactly_one(whole, ("configMapRef", "secretRef"), where.field("envFrom").item(i))


def mounts(pod: Pod, place: Place) -> None:
    """What a container mounts is a volume of the pod, and no path is mounted over twice."""
    known = {volume.name for volume in pods.spec(pod).volumes or ()}
    for one, where in containers(pod, place):
        found = one.volumeMounts or ()
        at = where.field("volumeMounts")
        for i, mount in enumerate(found):
            if mount.name not in known:
                at.item(i).field("name").expected("the name of a volume of the pod", mount.name)
            if mount.subPath and mount.subPathExpr:
                at.item(i).field("subPathExpr").wrong("not allowed beside subPath")
            if mount.mountPropagation == "Bidirectional" and not _is_privileged(one):
                at.item(i).field("mountPropagation").wrong("Bidirectional needs a privileged container")
            if mount.recursiveReadOnly not in {None, "Disabled"} and not mount.readOnly:
                at.item(i).field("recursiveReadOnly").wrong("needs readOnly")
        unique((at.item(i).field("mountPath"), mount.mountPath) for i, mount in enumerate(found))


def _is_privileged(one: Container) -> bool:
    return bool(one.securityContext and one.securityContext.privileged)


def security(pod: Pod, place: Place) -> None:
    """What is privileged, or may administrate the system, may escalate its privileges."""
    for one, where in containers(pod, place):
        context = one.securityContext
        if context is None or context.allowPrivilegeEscalation is not False:
            continue
        at = where.field("securityContext").field("allowPrivilegeEscalation")
        added = (context.capabilities and context.capabilities.add) or ()
        if context.privileged:
            at.wrong("cannot be false in a privileged container")
        if "CAP_SYS_ADMIN" in added:
            at.wrong("cannot be false with the capability CAP_SYS_ADMIN")


def profiles(pod: Pod, place: Place) -> None:
    """A seccomp or AppArmor profile of the node's is named, and no other is."""
    contexts: list[tuple[object, Place]] = [
        (pods.spec(pod).securityContext, place.field("securityContext")),
        *((one.securityContext, where.field("securityContext")) for one, where in containers(pod, place)),
    ]
    for context, where in contexts:
        for kind in ("seccompProfile", "appArmorProfile"):
            profile = getattr(context, kind, None)
            if profile is not None:
                at = where.field(kind).field("localhostProfile")
                if profile.type == "Localhost" and not profile.localhostProfile:
                    at.wrong("missing")
                if profile.type != "Localhost" and profile.localhostProfile:
                    at.wrong(f"not allowed with the type {profile.type}")


def resize_policies(pod: Pod, place: Place) -> None:
    """What a resize does is said once for each resource."""
    for one, where in containers(pod, place):
        at = where.field("resizePolicy")
        found = one.resizePolicy or ()
        unique((at.item(i).field("resourceName"), each.resourceName) for i, each in enumerate(found))


def resource_names(pod: Pod, place: Place) -> None:
    """A resource is one of the node's own, or has a name with a domain and comes in whole numbers."""
    for where, amounts in _amounts(pod, place):
        for name, amount in amounts.items():
            if name in _PLAIN_RESOURCES or name.startswith(_HUGE_PAGES):
                continue
            if "/" not in name or not is_qualified_name(name):
                where.field(name).wrong(_NO_RESOURCE)
            elif parse_quantity(amount) % 1:
                where.field(name).expected("a whole number", amount)


def requests_within_limits(pod: Pod, place: Place) -> None:
    """No request is above its limit; of what cannot be overcommitted the two are the same."""
    for one, where in containers(pod, place):
        if one.resources is None:
            continue
        limits = cast("Mapping[str, str]", one.resources.limits or {})  # pyright: ignore[reportUnknownMemberType]
        requests = cast("Mapping[str, str]", one.resources.requests or {})  # pyright: ignore[reportUnknownMemberType]
        at = where.field("resources").field("requests")
        for name, amount in requests.items():
            if name not in limits:
                if name not in _PLAIN_RESOURCES:
                    limit = where.field("resources").field("limits").field(name)
                    limit.wrong(f"missing: {_NO_OVERCOMMIT}")
            elif parse_quantity(amount) > parse_quantity(limits[name]):
                at.field(name).expected(f"at most the limit {limits[name]}", amount)
            elif name not in _PLAIN_RESOURCES and parse_quantity(amount) != parse_quantity(limits[name]):
                at.field(name).expected(f"the limit {limits[name]}: {_NO_OVERCOMMIT}", amount)


def _amounts(pod: Pod, place: Place) -> Iterator[tuple[Place, Mapping[str, str]]]:
    for one, where in containers(pod, place):
        for kind in ("limits", "requests") if one.resources else ():
            yield where.field("resources").field(kind), getattr(one.resources, kind) or {}


CONTAINER_RULES: tuple[Rule, ...] = (
    images,
    init_containers_have_no_probes,
    probes,
    hooks,
    ports,
    environment,
    mounts,
    security,
    profiles,
    resize_policies,
    resource_names,
    requests_within_limits,
)
