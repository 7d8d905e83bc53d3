"""What the fields of a pod may hold beyond their type: one row for each field."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from ipaddress import ip_address
from typing import TYPE_CHECKING

from lightkube.models import core_v1 as v1
from lightkube.models import meta_v1

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from msgspec import Struct

__all__ = ("VALUES", "Check")


@dataclass(frozen=True, slots=True)
class Check:
    """A rule for one value: what is expected, in words, and whether a value of the right type keeps it."""

    expected: str
    accepts: Callable[[object], bool]
    empty_is_absent: bool = False
    """Whether "" means that the field was not given: so it is for choices, as the API takes them."""


def one_of(*choices: str) -> Check:
    """One of these words."""
    *most, last = choices
    return Check(f"{', '.join(most)} or {last}", frozenset(choices).__contains__, empty_is_absent=True)


def optional(check: Check) -> Check:
    """The same, where "" stands for a field that was not given."""
    return replace(check, empty_is_absent=True)


def between(least: int, most: int) -> Check:
    """A whole number in this range, both ends included."""
    return Check(
        f"a number from {least} to {most}", lambda value: isinstance(value, int) and least <= value <= most
    )


def at_least(least: int) -> Check:
    """A whole number, this one or more."""
    return Check(f"{least} or more", lambda value: isinstance(value, int) and value >= least)


def matching(expected: str, pattern: str, *, longest: int) -> Check:
    """A text of this form, with at most `longest` characters."""
    form = re.compile(pattern)

    def accepts(value: object) -> bool:
        return isinstance(value, str) and len(value) <= longest and form.fullmatch(value) is not None

    return Check(f"{expected}, at most {longest} characters", accepts)


def _is_path_below(value: object) -> bool:
    return isinstance(value, str) and bool(value) and value[0] != "/" and ".." not in value.split("/")


def _goes_nowhere_up(value: object) -> bool:
    return isinstance(value, str) and bool(value) and ".." not in value.split("/")


def _is_medium(value: object) -> bool:
    return isinstance(value, str) and (value in {"", "Memory"} or value.startswith("HugePages"))


def _is_address(value: object) -> bool:
    try:
        ip_address(str(value))
    except ValueError:
        return False
    return True


def _is_field_path(value: object) -> bool:
    return isinstance(value, str) and (value in _FIELD_PATHS or _FIELD_KEY.fullmatch(value) is not None)


def _is_port_reference(value: object) -> bool:
    return _PORT.accepts(value) or (isinstance(value, str) and _PORT_NAME.accepts(value))


_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_DNS_LABEL = matching("lower-case letters, digits and dashes", _LABEL, longest=63)
_DNS_SUBDOMAIN = matching(
    "lower-case letters, digits, dashes and dots", rf"{_LABEL}(\.{_LABEL})*", longest=253
)
_PORT_NAME = matching("lower-case letters, digits and dashes", rf"(?=.*[a-z]){_LABEL}", longest=15)
_PORT = between(1, 65_535)
_PORT_REFERENCE = Check("a port number or the name of a port", _is_port_reference)
_NOT_EMPTY = matching("a text that is not empty", "(?s:.+)", longest=1 << 20)
_VARIABLE = matching('the name of a variable, without "="', "[^=]+", longest=1 << 20)
_FIELD_PATHS = frozenset(
    {
        *(f"metadata.{name}" for name in ("name", "namespace", "uid", "labels", "annotations")),
        *(f"spec.{name}" for name in ("nodeName", "serviceAccountName")),
        *(f"status.{name}" for name in ("hostIP", "hostIPs", "podIP", "podIPs")),
    }
)
_FIELD_KEY = re.compile(r"metadata\.(labels|annotations)\['[^']+'\]")
_FIELD_PATH = Check("a field of the pod that it may learn, such as metadata.name", _is_field_path)
_RELATIVE = Check('a relative path without ".."', _is_path_below)
_NOT_UP = Check('a path without ".."', _goes_nowhere_up)
_ADDRESS = Check("an IP address", _is_address)
_KEY = matching("letters, digits, dashes, dots and underscores", r"(?!\.\.?$)[-._a-zA-Z0-9]+", longest=253)
_HEADER = matching("the name of a header", r"[-!#$%&'*+.^_`|~0-9A-Za-z]+", longest=1 << 10)
_SYSCTL_PART = "[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_SYSCTL = matching("the name of a sysctl", rf"({_SYSCTL_PART}[./])*{_SYSCTL_PART}", longest=253)
_MOUNT_PATH = matching('a path without ":"', "[^:]+", longest=1 << 12)
_RESOURCE_FIELD = matching(
    "limits or requests of cpu, memory, ephemeral-storage or hugepages-SIZE",
    r"(limits|requests)\.(cpu|memory|ephemeral-storage|hugepages-[A-Za-z0-9]+)",
    longest=253,
)
_ID = between(0, 2**31 - 1)
_NOT_NEGATIVE = at_least(0)
_POSITIVE = at_least(1)
_FILE_MODE = between(0, 0o777)
_PULL_POLICY = one_of("Always", "IfNotPresent", "Never")
_RESTART_POLICY = one_of("Always", "OnFailure", "Never")
_MESSAGE_POLICY = one_of("File", "FallbackToLogsOnError")

VALUES: Mapping[tuple[type[Struct], str], Check] = {
    (meta_v1.ObjectMeta, "name"): _DNS_SUBDOMAIN,
    (meta_v1.ObjectMeta, "namespace"): _DNS_LABEL,
    (v1.PodSpec, "restartPolicy"): _RESTART_POLICY,
    (v1.PodSpec, "dnsPolicy"): one_of("ClusterFirst", "ClusterFirstWithHostNet", "Default", "None"),
    (v1.PodSpec, "preemptionPolicy"): one_of("PreemptLowerPriority", "Never"),
    (v1.PodSpec, "terminationGracePeriodSeconds"): _NOT_NEGATIVE,
    (v1.PodSpec, "activeDeadlineSeconds"): between(1, 2**31 - 1),
    (v1.PodSpec, "hostname"): optional(_DNS_LABEL),
    (v1.PodSpec, "subdomain"): optional(_DNS_LABEL),
    (v1.PodSpec, "nodeName"): optional(_DNS_SUBDOMAIN),
    (v1.PodSpec, "serviceAccountName"): optional(_DNS_SUBDOMAIN),
    (v1.PodSpec, "priorityClassName"): optional(_DNS_SUBDOMAIN),
    (v1.PodSpec, "runtimeClassName"): _DNS_SUBDOMAIN,
    (v1.HostAlias, "ip"): _ADDRESS,
    (v1.Sysctl, "name"): _SYSCTL,
    (v1.TopologySpreadConstraint, "maxSkew"): _POSITIVE,
    (v1.TopologySpreadConstraint, "minDomains"): _POSITIVE,
    (v1.TopologySpreadConstraint, "topologyKey"): _NOT_EMPTY,
    (v1.PodSecurityContext, "runAsGroup"): _ID,
    (v1.PodSecurityContext, "fsGroup"): _ID,
    (v1.PodSecurityContext, "supplementalGroupsPolicy"): one_of("Merge", "Strict"),
    (v1.SecurityContext, "runAsGroup"): _ID,
    (v1.PodOS, "name"): one_of("linux", "windows"),
    (v1.Toleration, "operator"): one_of("Exists", "Equal"),
    (v1.Toleration, "effect"): one_of("NoSchedule", "PreferNoSchedule", "NoExecute"),
    (v1.NodeSelectorRequirement, "operator"): one_of("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"),
    (v1.TopologySpreadConstraint, "whenUnsatisfiable"): one_of("DoNotSchedule", "ScheduleAnyway"),
    (v1.PodReadinessGate, "conditionType"): _NOT_EMPTY,
    (v1.SeccompProfile, "type"): one_of("Unconfined", "RuntimeDefault", "Localhost"),
    (v1.AppArmorProfile, "type"): one_of("Unconfined", "RuntimeDefault", "Localhost"),
    (v1.PodSecurityContext, "fsGroupChangePolicy"): one_of("OnRootMismatch", "Always"),
    (v1.PodSecurityContext, "runAsUser"): _ID,
    (v1.SecurityContext, "runAsUser"): _ID,
    (v1.SecurityContext, "procMount"): one_of("Default", "Unmasked"),
    **{
        (kind, field): check
        for kind in (v1.Container, v1.EphemeralContainer)
        for field, check in {
            "name": _DNS_LABEL,
            "image": _NOT_EMPTY,
            "imagePullPolicy": _PULL_POLICY,
            "restartPolicy": _RESTART_POLICY,
            "terminationMessagePolicy": _MESSAGE_POLICY,
        }.items()
    },
    (v1.ContainerPort, "containerPort"): _PORT,
    (v1.ContainerPort, "hostPort"): between(0, 65_535),
    (v1.ContainerPort, "hostIP"): optional(_ADDRESS),
    (v1.ContainerPort, "name"): _PORT_NAME,
    (v1.ContainerPort, "protocol"): one_of("TCP", "UDP", "SCTP"),
    (v1.ContainerResizePolicy, "resourceName"): one_of("cpu", "memory"),
    (v1.ContainerRestartRule, "action"): one_of("Restart", "RestartAllContainers"),
    (v1.ContainerRestartRuleOnExitCodes, "operator"): one_of("In", "NotIn"),
    (v1.ContainerResizePolicy, "restartPolicy"): one_of("NotRequired", "RestartContainer"),
    (v1.EnvVar, "name"): _VARIABLE,
    (v1.ObjectFieldSelector, "fieldPath"): _FIELD_PATH,
    (v1.ObjectFieldSelector, "apiVersion"): optional(Check("v1", "v1".__eq__)),
    (v1.ResourceFieldSelector, "resource"): _RESOURCE_FIELD,
    (v1.ConfigMapKeySelector, "key"): _KEY,
    (v1.SecretKeySelector, "key"): _KEY,
    (v1.Probe, "initialDelaySeconds"): _NOT_NEGATIVE,
    (v1.Probe, "timeoutSeconds"): _NOT_NEGATIVE,
    (v1.Probe, "periodSeconds"): _NOT_NEGATIVE,
    (v1.Probe, "successThreshold"): _NOT_NEGATIVE,
    (v1.Probe, "failureThreshold"): _NOT_NEGATIVE,
    (v1.Probe, "terminationGracePeriodSeconds"): _POSITIVE,
    (v1.HTTPGetAction, "port"): _PORT_REFERENCE,
    (v1.HTTPHeader, "name"): _HEADER,
    (v1.HTTPGetAction, "scheme"): one_of("HTTP", "HTTPS"),
    (v1.TCPSocketAction, "port"): _PORT_REFERENCE,
    (v1.GRPCAction, "port"): _PORT,
    (v1.SleepAction, "seconds"): _NOT_NEGATIVE,
    (v1.Volume, "name"): _DNS_LABEL,
    (v1.VolumeMount, "name"): _DNS_LABEL,
    (v1.VolumeMount, "mountPath"): _MOUNT_PATH,
    (v1.VolumeMount, "subPath"): optional(_RELATIVE),
    (v1.VolumeMount, "subPathExpr"): optional(_RELATIVE),
    (v1.VolumeMount, "recursiveReadOnly"): one_of("Disabled", "IfPossible", "Enabled"),
    (v1.VolumeMount, "mountPropagation"): one_of("None", "HostToContainer", "Bidirectional"),
    (v1.HostPathVolumeSource, "path"): _NOT_UP,
    (v1.EmptyDirVolumeSource, "medium"): optional(Check('"", Memory or HugePages', _is_medium)),
    (v1.NFSVolumeSource, "server"): _NOT_EMPTY,
    (v1.NFSVolumeSource, "path"): matching("an absolute path", "/.*", longest=1 << 12),
    (v1.ImageVolumeSource, "pullPolicy"): _PULL_POLICY,
    (v1.ServiceAccountTokenProjection, "path"): _RELATIVE,
    (v1.ServiceAccountTokenProjection, "expirationSeconds"): between(600, 1 << 32),
    (v1.DownwardAPIVolumeFile, "path"): _RELATIVE,
    (v1.DownwardAPIVolumeFile, "mode"): _FILE_MODE,
    (v1.KeyToPath, "key"): _KEY,
    (v1.KeyToPath, "path"): _RELATIVE,
    (v1.HostPathVolumeSource, "type"): one_of(
        "DirectoryOrCreate", "Directory", "FileOrCreate", "File", "Socket", "CharDevice", "BlockDevice"
    ),
    (v1.KeyToPath, "mode"): _FILE_MODE,
    (v1.SecretVolumeSource, "defaultMode"): _FILE_MODE,
    (v1.ConfigMapVolumeSource, "defaultMode"): _FILE_MODE,
    (v1.DownwardAPIVolumeSource, "defaultMode"): _FILE_MODE,
    (v1.ProjectedVolumeSource, "defaultMode"): _FILE_MODE,
}
"""The rule for each field that has one. Zeros of a probe are allowed: they stand for the default."""
