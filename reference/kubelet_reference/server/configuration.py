"""KubeletConfiguration: the fields that this kubelet has, with their defaults and readers, and its flags."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from kubelet_reference.images.pull_records import VERIFICATION_POLICIES
from kubelet_reference.server import readers
from kubelet_reference.server.readers import DEFAULT_ENDPOINT, Reader, socket_of
from kubelet_reference.util.settings import Settings

API_VERSION, KIND = "kubelet.config.k8s.io/v1beta1", "KubeletConfiguration"
_PORT_MAX = 65535
_PERCENT = 100
_SMALLEST = -(2**31)


@dataclass(frozen=True, slots=True)
class Configuration(Settings):
    """What a node's operator sets, in a file or by flags: the core's settings, and those of the process.

    Only the two addresses differ from a kubelet's defaults: that one listens everywhere and asks who is
    there, this one listens on loopback.
    """

    static_pod_url_header: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    runtime_socket: str = socket_of(DEFAULT_ENDPOINT)
    image_socket: str = ""
    system_reserved: Mapping[str, str] = field(default_factory=dict[str, str])
    """Of cpu and memory, what no pod may have."""
    address: str = "127.0.0.1"
    port: int = 10250
    read_only_port: int = 0
    healthz_address: str = "127.0.0.1"
    healthz_port: int = 10248


def _crash_loop(raw: object, place: Any) -> float | None:  # noqa: ANN401 - the readers' Place
    """The object `crashLoopBackOff`, which has one field."""
    if not isinstance(raw, dict):
        place.expected("an object", raw)
        return None
    found: float | None = None
    for name, value in cast("dict[object, object]", raw).items():
        if name != "maxContainerRestartPeriod":
            place.field(str(name)).wrong("unknown field, did you mean maxContainerRestartPeriod?")
        elif value is not None:
            found = readers.duration(300, 1, 300)(value, place.field(name))
    return found


FIELDS: Mapping[str, tuple[str, Reader]] = {
    "staticPodPath": ("static_pod_path", readers.text),
    "staticPodURL": ("static_pod_url", readers.url),
    "staticPodURLHeader": ("static_pod_url_header", readers.headers),
    "fileCheckFrequency": ("file_check_frequency", readers.duration(20)),
    "httpCheckFrequency": ("http_check_frequency", readers.duration(20)),
    "syncFrequency": ("sync_frequency", readers.duration(60)),
    "runtimeRequestTimeout": ("runtime_request_timeout", readers.duration(120)),
    "containerRuntimeEndpoint": ("runtime_socket", readers.socket),
    "imageServiceEndpoint": ("image_socket", readers.socket),
    "address": ("address", readers.loopback),
    "port": ("port", readers.number(0, _PORT_MAX)),
    "readOnlyPort": ("read_only_port", readers.number(0, _PORT_MAX)),
    "healthzBindAddress": ("healthz_address", readers.loopback),
    "healthzPort": ("healthz_port", readers.number(0, _PORT_MAX)),
    "podLogsDir": ("pod_logs_dir", readers.logs_path),
    "maxPods": ("max_pods", readers.number(0)),
    "crashLoopBackOff": ("max_container_restart_period", _crash_loop),
    "serializeImagePulls": ("serialize_image_pulls", readers.boolean),
    "registryPullQPS": ("registry_pull_qps", readers.number(0)),
    "registryBurst": ("registry_burst", readers.number(0)),
    "maxParallelImagePulls": ("max_parallel_image_pulls", readers.number(1)),
    "imagePullCredentialsVerificationPolicy": (
        "image_pull_credentials_verification_policy",
        readers.one_of(*VERIFICATION_POLICIES),
    ),
    "preloadedImagesVerificationAllowlist": ("preloaded_images_verification_allowlist", readers.texts),
    "imageGCHighThresholdPercent": ("image_gc_high_threshold", readers.number(0, _PERCENT)),
    "imageGCLowThresholdPercent": ("image_gc_low_threshold", readers.number(0, _PERCENT)),
    "imageMinimumGCAge": ("image_minimum_gc_age", readers.duration(120)),
    "systemReserved": ("system_reserved", readers.reserved),
    "evictionHard": ("eviction_hard", readers.limits),
    "evictionSoft": ("eviction_soft", readers.limits),
    "evictionSoftGracePeriod": ("eviction_soft_grace_period", readers.graces),
    "evictionMaxPodGracePeriod": ("eviction_max_pod_grace_period", readers.number(_SMALLEST)),
    "evictionPressureTransitionPeriod": ("eviction_pressure_transition_period", readers.duration(300)),
    "featureGates": ("feature_gates", readers.gates),
}
"""Every field by its name in a file: where `Configuration` has it, and how its value is read."""


@dataclass(frozen=True, slots=True)
class Flag:
    """A flag that sets one field.

    Attributes:
        field: its name in a file.
        help: what it is for.
        kind: of what the flag's value is: a text, or a number.
    """

    field: str
    help: str
    kind: type[str | int] = str


FLAGS: Mapping[str, Flag] = {
    "pod-manifest-path": Flag("staticPodPath", "Folder of manifests, or one manifest."),
    "manifest-url": Flag("staticPodURL", "URL of manifests."),
    "container-runtime-endpoint": Flag(
        "containerRuntimeEndpoint", f"Where the runtime listens.  [default: {DEFAULT_ENDPOINT}]"
    ),
    "image-service-endpoint": Flag(
        "imageServiceEndpoint", "Where its image service listens.  [default: the same]"
    ),
    "port": Flag("port", "Serves /healthz, /pods, /metrics; 0 takes a free one.", int),
    "read-only-port": Flag("readOnlyPort", "Serves the same; 0 is off.", int),
    "healthz-port": Flag("healthzPort", "Serves /healthz alone; 0 is off.", int),
    "feature-gates": Flag("featureGates", "Gates: Name=true,Other=false."),
}
"""The flags by their name without the dashes: those to start it by hand, all else is set in a file."""
