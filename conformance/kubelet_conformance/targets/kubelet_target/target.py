"""What a kubelet is that runs in a process of its own: how it is started, and what it can do."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

PLACEHOLDERS: Mapping[str, str] = {
    "config": "the file that `config` was written to",
    "healthz_port": "a free port",
    "kubeconfig": "the kubeconfig of its API server",
    "images": "the address of the image service, unix:///...",
    "kubernetes": "the version, such as 1.32",
    "logs": "a folder for the logs of pods",
    "node": "the node's name",
    "pods": "the manifest folder",
    "port": "a free port",
    "python": "this Python",
    "read_only_port": "a free port",
    "url": "the URL of a PodList",
    "root": "a folder for the kubelet's files",
    "runtime": "the address of the runtime, unix:///...",
}
"""What `{...}` in a command, a configuration, a URL or the environment can stand for."""
CAPABILITIES: Mapping[str, str] = {
    "restart": "it may be stopped or killed, and started again",
    "statuses": "it serves a PodList at `pod_list`, which is read where it has no API server",
    "metrics": "it serves metrics at `metrics`",
    "events": "it writes its events to its log, as with --v=3, which is read where it has no API server",
    "url": "it reads manifests from a URL too",
}
"""What a kubelet can do for scenarios; all, unless a target file names those it can."""
LOCAL = "http://127.0.0.1:"


@dataclass(frozen=True, slots=True)
class KubeletTarget:
    """A kubelet that is started by a command.

    Attributes:
        command: the program and its arguments.
        name: what it is called in traces and reports.
        kubernetes: its version, such as "1.32".
        config: the text of its configuration, YAML; "" for none.
        overrides: fields that its configuration has besides, or instead.
        environment: variables that it gets besides our own.
        healthz: the URL that answers 200 when it is ready.
        pods: how it gets its pods: from an API server, as files of a manifest folder, or from a URL.
        pod_list: the URL of the v1 PodList of its pods.
        metrics: the URL of its metrics.
        start_seconds: how long it may take to be ready.
        stop_seconds: how long it may take to end after SIGTERM.
        capabilities: what it can do, of `CAPABILITIES`.
        feature_gates: those that are set, for the header of traces.
        baseline: its known deviations, a file or the name of a bundled baseline; "" for none.
    """

    command: tuple[str, ...]
    name: str = "kubelet"
    kubernetes: str = "1.32"
    config: str = ""
    overrides: Mapping[str, Any] = field(default_factory=dict[str, Any])
    pods: Literal["api", "folder", "url"] = "folder"
    environment: Mapping[str, str] = field(default_factory=dict[str, str])
    healthz: str = LOCAL + "{healthz_port}/healthz"
    pod_list: str = LOCAL + "{read_only_port}/pods"
    metrics: str = LOCAL + "{read_only_port}/metrics"
    start_seconds: float = 30.0
    stop_seconds: float = 30.0
    capabilities: frozenset[str] = frozenset(CAPABILITIES)
    feature_gates: Mapping[str, bool] = field(default_factory=dict[str, bool])
    baseline: str = ""
