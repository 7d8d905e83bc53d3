"""Typed accessors on pod manifests and pod statuses: only the fields that judges read."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import msgspec

from kubelet_conformance.trace.container_specs import ApiObject, ContainerResources, ContainerSpec, ObjectRef
from kubelet_conformance.trace.once import once
from kubelet_conformance.trace.written_keys import Annotation

Kind = Literal["init", "sidecar", "app", "ephemeral", "unknown"]
Trait: TypeAlias = Kind | Literal["hook", "probe", "deadline", "gates", "own restarts"]

DEFAULT_GRACE_SECONDS = 30
"""terminationGracePeriodSeconds where the manifest gives none (API default)."""


class Metadata(ApiObject, frozen=True):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    deletion_grace_period_seconds: int | None = None
    generation: int | None = None
    """How often its spec was written; API servers before 1.33 do not count."""

    @property
    def is_mirror(self) -> bool:
        """It is of a mirror pod, which stands for a static pod at the API server."""
        return bool(self.annotations) and Annotation.MIRROR in (self.annotations or {})


class Sysctl(ApiObject, frozen=True):
    name: str = ""
    value: str = ""


class PodSecurityContext(ApiObject, frozen=True):
    sysctls: list[Sysctl] | None = None
    run_as_non_root: bool | None = None
    run_as_user: int | None = None


class HostAlias(ApiObject, frozen=True):
    ip: str = ""
    hostnames: list[str] | None = None


class ResourceClaim(ApiObject, frozen=True):
    """A claim of the pod: of an object that is named, or of one that is made for it by a template."""

    name: str = ""
    resource_claim_name: str | None = None


class ReadinessGate(ApiObject, frozen=True):
    condition_type: str = ""


class PodSpec(ApiObject, frozen=True, dict=True, gc=True):
    containers: list[ContainerSpec] = msgspec.field(default_factory=list[ContainerSpec])
    init_containers: list[ContainerSpec] | None = None
    ephemeral_containers: list[ContainerSpec] | None = None
    restart_policy: Literal["Always", "OnFailure", "Never"] = "Always"
    termination_grace_period_seconds: int | None = None
    active_deadline_seconds: int | None = None
    priority: int | None = None
    tolerations: list[dict[str, Any]] | None = None
    host_network: bool = False
    host_pid: bool = msgspec.field(default=False, name="hostPID")
    host_ipc: bool = msgspec.field(default=False, name="hostIPC")
    share_process_namespace: bool = False
    hostname: str = ""
    subdomain: str = ""
    node_name: str = ""
    runtime_class_name: str | None = None
    readiness_gates: list[ReadinessGate] | None = None
    hostname_override: str | None = None
    volumes: list[dict[str, Any]] | None = None
    security_context: PodSecurityContext | None = None
    image_pull_secrets: list[ObjectRef] | None = None
    host_aliases: list[HostAlias] | None = None
    resource_claims: list[ResourceClaim] | None = None

    @property
    def grace_seconds(self) -> int:
        """The pod's grace period, with the API's default."""
        given = self.termination_grace_period_seconds
        return DEFAULT_GRACE_SECONDS if given is None else given

    @once
    def entries(self) -> dict[str, tuple[Kind, ContainerSpec]]:
        """Every container by name, with the kind that its list gives it."""
        found: dict[str, tuple[Kind, ContainerSpec]] = {one.name: ("app", one) for one in self.containers}
        for one in self.init_containers or ():
            found.setdefault(one.name, ("sidecar" if one.is_sidecar else "init", one))
        for one in self.ephemeral_containers or ():
            found.setdefault(one.name, ("ephemeral", one))
        return found

    @once
    def regular_inits(self) -> tuple[ContainerSpec, ...]:
        """The init containers that run to their end, in order."""
        return tuple([one for one in self.init_containers or () if not one.is_sidecar])

    @once
    def sidecars(self) -> tuple[ContainerSpec, ...]:
        """The restartable init containers, in order."""
        return tuple([one for one in self.init_containers or () if one.is_sidecar])

    @once
    def traits(self) -> frozenset[Trait]:
        """What rules about some pods only may ask for.

        These are its kinds of container, hooks, probes, a deadline, readiness gates, and restart policies of
        containers of their own.
        """
        found: set[Trait] = {kind for kind, _ in self.entries.values()}
        for _, one in self.entries.values():
            if one.lifecycle.post_start or one.lifecycle.pre_stop:
                found.add("hook")
            if one.liveness_probe or one.readiness_probe or one.startup_probe:
                found.add("probe")
        if self.active_deadline_seconds is not None:
            found.add("deadline")
        if self.readiness_gates:
            found.add("gates")
        if any(one.restart_policy for one in (*self.containers, *self.regular_inits)):
            found.add("own restarts")
        return frozenset(found)


class _OfContainer(ApiObject, frozen=True):
    container_id: str = msgspec.field(default="", name="containerID")

    @property
    def runtime_id(self) -> str:
        """The runtime's container id: `containerID` without its `scheme://`."""
        return self.container_id.rpartition("://")[2]


