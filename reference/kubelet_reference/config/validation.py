"""What must hold between the fields of a pod; what each field may hold by itself is in `values`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, TypeAlias, cast

from msgspec.structs import asdict

from kubelet_reference import pods
from kubelet_reference.config.problems import Place, Problem, shown
from kubelet_reference.quantities import parse_quantity

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lightkube.models.core_v1 import Container, LifecycleHandler, Pod, Probe

__all__ = ("validate",)

_HANDLERS = ("exec", "httpGet", "tcpSocket", "grpc")
_HOOK_HANDLERS = ("exec", "httpGet", "tcpSocket", "sleep")
_SOURCES_OF_VALUES = ("configMapKeyRef", "fieldRef", "fileKeyRef", "resourceFieldRef", "secretKeyRef")

Rule: TypeAlias = Callable[["Pod", Place], None]
"""Looks at a pod that has its defaults, and notes at the spec's place what is wrong."""


def validate(pod: Pod) -> tuple[Problem, ...]:
    """Everything that is wrong with a pod from a manifest that has its defaults."""
    problems: list[Problem] = []
    place = Place(problems)
    if not pods.name(pod):
        place.field("metadata").field("name").wrong("missing")
    for rule in RULES:
        rule(pod, place.field("spec"))
    return tuple(problems)


def some_containers(pod: Pod, place: Place) -> None:
    """A pod has at least one app container."""
    if not pods.containers(pod):
        place.field("containers").wrong("expected at least one container")


def no_ephemeral_containers(pod: Pod, place: Place) -> None:
    """Ephemeral containers join a pod that runs; a manifest cannot have any (STATIC-25)."""
    if pods.ephemeral_containers(pod):
        place.field("ephemeralContainers").wrong("not allowed in a manifest")


def no_api_references(pod: Pod, place: Place) -> None:
    """A pod from a manifest can use neither resource claims nor cluster trust bundles (STATIC-22)."""
    if pods.spec(pod).resourceClaims:
        place.field("resourceClaims").wrong("not allowed in a manifest")
    for i, volume in enumerate(pods.spec(pod).volumes or ()):
        for j, source in enumerate((volume.projected and volume.projected.sources) or ()):
            if source.clusterTrustBundle:
                bundle = place.field("volumes").item(i).field("projected").field("sources").item(j)
                bundle.field("clusterTrustBundle").wrong("not allowed in a manifest")


def unique_container_names(pod: Pod, place: Place) -> None:
    """No two containers of a pod have the same name, whatever their kind."""
    _unique((where.field("name"), one.name) for one, where in _containers(pod, place))


def images(pod: Pod, place: Place) -> None:
    """Every container has an image."""
    for one, where in _containers(pod, place):
        if not one.image:
            where.field("image").wrong("missing")


def container_restart_policies(pod: Pod, place: Place) -> None:
    """Only an init container has a restart policy of its own, and only Always (SIDECAR-01)."""
    for i, one in enumerate(pods.containers(pod)):
        if one.restartPolicy is not None:
            place.field("containers").item(i).field("restartPolicy").wrong("only allowed in init containers")
    for i, one in enumerate(pods.init_containers(pod)):
        if one.restartPolicy not in {None, pods.ALWAYS}:
            place.field("initContainers").item(i).field("restartPolicy").expected("Always", one.restartPolicy)


def init_containers_have_no_probes(pod: Pod, place: Place) -> None:
    """An init container that is no sidecar has neither hooks nor probes."""
    for i, one in enumerate(pods.init_containers(pod)):
        if not pods.is_sidecar(one):
            for name in ("lifecycle", "livenessProbe", "readinessProbe", "startupProbe"):
                if getattr(one, name) is not None:
                    place.field("initContainers").item(i).field(name).wrong("not allowed in init containers")


def probes(pod: Pod, place: Place) -> None:
    """A probe does one thing; readiness alone may ask for several successes, and has no grace of its own."""
    for one, where in _containers(pod, place):
        for name in ("livenessProbe", "readinessProbe", "startupProbe"):
            probe = cast("Probe | None", getattr(one, name))
            if probe is not None:
                at = where.field(name)
                _exactly_one(probe, _HANDLERS, at)
                if name != "readinessProbe" and probe.successThreshold not in {None, 1}:
                    at.field("successThreshold").expected("1", probe.successThreshold)
                if name == "readinessProbe" and probe.terminationGracePeriodSeconds is not None:
                    at.field("terminationGracePeriodSeconds").wrong("not allowed for readiness probes")


