"""KubeletConfiguration: the fields that this kubelet has, each with its default, its reading and its flag."""

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
    address: str = "127.0.0.1"
    port: int = 10250
    read_only_port: int = 0
    healthz_address: str = "127.0.0.1"
    healthz_port: int = 10248


@dataclass(frozen=True, slots=True)
class Field:
    """One field of KubeletConfiguration.

    Attributes:
        attribute: where `Configuration` has it.
        read: its value in a file.
        flag: what the kubelet calls its flag, without the dashes; "" where it has none.
        read_flag: its value in a flag, if that is read otherwise.
        help: of the flag.
    """

    attribute: str
    read: Reader
    flag: str = ""
    read_flag: Reader | None = None
    help: str = ""

    def from_flag(self) -> Reader:
        """How the flag's text is read."""
        return self.read_flag or self.read


def _number(attribute: str, least: int, flag: str, text: str, most: int | None = None) -> Field:
    limits = (least,) if most is None else (least, most)
    return Field(attribute, readers.number(*limits), flag, readers.flag_number(*limits), text)


def _duration(attribute: str, default: float, flag: str, text: str) -> Field:
    return Field(attribute, readers.duration(default), flag, help=f"{text}  [default: {default:g}s]")


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


FIELDS: Mapping[str, Field] = {
    "staticPodPath": Field(
        "static_pod_path", readers.text, "pod-manifest-path", help="Folder of manifests, or one manifest."
    ),
    "staticPodURL": Field("static_pod_url", readers.url, "manifest-url", help="URL of manifests."),
    "staticPodURLHeader": Field(
        "static_pod_url_header",
        readers.headers,
        "manifest-url-header",
        readers.flag_headers,
        "Headers for that URL: Name:value,Other:value.",
    ),
    "fileCheckFrequency": _duration(
        "file_check_frequency", 20, "file-check-frequency", "How often all manifests are read."
    ),
    "httpCheckFrequency": _duration(
        "http_check_frequency", 20, "http-check-frequency", "How often the URL is read."
    ),
    "syncFrequency": _duration("sync_frequency", 60, "sync-frequency", "How often each pod is looked at."),
    "runtimeRequestTimeout": _duration(
        "runtime_request_timeout", 120, "runtime-request-timeout", "How long a call of the runtime may take."
    ),
    "containerRuntimeEndpoint": Field(
        "runtime_socket",
        readers.socket,
        "container-runtime-endpoint",
        help=f"Where the runtime listens.  [default: {DEFAULT_ENDPOINT}]",
    ),
    "imageServiceEndpoint": Field(
        "image_socket",
        readers.socket,
        "image-service-endpoint",
        help="Where its image service listens.  [default: the same]",
    ),
    "address": Field("address", readers.loopback, "address", help="Where to serve; a loopback address."),
    "port": _number("port", 0, "port", "Serves /healthz, /pods, /metrics; 0 takes a free one.", _PORT_MAX),
    "readOnlyPort": _number("read_only_port", 0, "read-only-port", "Serves the same; 0 is off.", _PORT_MAX),
    "healthzBindAddress": Field(
        "healthz_address", readers.loopback, "healthz-bind-address", help="Where to serve /healthz alone."
    ),
    "healthzPort": _number("healthz_port", 0, "healthz-port", "Serves /healthz alone; 0 is off.", _PORT_MAX),
    "podLogsDir": Field("pod_logs_dir", readers.logs_path),
    "maxPods": _number("max_pods", 0, "max-pods", "How many pods may run.  [default: 110]"),
    "crashLoopBackOff": Field("max_container_restart_period", _crash_loop),
    "containerLogMaxSize": Field(
        "container_log_max_size", readers.quantity, "container-log-max-size", help="When a log is rotated."
    ),
    "containerLogMaxFiles": _number(
        "container_log_max_files", 2, "container-log-max-files", "How many files a log may have."
    ),
    "serializeImagePulls": Field(
        "serialize_image_pulls",
        readers.boolean,
        "serialize-image-pulls",
        readers.flag_boolean,
        "Pull one image at a time.",
    ),
    "registryPullQPS": _number("registry_pull_qps", 0, "registry-qps", "Pulls a second; 0 is no limit."),
    "registryBurst": _number("registry_burst", 0, "registry-burst", "Pulls at once, within that."),
    "maxParallelImagePulls": Field("max_parallel_image_pulls", readers.number(1)),
    "imagePullCredentialsVerificationPolicy": Field(
        "image_pull_credentials_verification_policy", readers.one_of(*VERIFICATION_POLICIES)
    ),
    "preloadedImagesVerificationAllowlist": Field("preloaded_images_verification_allowlist", readers.texts),
    "imageGCHighThresholdPercent": Field("image_gc_high_threshold", readers.number(0, _PERCENT)),
    "imageGCLowThresholdPercent": Field("image_gc_low_threshold", readers.number(0, _PERCENT)),
    "imageMinimumGCAge": Field("image_minimum_gc_age", readers.duration(120)),
    "evictionHard": Field("eviction_hard", readers.limits),
    "evictionSoft": Field("eviction_soft", readers.limits),
    "evictionSoftGracePeriod": Field("eviction_soft_grace_period", readers.graces),
    "evictionMaxPodGracePeriod": Field("eviction_max_pod_grace_period", readers.number(_SMALLEST)),
    "evictionPressureTransitionPeriod": Field("eviction_pressure_transition_period", readers.duration(300)),
    "featureGates": Field(
        "feature_gates", readers.gates, "feature-gates", readers.flag_gates, "Gates: Name=true,Other=false."
    ),
}
"""Every field by its name in a file."""
