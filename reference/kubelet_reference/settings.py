"""The kubelet's configuration: the fields of KubeletConfiguration that the core reads, and its constants."""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = ("Settings",)


@dataclass(frozen=True, slots=True)
class Settings:
    """What a node's operator sets; defaults are Kubernetes' own. Durations are seconds."""

    node_name: str = "node"
    node_ip: str = "10.0.0.1"
    static_pod_path: str = ""
    static_pod_url: str = ""
    with_api_server: bool = True
    file_check_frequency: float = 20
    http_check_frequency: float = 20
    sync_frequency: float = 60
    runtime_request_timeout: float = 120
    pod_logs_dir: str = "/var/log/pods"
    root_dir: str = "/var/lib/kubelet"
    max_pods: int = 110
    cpu_millicores: int = 8_000
    memory_bytes: int = 32 << 30
    max_container_restart_period: float = 300
    serialize_image_pulls: bool = True
    registry_pull_qps: float = 5
    registry_burst: int = 10
    container_log_max_size: int = 10 << 20
    """Bytes from which on a log is rotated."""
    container_log_max_files: int = 5
    """How many files one log may have, at least 2."""
    feature_gates: dict[str, bool] = field(default_factory=dict[str, bool])