class Terminated(_OfContainer, frozen=True):
    exit_code: int = 0
    signal: int = 0
    reason: str = ""
    message: str = ""
    started_at: str | None = None
    finished_at: str | None = None


class Waiting(ApiObject, frozen=True):
    reason: str = ""
    message: str = ""


class Running(ApiObject, frozen=True):
    started_at: str | None = None


class ContainerState(ApiObject, frozen=True):
    """At most one of the three is there."""

    waiting: Waiting | None = None
    running: Running | None = None
    terminated: Terminated | None = None


class ContainerStatus(_OfContainer, frozen=True):
    name: str = ""
    state: ContainerState = ContainerState()
    last_state: ContainerState = ContainerState()
    ready: bool = False
    restart_count: int = 0
    image: str = ""
    image_id: str = msgspec.field(default="", name="imageID")
    started: bool | None = None
    resources: ContainerResources | None = None
    allocated_resources: dict[str, Any] | None = None
    stop_signal: str = ""


class Condition(ApiObject, frozen=True):
    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: str | None = None


class PodAddress(ApiObject, frozen=True):
    ip: str = ""


class PodStatus(ApiObject, frozen=True, dict=True, gc=True):
    phase: str = ""
    reason: str = ""
    message: str = ""
    conditions: list[Condition] | None = None
    host_ip: str = msgspec.field(default="", name="hostIP")
    pod_ip: str = msgspec.field(default="", name="podIP")
    pod_ips: list[PodAddress] | None = msgspec.field(default=None, name="podIPs")
    start_time: str | None = None
    qos_class: str = ""
    resize: str = ""
    observed_generation: int | None = None
    init_container_statuses: list[ContainerStatus] | None = None
    container_statuses: list[ContainerStatus] | None = None
    ephemeral_container_statuses: list[ContainerStatus] | None = None

    @once
    def _conditions(self) -> dict[str, Condition]:
        # Of several that have one type the first counts.
        return {one.type: one for one in reversed(self.conditions or ())}

    def condition(self, kind: str) -> Condition | None:
        """The condition of that type, if it is there."""
        return self._conditions.get(kind)

    @once
    def lasting_containers(self) -> tuple[ContainerStatus, ...]:
        """The statuses of the containers the pod was made with: init, app."""
        return *(self.init_container_statuses or ()), *(self.container_statuses or ())

    @once
    def every_container(self) -> tuple[ContainerStatus, ...]:
        """The statuses of all containers: init, app, ephemeral."""
        return *self.lasting_containers, *(self.ephemeral_container_statuses or ())

    @once
    def lasting_by_name(self) -> dict[str, ContainerStatus]:
        """The statuses of the containers the pod was made with, by name."""
        return {one.name: one for one in self.lasting_containers}

    @once
    def by_name(self) -> dict[str, ContainerStatus]:
        """The statuses of all containers, by name."""
        return {one.name: one for one in self.every_container}

    @property
    def terminal(self) -> bool:
        """Succeeded and Failed are final."""
        return self.phase in {"Succeeded", "Failed"}


class Manifest(ApiObject, frozen=True):
    """A pod as it was sent to the kubelet."""

    metadata: Metadata = Metadata()
    spec: PodSpec = PodSpec()
    status: PodStatus | None = None
