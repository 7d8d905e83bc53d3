"""What a pod may say only on the one operating system or the other."""

from collections.abc import Iterator

from lightkube.models.core_v1 import Pod, PodSecurityContext, SecurityContext

from kubelet_reference.api import pods
from kubelet_reference.config.field_errors import FieldPath
from kubelet_reference.config.validation.rules import Rule, containers

_OF_LINUX_PODS = ("hostUsers", "hostPID", "hostIPC", "shareProcessNamespace")
_SWITCHES = frozenset({"hostPID", "hostIPC"})
"""Fields for which false is as good as nothing."""
_OF_LINUX = (
    "allowPrivilegeEscalation",
    "appArmorProfile",
    "capabilities",
    "fsGroup",
    "fsGroupChangePolicy",
    "privileged",
    "procMount",
    "readOnlyRootFilesystem",
    "runAsGroup",
    "runAsUser",
    "seLinuxChangePolicy",
    "seLinuxOptions",
    "seccompProfile",
    "supplementalGroups",
    "supplementalGroupsPolicy",
    "sysctls",
)
"""Fields of a security context, of a pod or a container, that mean nothing to Windows."""
_SIGNALS_OF_WINDOWS = frozenset({"SIGTERM", "SIGKILL"})


def foreign_fields(pod: Pod, place: FieldPath) -> None:
    """A pod that names its operating system says nothing that only the other one knows."""
    spec = pods.spec(pod)
    if spec.os is None:
        return
    unknown = _OF_LINUX if spec.os.name == "windows" else ("windowsOptions",)
    for context, at in _contexts(pod, place):
        for name in unknown:
            if getattr(context, name, None) is not None:
                at.field(name).wrong(f"not allowed on {spec.os.name}")
    for name in _OF_LINUX_PODS if spec.os.name == "windows" else ():
        said = getattr(spec, name)
        if said is not None and (said or name not in _SWITCHES):
            place.field(name).wrong(f"not allowed on {spec.os.name}")


def host_processes(pod: Pod, place: FieldPath) -> None:
    """Where one container is a process of a Windows host, all are, and the network is the host's."""
    spec = pods.spec(pod)
    of_pod = _host_process(spec.securityContext)
    said = [(_host_process(one.securityContext), where) for one, where in containers(pod, place)]
    for own, where in said:
        if None not in {own, of_pod} and own != of_pod:
            at = where.field("securityContext").field("windowsOptions").field("hostProcess")
            at.expected("what the pod says", own)
    processes = [of_pod if own is None else own for own, _ in said]
    if any(processes):
        if not all(processes):
            place.field("containers").wrong("expected host processes only, or none")
        if not spec.hostNetwork:
            place.field("hostNetwork").wrong("expected true for processes of a Windows host")


def stop_signals(pod: Pod, place: FieldPath) -> None:
    """A signal of its own is one of the operating system that the pod names (KEP-4960)."""
    os = pods.spec(pod).os
    for one, where in containers(pod, place):
        signal = one.lifecycle.stopSignal if one.lifecycle else None
        if signal is not None:
            at = where.field("lifecycle").field("stopSignal")
            if os is None:
                at.wrong("only allowed with os.name")
            elif os.name == "windows" and signal not in _SIGNALS_OF_WINDOWS:
                at.expected("SIGTERM or SIGKILL", signal)


def _contexts(pod: Pod, place: FieldPath) -> Iterator[tuple[object, FieldPath]]:
    yield pods.spec(pod).securityContext, place.field("securityContext")
    for one, where in containers(pod, place):
        yield one.securityContext, where.field("securityContext")


def _host_process(context: PodSecurityContext | SecurityContext | None) -> bool | None:
    options = context.windowsOptions if context else None
    return options.hostProcess if options else None


OS_RULES: tuple[Rule, ...] = (foreign_fields, host_processes, stop_signals)
