"""What the fields of pods and their volumes may hold beyond their type: one row for each field."""

from collections.abc import Mapping

from cri_api.v1 import api_pb2 as cri
from lightkube.models import core_v1 as v1
from lightkube.models import meta_v1
from msgspec import Struct

from kubelet_reference.config.validation.checks import (
    ADDRESS,
    BELOW,
    DNS_LABEL,
    DNS_SUBDOMAIN,
    FILE_BELOW,
    FILE_MODE,
    KEY,
    NAME_BEGIN,
    NOT_EMPTY,
    NOT_NEGATIVE,
    NOT_UP,
    POSITIVE,
    PULL_POLICY,
    Check,
    between,
    matching,
    one_of,
    optional,
    subdomain,
)


def _is_port_reference(value: object) -> bool:
    return _PORT.accepts(value) or (isinstance(value, str) and _PORT_NAME.accepts(value))


_PORT_NAME = matching(
    "lower-case letters, digits and dashes", "(?=.*[a-z])(?!.*--)[a-z0-9]([-a-z0-9]*[a-z0-9])?", longest=15
)
_PORT = between(1, 65_535)
_PORT_REFERENCE = Check("a port number or the name of a port", _is_port_reference)
_VARIABLE = matching('the name of a variable, printable and without "="', "[ -<>-~]+")
_HEADER = matching("the name of a header", "[-A-Za-z0-9]+")
_SYSCTL_PART = "[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_SYSCTL = matching("the name of a sysctl", rf"({_SYSCTL_PART}[./])*{_SYSCTL_PART}", longest=253)
_RESOURCE_FIELD = matching(
    "limits or requests of cpu, memory, ephemeral-storage or hugepages-SIZE",
    r"(limits|requests)\.(cpu|memory|ephemeral-storage|hugepages-.+)",
)
_SEARCH_PART = "_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_SEARCH = matching("a DNS name, or a dot", rf"\.|{_SEARCH_PART}(\.{_SEARCH_PART})*\.?", longest=254)
_IMAGE = matching("the name of an image, without spaces around it", r"\S(?s:.*\S)?")
_SIGNAL = Check("a signal such as SIGTERM", (frozenset(cri.Signal.keys()) - {"RUNTIME_DEFAULT"}).__contains__)
_ID = between(0, 2**31 - 1)
_COUNT = between(0, 2**31 - 1)
_SOME = between(1, 2**31 - 1)
_RESTART_POLICY = one_of("Always", "OnFailure", "Never")
_PROFILE = optional(one_of("Unconfined", "RuntimeDefault", "Localhost"))

