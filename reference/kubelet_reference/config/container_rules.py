"""What must hold between the fields of a container."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from lightkube.models.core_v1 import Container, LifecycleHandler, Pod, Probe

from kubelet_reference import pods
from kubelet_reference.config.problems import Place
from kubelet_reference.config.rule_words import Rule, containers, exactly_one, unique

_HANDLERS = ("exec", "httpGet", "tcpSocket", "grpc")
_HOOK_HANDLERS = ("exec", "httpGet", "tcpSocket", "sleep")
_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_HOOKS = ("postStart", "preStop")


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
    """A command has words."""
    if handler.exec is not None and not handler.exec.command:
        place.field("exec").field("command").wrong("missing")


def ports(pod: Pod, place: Place) -> None:
    """Port names are unique in a container, host ports among all apps; on the host's network ports agree.

    Init containers run one by one, so each has the host ports to itself.
    """
    apps = place.field("containers")
    unique(each for i, one in enumerate(pods.containers(pod)) for each in _host_ports(one, apps.item(i)))
    for i, one in enumerate(pods.init_containers(pod)):
        unique(_host_ports(one, place.field("initContainers").item(i)))
    for one, where in containers(pod, place):
        at = where.field("ports")
        unique((at.item(i).field("name"), port.name) for i, port in enumerate(one.ports or ()) if port.name)
    for i, one in enumerate(pods.containers(pod) if pods.host_network(pod) else ()):
        for j, port in enumerate(one.ports or ()):
            if port.hostPort != port.containerPort:
                at = apps.item(i).field("ports").item(j).field("hostPort")
                at.expected(f"{port.containerPort} on the host's network", port.hostPort)


def _host_ports(one: Container, place: Place) -> Iterator[tuple[Place, str]]:
    for i, port in enumerate(one.ports or ()):
        if port.hostPort:
            at = place.field("ports").item(i).field("hostPort")
            yield at, f"{port.protocol} {port.hostIP or ''}:{port.hostPort}"


CONTAINER_RULES: tuple[Rule, ...] = (
    images,
    init_containers_have_no_probes,
    probes,
    hooks,
    ports,
)
