"""The kubelet's configuration: the fields of KubeletConfiguration that the core reads, and its constants."""

from dataclasses import dataclass, field


def _hard_thresholds() -> dict[str, str]:
    return {
        "memory.available": "100Mi",
        "nodefs.available": "10%",
        "nodefs.inodesFree": "5%",
        "imagefs.available": "15%",
        "imagefs.inodesFree": "5%",
    }


@dataclass(frozen=True, slots=True)
class Settings:
    """What a node's operator sets; defaults are Kubernetes' own. Durations are seconds."""

    node_name: str = ""
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
    max_container_restart_period: float | None = None
    """The longest delay of restarts, in seconds, where its gate is on; None is the default of 300 s."""
    serialize_image_pulls: bool = True
    registry_pull_qps: float = 5
    registry_burst: int = 10
    max_parallel_image_pulls: int | None = None
    """How many images are pulled at a time where pulls are not one after another; None is no limit."""
    image_pull_credentials_verification_policy: str = "NeverVerifyPreloadedImages"
    """Which images that are there a pod has to prove its right to (KEP-2535)."""
    preloaded_images_verification_allowlist: tuple[str, ...] = ()
    """Images that every pod may use, by patterns, under NeverVerifyAllowlistedImages."""
    maximum_dead_containers: int = -1
    """How many dead containers may stay in all; negative is any number."""
    maximum_dead_containers_per_container: int = 1
    minimum_container_ttl: float = 0
    image_gc_high_threshold: int = 85
    """Percent of the image disk from which on images are removed, until it is filled to the next."""
    image_gc_low_threshold: int = 80
    image_minimum_gc_age: float = 120
    eviction_hard: dict[str, str] = field(default_factory=_hard_thresholds)
    """By signal, how little is too little: an amount, or a share of the whole such as 10%."""
    eviction_soft: dict[str, str] = field(default_factory=dict[str, str])
    eviction_soft_grace_period: dict[str, float] = field(default_factory=dict[str, float])
    """By signal, for how long its soft threshold may be met; each soft threshold needs one."""
    eviction_max_pod_grace_period: int = 0
    eviction_pressure_transition_period: float = 300
    shutdown_grace_period: int = 0
    """How long a shutdown of the node waits for pods; 0 ends nothing."""
    shutdown_grace_period_critical_pods: int = 0
    """What of it is for critical pods."""
    shutdown_grace_period_by_pod_priority: tuple[tuple[int, int], ...] = ()
    """Pairs of the least priority and the time of a group; instead of the two before."""
    feature_gates: dict[str, bool] = field(default_factory=dict[str, bool])
