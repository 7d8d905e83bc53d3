"""SANDBOX: the config that a sandbox is run with, and that its containers are made in it with."""

from typing import TypeAlias

from msgspec.structs import replace

from kubelet_conformance.contract import Moment, Pod, PodSpec
from kubelet_conformance.contract.applicability import CRI, PODS, ByVersion, since
from kubelet_conformance.contract.definition import KEPT, Findings, broken, contract
from kubelet_conformance.contract.patterns import call
from kubelet_conformance.contracts.facts.sandbox import (
    is_ready,
    lost_its_cgroup,
    may_be_stopped,
    sandbox_asked,
    standing,
)
from kubelet_conformance.contracts.runtime.expected import judges_waits
from kubelet_conformance.trace.format import bodies
from kubelet_conformance.trace.format.labels import Label, shown
from kubelet_conformance.trace.format.manifests import ContainerSpec

OWN_ANNOTATIONS = "kubernetes.io/config."
"""The kubelet's own annotations: seen, source, hash, mirror."""
HOSTNAME_MAX = 63
"""Longest hostname of the kernel."""
LOGS = ByVersion({"<=1.31": "/var/log/pods/", ">=1.32": ""})
"""Where pod logs are; from 1.32 on a setting (podLogsDir)."""


def never_updated(pod: Pod) -> bool:
    """No sync can hold another manifest than the one that is known."""
    is_first = pod.changed_t == pod.set_t and pod.changed_seq == pod.set_seq
    return pod.manifest is not None and is_first and pod.spec_changed_t is None


def _identity(meta: bodies.PodSandboxMetadata) -> dict[str, str]:
    return {Label.POD_NAME: meta.name, Label.POD_NAMESPACE: meta.namespace, Label.POD_UID: meta.uid}


def of_the_pod(annotations: dict[str, str]) -> dict[str, str]:
    """The annotations that are not the kubelet's own."""
    return {key: value for key, value in annotations.items() if not key.startswith(OWN_ANNOTATIONS)}


def differing(expected: dict[str, str], got: dict[str, str]) -> str:
    """The first key that differs, with both values."""
    key = next(key for key in sorted({*expected, *got}) if expected.get(key) != got.get(key))
    return f"{key} is {shown(got, key)}, expected {shown(expected, key)}"


@contract("SANDBOX-11", on=call("RunPodSandbox"))
def sandbox_is_labelled_as_its_pod(m: Moment) -> Findings:
    """A sandbox has the pod's labels, those of its name, namespace and UID, and its annotations."""
    config, pod = sandbox_asked(m), m.pod
    identity = _identity(config.metadata)
    named = {key: config.labels.get(key, "") for key in identity}
    if named != identity:
        return broken(f"label {differing(identity, named)}")
    if pod is None or pod.manifest is None or not never_updated(pod):
        return KEPT
    meta = pod.manifest.metadata
    labels = {**(meta.labels or {}), **identity}
    if config.labels != labels:
        return broken(f"label {differing(labels, config.labels)}", pod.set_seq)
    annotations, got = of_the_pod(meta.annotations or {}), of_the_pod(config.annotations)
    if annotations != got:
        return broken(f"annotation {differing(annotations, got)}", pod.set_seq)
    return KEPT


@contract("SANDBOX-12", on=call("RunPodSandbox"), versions=LOGS)
def log_directory_names_the_pod(m: Moment) -> Findings:
    """The log directory is /var/log/pods/<namespace>_<name>_<uid>; since 1.32 its parent is a setting."""
    config = sandbox_asked(m)
    meta = config.metadata
    name = f"{meta.namespace}_{meta.name}_{meta.uid}"
    parent = LOGS.at(m.kubernetes)
    directory = config.log_directory
    right = directory == parent + name if parent else directory.endswith(f"/{name}")
    return KEPT if right else broken(f"log_directory is {directory!r}, expected {parent or '.../'}{name}")