def hooks(pod: Pod, place: Place) -> None:
    """A hook does one thing."""
    for one, where in _containers(pod, place):
        for name in ("postStart", "preStop") if one.lifecycle else ():
            hook = cast("LifecycleHandler | None", getattr(one.lifecycle, name))
            if hook is not None:
                _exactly_one(hook, _HOOK_HANDLERS, where.field("lifecycle").field(name))


def ports(pod: Pod, place: Place) -> None:
    """Port names are unique in a container, host ports in a pod; on the host's network both ports agree."""
    on_host: list[tuple[Place, str]] = []
    for one, where in _containers(pod, place):
        named: list[tuple[Place, str]] = []
        for i, port in enumerate(one.ports or ()):
            at = where.field("ports").item(i)
            if port.name:
                named.append((at.field("name"), port.name))
            if port.hostPort:
                on_host.append((at.field("hostPort"), f"{port.protocol} {port.hostIP or ''}:{port.hostPort}"))
            if pods.host_network(pod) and port.hostPort != port.containerPort:
                at.field("hostPort").expected(f"{port.containerPort} on the host's network", port.hostPort)
        _unique(named)
    _unique(on_host)


def environment(pod: Pod, place: Place) -> None:
    """A variable has a value or one source of it, not both."""
    for one, where in _containers(pod, place):
        for i, variable in enumerate(one.env or ()):
            if variable.valueFrom is not None:
                source = where.field("env").item(i).field("valueFrom")
                _exactly_one(variable.valueFrom, _SOURCES_OF_VALUES, source)
                if variable.value:
                    source.wrong("not allowed beside value")


def volumes(pod: Pod, place: Place) -> None:
    """A volume has a name of its own and one source."""
    found = pods.spec(pod).volumes or ()
    _unique((place.field("volumes").item(i).field("name"), volume.name) for i, volume in enumerate(found))
    for i, volume in enumerate(found):
        sources = [name for name, value in asdict(volume).items() if value is not None and name != "name"]
        if len(sources) > 1:
            place.field("volumes").item(i).wrong(f"expected one source, got {' and '.join(sources)}")


def mounts(pod: Pod, place: Place) -> None:
    """What a container mounts is a volume of the pod, and no path is mounted over twice."""
    known = {volume.name for volume in pods.spec(pod).volumes or ()}
    for one, where in _containers(pod, place):
        found = one.volumeMounts or ()
        at = where.field("volumeMounts")
        for i, mount in enumerate(found):
            if mount.name not in known:
                at.item(i).field("name").expected("the name of a volume of the pod", mount.name)
        _unique((at.item(i).field("mountPath"), mount.mountPath) for i, mount in enumerate(found))


def requests_within_limits(pod: Pod, place: Place) -> None:
    """No request is above its limit."""
    for one, where in _containers(pod, place):
        if one.resources is None:
            continue
        limits = cast("Mapping[str, str]", one.resources.limits or {})  # pyright: ignore[reportUnknownMemberType]
        requests = cast("Mapping[str, str]", one.resources.requests or {})  # pyright: ignore[reportUnknownMemberType]
        for name, amount in requests.items():
            if name in limits and parse_quantity(amount) > parse_quantity(limits[name]):
                at = where.field("resources").field("requests").field(name)
                at.expected(f"at most the limit {limits[name]}", amount)


RULES: tuple[Rule, ...] = (
    some_containers,
    no_ephemeral_containers,
    no_api_references,
    unique_container_names,
    images,
    container_restart_policies,
    init_containers_have_no_probes,
    probes,
    hooks,
    ports,
    environment,
    volumes,
    mounts,
    requests_within_limits,
)


def _containers(pod: Pod, place: Place) -> Iterator[tuple[Container, Place]]:
    """The init and app containers, each with its place."""
    for i, one in enumerate(pods.init_containers(pod)):
        yield one, place.field("initContainers").item(i)
    for i, one in enumerate(pods.containers(pod)):
        yield one, place.field("containers").item(i)


def _unique(values: Iterable[tuple[Place, str]]) -> None:
    """Each value is there once."""
    seen: dict[str, Place] = {}
    for place, value in values:
        first = seen.setdefault(value, place)
        if first is not place:
            place.wrong(f"{shown(value)} is taken by {first.path}")


def _exactly_one(of: object, names: tuple[str, ...], place: Place) -> None:
    """One of these fields is given."""
    given = [name for name in names if getattr(of, name, None) is not None]
    if len(given) != 1:
        place.wrong(f"expected one of {', '.join(names)}, got {' and '.join(given) or 'none'}")