VALUES: Mapping[tuple[type[Struct], str], Check] = {
    # The name of the node follows.
    (meta_v1.ObjectMeta, "name"): NAME_BEGIN,
    (meta_v1.ObjectMeta, "generateName"): optional(NAME_BEGIN),
    (meta_v1.ObjectMeta, "namespace"): DNS_LABEL,
    (meta_v1.ObjectMeta, "generation"): NOT_NEGATIVE,
    (v1.PodSpec, "restartPolicy"): optional(_RESTART_POLICY),
    (v1.PodSpec, "dnsPolicy"): optional(one_of("ClusterFirst", "ClusterFirstWithHostNet", "Default", "None")),
    (v1.PodSpec, "preemptionPolicy"): one_of("PreemptLowerPriority", "Never"),
    (v1.PodSpec, "activeDeadlineSeconds"): _SOME,
    (v1.PodSpec, "priority"): between(-(2**31), 2**31 - 1),
    (v1.PodSpec, "hostname"): optional(DNS_LABEL),
    (v1.PodSpec, "hostnameOverride"): subdomain(64),
    (v1.PodSpec, "subdomain"): optional(DNS_LABEL),
    (v1.PodSpec, "serviceAccountName"): optional(DNS_SUBDOMAIN),
    (v1.PodSpec, "priorityClassName"): optional(DNS_SUBDOMAIN),
    (v1.PodSpec, "runtimeClassName"): DNS_SUBDOMAIN,
    (v1.PodDNSConfig, "nameservers"): ADDRESS,
    (v1.PodDNSConfig, "searches"): _SEARCH,
    (v1.HostAlias, "ip"): ADDRESS,
    (v1.HostAlias, "hostnames"): DNS_SUBDOMAIN,
    (v1.PodOS, "name"): one_of("linux", "windows"),
    (v1.Sysctl, "name"): _SYSCTL,
    (v1.Toleration, "operator"): optional(one_of("Exists", "Equal")),
    (v1.Toleration, "effect"): optional(one_of("NoSchedule", "PreferNoSchedule", "NoExecute")),
    (v1.NodeSelectorRequirement, "operator"): one_of("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"),
    (v1.PodSecurityContext, "runAsUser"): _ID,
    (v1.PodSecurityContext, "runAsGroup"): _ID,
    (v1.PodSecurityContext, "fsGroup"): _ID,
    (v1.PodSecurityContext, "supplementalGroups"): _ID,
    (v1.PodSecurityContext, "supplementalGroupsPolicy"): one_of("Merge", "Strict"),
    (v1.PodSecurityContext, "fsGroupChangePolicy"): one_of("OnRootMismatch", "Always"),
    (v1.PodSecurityContext, "seLinuxChangePolicy"): one_of("Recursive", "MountOption"),
    (v1.SecurityContext, "runAsUser"): _ID,
    (v1.SecurityContext, "runAsGroup"): _ID,
    (v1.SecurityContext, "procMount"): one_of("Default", "Unmasked"),
    (v1.SeccompProfile, "type"): _PROFILE,
    (v1.SeccompProfile, "localhostProfile"): BELOW,
    (v1.AppArmorProfile, "type"): _PROFILE,
    (v1.AppArmorProfile, "localhostProfile"): matching(
        "the name of a profile, without spaces around it", r"(\S(.*\S)?)?", longest=4095
    ),
    (v1.Container, "name"): DNS_LABEL,
    (v1.Container, "image"): _IMAGE,
    (v1.Container, "imagePullPolicy"): PULL_POLICY,
    (v1.Container, "restartPolicy"): _RESTART_POLICY,
    (v1.Container, "terminationMessagePolicy"): optional(one_of("File", "FallbackToLogsOnError")),
    (v1.ContainerPort, "containerPort"): _PORT,
    (v1.ContainerPort, "hostPort"): between(0, 65_535),
    (v1.ContainerPort, "name"): optional(_PORT_NAME),
    (v1.ContainerPort, "protocol"): optional(one_of("TCP", "UDP", "SCTP")),
    (v1.ContainerResizePolicy, "resourceName"): one_of("cpu", "memory"),
    (v1.ContainerResizePolicy, "restartPolicy"): one_of("NotRequired", "RestartContainer"),
    (v1.ContainerRestartRule, "action"): one_of("Restart", "RestartAllContainers"),
    (v1.ContainerRestartRuleOnExitCodes, "operator"): one_of("In", "NotIn"),
    (v1.EnvVar, "name"): _VARIABLE,
    (v1.EnvFromSource, "prefix"): optional(_VARIABLE),
    (v1.ConfigMapEnvSource, "name"): optional(NAME_BEGIN),
    (v1.SecretEnvSource, "name"): optional(NAME_BEGIN),
    (v1.ObjectFieldSelector, "fieldPath"): NOT_EMPTY,
    (v1.ObjectFieldSelector, "apiVersion"): optional(one_of("v1")),
    (v1.ResourceFieldSelector, "resource"): _RESOURCE_FIELD,
    (v1.ConfigMapKeySelector, "name"): optional(DNS_SUBDOMAIN),
    (v1.ConfigMapKeySelector, "key"): KEY,
    (v1.SecretKeySelector, "name"): optional(DNS_SUBDOMAIN),
    (v1.SecretKeySelector, "key"): KEY,
    (v1.Probe, "initialDelaySeconds"): _COUNT,
    (v1.Probe, "timeoutSeconds"): _COUNT,
    (v1.Probe, "periodSeconds"): _COUNT,
    (v1.Probe, "successThreshold"): _COUNT,
    (v1.Probe, "failureThreshold"): _COUNT,
    (v1.Probe, "terminationGracePeriodSeconds"): POSITIVE,
    (v1.Lifecycle, "stopSignal"): _SIGNAL,
    (v1.HTTPGetAction, "port"): _PORT_REFERENCE,
    (v1.HTTPGetAction, "scheme"): optional(one_of("HTTP", "HTTPS")),
    (v1.HTTPHeader, "name"): _HEADER,
    (v1.TCPSocketAction, "port"): _PORT_REFERENCE,
    (v1.GRPCAction, "port"): _PORT,
    (v1.SleepAction, "seconds"): NOT_NEGATIVE,
    (v1.VolumeMount, "mountPath"): NOT_EMPTY,
    (v1.VolumeMount, "subPath"): optional(BELOW),
    (v1.VolumeMount, "subPathExpr"): optional(BELOW),
    (v1.VolumeMount, "recursiveReadOnly"): one_of("Disabled", "IfPossible", "Enabled"),
    (v1.VolumeMount, "mountPropagation"): one_of("None", "HostToContainer", "Bidirectional"),
    (v1.VolumeDevice, "name"): NOT_EMPTY,
    (v1.VolumeDevice, "devicePath"): NOT_UP,
    (v1.Volume, "name"): DNS_LABEL,
    (v1.HostPathVolumeSource, "path"): NOT_UP,
    (v1.HostPathVolumeSource, "type"): optional(
        one_of(
            "DirectoryOrCreate", "Directory", "FileOrCreate", "File", "Socket", "CharDevice", "BlockDevice"
        )
    ),
    (v1.ImageVolumeSource, "pullPolicy"): PULL_POLICY,
    (v1.SecretVolumeSource, "defaultMode"): FILE_MODE,
    (v1.ConfigMapVolumeSource, "defaultMode"): FILE_MODE,
    (v1.DownwardAPIVolumeSource, "defaultMode"): FILE_MODE,
    (v1.ProjectedVolumeSource, "defaultMode"): FILE_MODE,
    (v1.KeyToPath, "key"): NOT_EMPTY,
    (v1.KeyToPath, "path"): FILE_BELOW,
    (v1.KeyToPath, "mode"): FILE_MODE,
    (v1.DownwardAPIVolumeFile, "path"): FILE_BELOW,
    (v1.DownwardAPIVolumeFile, "mode"): FILE_MODE,
    (v1.ServiceAccountTokenProjection, "path"): FILE_BELOW,
    (v1.ServiceAccountTokenProjection, "expirationSeconds"): between(600, 1 << 32),
}
"""The rule for each field that has one. Zeros of a probe are allowed: they stand for the default."""