@contract("SANDBOX-13", on=call("RunPodSandbox"), needs=(CRI, PODS))
def hostname_is_the_pods(m: Moment, pod: Pod, spec: PodSpec) -> Findings:
    """The hostname is spec.hostname or the pod's name, cut to 63 characters.

    On the host's network it is empty.
    """
    config = sandbox_asked(m)
    if spec.hostname_override:
        return None
    if spec.host_network:
        return broken(f"hostname {config.hostname!r} on the host's network") if config.hostname else KEPT
    expected = (spec.hostname or config.metadata.name)[:HOSTNAME_MAX].rstrip("-.")
    qualified = bool(spec.subdomain) and config.hostname.startswith(f"{expected}.")
    if config.hostname != expected and not qualified:
        return broken(f"hostname is {config.hostname!r}, expected {expected!r}", pod.set_seq)
    return KEPT


_Port: TypeAlias = tuple[str, int, int]
"""Protocol, the container's port, and the host's."""


def _ports(containers: list[ContainerSpec]) -> set[_Port]:
    return {(p.protocol, p.container_port, p.host_port) for c in containers for p in c.ports or ()}


def _in_words(port: _Port) -> str:
    return f"{port[0]} port {port[1]}, host port {port[2]},"


@contract("SANDBOX-14", on=call("RunPodSandbox"), needs=(CRI, PODS))
def port_mappings_are_those_of_app_containers(m: Moment, pod: Pod, spec: PodSpec) -> Findings:
    """Every host port of an app container is mapped, none that only a regular init container names."""
    if spec.host_network:
        return None
    mapped = {(p.protocol, p.container_port, p.host_port) for p in sandbox_asked(m).port_mappings}
    of_apps = _ports(spec.containers)
    due = {port for port in of_apps if port[2]}
    inits = _ports([c for c in spec.init_containers or () if not c.is_sidecar]) - of_apps
    if missing := due - mapped:
        return broken(f"{_in_words(min(missing))} of an app container is not mapped", pod.set_seq)
    if wrong := inits & mapped:
        return broken(f"{_in_words(min(wrong))} of an init container is mapped", pod.set_seq)
    return KEPT if due or inits else None


def _modes(spec: PodSpec) -> tuple[str, str, str]:
    pid = "NODE" if spec.host_pid else "POD" if spec.share_process_namespace else "CONTAINER"
    return "NODE" if spec.host_network else "POD", pid, "NODE" if spec.host_ipc else "POD"


@contract("SANDBOX-15", on=call("RunPodSandbox"), needs=(CRI, PODS))
def namespaces_follow_the_spec(m: Moment, pod: Pod, spec: PodSpec) -> Findings:
    """The network, PID and IPC namespaces are those that the spec asks for.

    The network is the pod's, or the node's for hostNetwork; PID is per container, the pod's if shared, or the
    node's for hostPID; IPC is the pod's, or the node's for hostIPC.
    """
    options = sandbox_asked(m).linux.security_context.namespace_options
    got, expected = (options.network, options.pid, options.ipc), _modes(spec)
    if got != expected:
        return broken(
            f"network, PID and IPC are {', '.join(got)}, expected {', '.join(expected)}", pod.set_seq
        )
    return KEPT


@contract("SANDBOX-16", on=call("RunPodSandbox"), needs=(CRI, PODS))
def handler_comes_from_the_runtime_class(m: Moment, spec: PodSpec) -> Findings:
    """A pod without a runtimeClassName gets the default handler, which has no name."""
    if spec.runtime_class_name:
        return None
    handler = m.request(bodies.RunPodSandboxRequest).runtime_handler
    return broken(f"handler {handler!r} for a pod without a runtimeClassName") if handler else KEPT


