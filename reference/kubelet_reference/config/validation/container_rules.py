"""What must hold between the fields of a container, its mounts and its restart rules among them."""

from collections.abc import Iterator
from functools import partial
from typing import cast

from lightkube.models.core_v1 import Container, ContainerRestartRule, LifecycleHandler, Pod, Probe

from kubelet_reference.api import pods
from kubelet_reference.api.restart_policy import RESTART_ALL
from kubelet_reference.config.field_errors import FieldPath
from kubelet_reference.config.validation.rules import Rule, containers, exactly_one, unique
from kubelet_reference.util.versions import Behaviour

_HANDLERS = ("exec", "httpGet", "tcpSocket", "grpc")
_HOOK_HANDLERS = ("exec", "httpGet", "tcpSocket", "sleep")
_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_HOOKS = ("postStart", "preStop")


def images(pod: Pod, place: FieldPath) -> None:
    """Every container has an image."""
    for one, where in containers(pod, place):
        if not one.image:
            where.field("image").wrong("missing")


def init_containers_have_no_probes(pod: Pod, place: FieldPath) -> None:
    """An init container that is no sidecar has neither hooks nor probes."""
    for i, one in enumerate(pods.init_containers(pod)):
        if not pods.is_sidecar(one):
            for name in ("lifecycle", *_PROBES):
                if getattr(one, name) is not None:
                    place.field("initContainers").item(i).field(name).wrong("not allowed in init containers")


def probes(pod: Pod, place: FieldPath) -> None:
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


def hooks(pod: Pod, place: FieldPath) -> None:
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


def stop_signals(pod: Pod, place: FieldPath) -> None:
    """A signal of its own is allowed in a pod that names its operating system (KEP-4960)."""
    for one, where in containers(pod, place):
        if one.lifecycle and one.lifecycle.stopSignal is not None and pods.spec(pod).os is None:
            where.field("lifecycle").field("stopSignal").wrong("only allowed with os.name")


def _handler(handler: Probe | LifecycleHandler, place: FieldPath) -> None:
    """A command has words."""
    if handler.exec is not None and not handler.exec.command:
        place.field("exec").field("command").wrong("missing")


def ports(pod: Pod, place: FieldPath) -> None:
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
                apps.item(i).field("ports").item(j).field("hostPort").expected(
                    f"{port.containerPort} on the host's network", port.hostPort
                )


def _host_ports(one: Container, place: FieldPath) -> Iterator[tuple[FieldPath, str]]:
    for i, port in enumerate(one.ports or ()):
        if port.hostPort:
            at = place.field("ports").item(i).field("hostPort")
            yield at, f"{port.protocol} {port.hostIP or ''}:{port.hostPort}"


CONTAINER_RULES: tuple[Rule, ...] = (
    images,
    init_containers_have_no_probes,
    probes,
    hooks,
    stop_signals,
    ports,
)


_NO_VOLUME = "the name of a volume of the pod"


def mounts(pod: Pod, place: FieldPath) -> None:
    """What a container mounts is a volume of the pod, and no path is mounted over twice.

    Only a privileged container shows the host what it mounts itself.
    """
    known = {volume.name for volume in pods.spec(pod).volumes or ()}
    for one, where in containers(pod, place):
        found = one.volumeMounts or ()
        at = where.field("volumeMounts")
        for i, mount in enumerate(found):
            if mount.name not in known:
                at.item(i).field("name").expected(_NO_VOLUME, mount.name)
            if mount.mountPropagation == "Bidirectional" and not (
                one.securityContext and one.securityContext.privileged
            ):
                at.item(i).field("mountPropagation").wrong("only allowed in privileged containers")
            if mount.subPath and mount.subPathExpr:
                at.item(i).field("subPathExpr").wrong("not allowed beside subPath")
        unique((at.item(i).field("mountPath"), mount.mountPath) for i, mount in enumerate(found))


_RULES_MAX, _CODES_MAX = 20, 255


def restart_rules(behaviour: Behaviour) -> Rule:
    """What holds with these feature gates, as for pods of the API server (KEP-5307, KEP-5532)."""
    return partial(own_rules, behaviour=behaviour) if behaviour.has_restart_rules else sidecars_only


def sidecars_only(pod: Pod, place: FieldPath) -> None:
    """Only an init container has a restart policy of its own, and only Always (SIDECAR-01)."""
    for i, one in enumerate(pods.containers(pod)):
        if one.restartPolicy is not None:
            place.field("containers").item(i).field("restartPolicy").wrong("only allowed in init containers")
    for i, one in enumerate(pods.init_containers(pod)):
        if one.restartPolicy not in {None, pods.ALWAYS}:
            place.field("initContainers").item(i).field("restartPolicy").expected("Always", one.restartPolicy)


def own_rules(pod: Pod, place: FieldPath, behaviour: Behaviour) -> None:
    """Any container may have a policy, and beside it rules that look at its exit code (RESTART-19, -20)."""
    for one, where in containers(pod, place):
        rules, at = one.restartPolicyRules or (), where.field("restartPolicyRules")
        if rules and one.restartPolicy is None:
            where.field("restartPolicy").wrong("missing beside restartPolicyRules")
        if len(rules) > _RULES_MAX:
            at.wrong(f"expected at most {_RULES_MAX} rules, got {len(rules)}")
        for i, rule in enumerate(rules):
            _rule(rule, at.item(i), behaviour)


def _rule(rule: ContainerRestartRule, place: FieldPath, behaviour: Behaviour) -> None:
    if rule.action == RESTART_ALL and not behaviour.restarts_all_containers:
        place.field("action").wrong(f"{RESTART_ALL} is only allowed with its feature gate")
    if rule.exitCodes is None:
        place.field("exitCodes").wrong("missing")
        return
    codes = rule.exitCodes.values or ()
    if len(codes) > _CODES_MAX:
        place.field("exitCodes").field("values").wrong(
            f"expected at most {_CODES_MAX} codes, got {len(codes)}"
        )
