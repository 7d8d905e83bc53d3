"""Questions that every part of the kubelet asks about a pod; a pod is never changed in place."""

from collections.abc import Mapping
from typing import TypeAlias, cast

from lightkube.models.core_v1 import Container, EphemeralContainer, Pod, PodSpec
from lightkube.models.meta_v1 import ObjectMeta

from kubelet_reference.api import names

AnyContainer: TypeAlias = Container | EphemeralContainer
"""An init, app or ephemeral container of a spec; they have the same fields, as far as they are used."""

ALWAYS, ON_FAILURE, NEVER = "Always", "OnFailure", "Never"
PENDING, RUNNING, SUCCEEDED, FAILED = "Pending", "Running", "Succeeded", "Failed"

GRACE_WITHOUT_SPEC = 2
"""Seconds for a pod whose spec has no grace period at all (constants of the catalogue)."""
_NO_METADATA = ObjectMeta()
_NO_SPEC = PodSpec(containers=[])


def metadata(pod: Pod) -> ObjectMeta:
    """The pod's metadata."""
    return pod.metadata or _NO_METADATA


def spec(pod: Pod) -> PodSpec:
    """The pod's spec."""
    return pod.spec or _NO_SPEC


def uid(pod: Pod) -> str:
    """The pod's UID, "" before it has one."""
    return (pod.metadata or _NO_METADATA).uid or ""


def name(pod: Pod) -> str:
    """The pod's name."""
    return (pod.metadata or _NO_METADATA).name or ""


def namespace(pod: Pod) -> str:
    """The pod's namespace."""
    return (pod.metadata or _NO_METADATA).namespace or "default"


def key(pod: Pod) -> str:
    """Namespace and name, as "default/web"."""
    return f"{namespace(pod)}/{name(pod)}"


def full_name(pod: Pod) -> str:
    """Name and namespace as the kubelet joins them, "web_default": what a static pod holds (STATIC-18)."""
    return f"{name(pod)}_{namespace(pod)}"


def annotations(pod: Pod) -> Mapping[str, str]:
    """The pod's annotations."""
    found = (pod.metadata or _NO_METADATA).annotations  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    return cast("dict[str, str] | None", found) or {}


def labels(pod: Pod) -> Mapping[str, str]:
    """The pod's labels."""
    found = (pod.metadata or _NO_METADATA).labels  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    return cast("dict[str, str] | None", found) or {}


def source(pod: Pod) -> str:
    """Where the pod comes from: api, file or http."""
    return annotations(pod).get(names.CONFIG_SOURCE, "api")


def is_static(pod: Pod) -> bool:
    """Whether the pod comes from a manifest, not from the API server."""
    return source(pod) != "api"


def is_mirror(pod: Pod) -> bool:
    """Whether the pod is the API server's image of a static pod (STATIC-11)."""
    return names.CONFIG_MIRROR in annotations(pod)


def containers(pod: Pod) -> list[Container]:
    """The app containers."""
    return (pod.spec or _NO_SPEC).containers


def init_containers(pod: Pod) -> list[Container]:
    """The init containers, sidecars included."""
    return (pod.spec or _NO_SPEC).initContainers or []


def ephemeral_containers(pod: Pod) -> list[EphemeralContainer]:
    """The ephemeral containers."""
    return (pod.spec or _NO_SPEC).ephemeralContainers or []


def all_containers(pod: Pod) -> tuple[AnyContainer, ...]:
    """The init, app and ephemeral containers."""
    return (*init_containers(pod), *containers(pod), *ephemeral_containers(pod))


def container(pod: Pod, container_name: str) -> AnyContainer | None:
    """The container of that name, of whatever kind."""
    return next((one for one in all_containers(pod) if one.name == container_name), None)


def bare_id(container_id: str | None) -> str:
    """The runtime's own id in one of the API, such as "fake://1f0c"; "" for none."""
    return (container_id or "").rpartition("://")[2]


def is_sidecar(one: AnyContainer) -> bool:
    """Whether an init container is a sidecar: it has restartPolicy Always (SIDECAR-01)."""
    return one.restartPolicy == ALWAYS


def sidecars(pod: Pod) -> list[Container]:
    """The init containers that are sidecars."""
    return [one for one in init_containers(pod) if is_sidecar(one)]


def has_sidecars(pod: Pod) -> bool:
    """Whether an init container of the pod is a sidecar."""
    return any(is_sidecar(one) for one in init_containers(pod))


def field_path(pod: Pod, container_name: str) -> str:
    """Where the container stands in the pod, as events name it: "spec.containers{app}"; "" if nowhere."""
    lists = (
        ("initContainers", init_containers(pod)),
        ("containers", containers(pod)),
        ("ephemeralContainers", ephemeral_containers(pod)),
    )
    for kind, found in lists:
        if any(one.name == container_name for one in found):
            return f"spec.{kind}{{{container_name}}}"
    return ""


def grace_seconds(pod: Pod) -> int:
    """The grace period of the spec, in seconds."""
    seconds = spec(pod).terminationGracePeriodSeconds
    return GRACE_WITHOUT_SPEC if seconds is None else seconds


def deletion_asked(pod: Pod) -> bool:
    """Whether the pod's deletion was asked for at the API server."""
    return (pod.metadata or _NO_METADATA).deletionTimestamp is not None


def deletion_grace_seconds(pod: Pod) -> int | None:
    """The grace period that a deletion was asked for with, in seconds; None without a deletion."""
    return metadata(pod).deletionGracePeriodSeconds


def phase(pod: Pod) -> str:
    """The phase in the pod's own status, "" if it has none."""
    return (pod.status.phase if pod.status else None) or ""


def is_terminal_phase(phase_name: str | None) -> bool:
    """Whether a pod in this phase has ended for good."""
    return phase_name in {SUCCEEDED, FAILED}


def restart_policy(pod: Pod) -> str:
    """The restart policy: Always (the default), OnFailure or Never."""
    return (pod.spec or _NO_SPEC).restartPolicy or ALWAYS


def host_network(pod: Pod) -> bool:
    """Whether the pod is on the host's network."""
    return bool((pod.spec or _NO_SPEC).hostNetwork)


SYSTEM_CRITICAL = 2_000_000_000
"""From this priority on a pod is critical: that of the class system-cluster-critical."""


def priority(pod: Pod) -> int:
    """The pod's priority, 0 if it has none."""
    return spec(pod).priority or 0


def is_critical(pod: Pod) -> bool:
    """Whether the node cannot do without the pod: static, a mirror, or of system priority (STATIC-23)."""
    return is_static(pod) or is_mirror(pod) or priority(pod) >= SYSTEM_CRITICAL


def may_preempt(pod: Pod, other: Pod) -> bool:
    """Whether a pod that needs room may take that of the other one (ADMIT-08)."""
    if is_critical(pod) and not is_critical(other):
        return True
    of_other = spec(other).priority
    return of_other is not None and priority(pod) > of_other