@handler_comes_from_the_runtime_class.clause("class", on=call("RunPodSandbox"))
def class_is_not_ignored(m: Moment, pod: Pod, spec: PodSpec) -> Findings:
    """A pod of the API server with a runtimeClassName is never run by the default handler.

    A class always names a handler, and without the class no sandbox is asked for.
    """
    if pod.source != "api" or not spec.runtime_class_name:
        return None
    if not m.request(bodies.RunPodSandboxRequest).runtime_handler:
        name = spec.runtime_class_name
        return broken(f"the default handler for a pod of the runtime class {name}", pod.set_seq)
    return KEPT


judges_waits(handler_comes_from_the_runtime_class)


def config_difference(pod: Pod, made: bodies.PodSandboxConfig, given: bodies.PodSandboxConfig) -> str | None:
    """How the sandbox config of a container differs from its sandbox's.

    Labels may have been updated in between. The names of sysctls may be written in either of their forms: the
    pod's own is converted where a sandbox is made, and not for a container that is made in a later sync
    (kuberuntime_manager.go SyncPod).
    """
    if made == given:
        return None
    made, given = map(_with_dotted_sysctls, (made, given))
    for name in ("metadata", "hostname", "log_directory", "port_mappings", "linux"):
        if getattr(made, name) != getattr(given, name):
            return f"its sandbox has {name} {getattr(made, name)}, it gets {getattr(given, name)}"
    if pod.manifest is not None and not never_updated(pod):
        return None
    if made.labels != given.labels:
        return f"label {differing(made.labels, given.labels)}"
    annotations, got = of_the_pod(made.annotations), of_the_pod(given.annotations)
    return f"annotation {differing(annotations, got)}" if annotations != got else None


def _with_dotted_sysctls(config: bodies.PodSandboxConfig) -> bodies.PodSandboxConfig:
    sysctls = {_dotted(name): value for name, value in config.linux.sysctls.items()}
    return replace(config, linux=replace(config.linux, sysctls=sysctls))


@contract("SANDBOX-17", on=call("CreateContainer"))
def container_is_made_in_the_newest_sandbox(m: Moment, pod: Pod) -> Findings:
    """Every container is made in its pod's newest sandbox, which has not been stopped.

    Its CreateContainer has the config that the sandbox was run with, its attempt included; only the time the
    pod was seen may differ.
    """
    stand = standing(pod) if pod.born else []
    if not stand:
        return None
    newest, request = stand[-1], m.request(bodies.CreateContainerRequest)
    name, run_seq = request.config.metadata.name, newest.run
    if m.sandbox is not newest:
        got = request.pod_sandbox_id[:12]
        return broken(f"{name} is made in {got}, the pod's sandbox is {newest.id[:12]}", run_seq)
    # One whose stop failed may be read as ready since, and is used then.
    is_stopped = bool(newest.stops) and (may_be_stopped(newest) or not is_ready(newest))
    if is_stopped and not lost_its_cgroup(newest):
        return broken(f"{name} is made in a sandbox that was stopped", newest.stops[-1].call.seq)
    if newest.config is None:
        return None
    wrong = config_difference(pod, newest.config, request.sandbox_config)
    return broken(f"{name}: {wrong}", run_seq) if wrong else KEPT


def _dotted(name: str) -> str:
    """A sysctl's name in the runtime's form: of its two forms, the one whose first separator is a dot."""
    first = next((char for char in name if char in "./"), ".")
    return name if first == "." else name.translate(str.maketrans("./", "/."))


@contract("SANDBOX-24", on=call("RunPodSandbox"), needs=(CRI, PODS), versions=since("1.24"))
def sysctl_names_reach_the_runtime_with_dots(m: Moment, pod: Pod, spec: PodSpec) -> Findings:
    """Sysctls written with slashes are given to the runtime with dots, a dot inside a segment as a slash."""
    if spec.security_context is None:
        return None
    wanted = {_dotted(one.name): one.value for one in spec.security_context.sysctls or ()}
    got = sandbox_asked(m).linux.sysctls
    if not wanted:
        return None
    return KEPT if got == wanted else broken(f"sysctl {differing(wanted, got)}", pod.set_seq)
