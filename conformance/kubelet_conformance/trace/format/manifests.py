"""Typed accessors on the containers of a pod's manifest: only the fields that judges read.

Typed accessors on pod manifests and pod statuses: only the fields that judges read.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import msgspec

from kubelet_conformance.trace.format.labels import Annotation
from kubelet_conformance.trace.format.once import once


class ApiObject(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """A part of an API object; absent fields have the API's defaults."""


class ExecAction(ApiObject, frozen=True):
    command: list[str] = []


class SleepAction(ApiObject, frozen=True):
    seconds: int = 0


class Handler(ApiObject, frozen=True):
    """The action of a hook or a probe; only the exec kind passes through the runtime."""

    exec: ExecAction | None = None
    http_get: dict[str, Any] | None = None
    tcp_socket: dict[str, Any] | None = None
    grpc: dict[str, Any] | None = None
    sleep: SleepAction | None = None


class Probe(Handler, frozen=True):
    """Times are seconds."""

    initial_delay_seconds: int = 0
    period_seconds: int = 10
    timeout_seconds: int = 1
    success_threshold: int = 1
    failure_threshold: int = 3
    termination_grace_period_seconds: int | None = None


class Lifecycle(ApiObject, frozen=True):
    post_start: Handler | None = None
    pre_stop: Handler | None = None
    stop_signal: str = ""


class ExitCodes(ApiObject, frozen=True):
    operator: str = "In"
    values: list[int] = []


RESTART_ALL = "RestartAllContainers"
"""The action of a restart rule that restarts the whole pod (KEP-5532)."""


class RestartRule(ApiObject, frozen=True):
    """What is to be done after an exit with one of these codes (KEP-5307)."""

    action: str = ""
    exit_codes: ExitCodes | None = None

    def fits(self, code: int) -> bool:
        """Whether it is for that exit code."""
        codes = self.exit_codes
        return codes is not None and (code in codes.values) is (codes.operator == "In")


class Port(ApiObject, frozen=True):
    name: str = ""
    container_port: int = 0
    host_port: int = 0
    host_ip: str = msgspec.field(default="", name="hostIP")
    protocol: str = "TCP"


class FieldRef(ApiObject, frozen=True):
    field_path: str = ""


class ObjectRef(ApiObject, frozen=True):
    """A config map or secret, or one key of it."""

    name: str = ""
    optional: bool = False


class EnvSource(ApiObject, frozen=True):
    field_ref: FieldRef | None = None
    config_map_key_ref: ObjectRef | None = None
    secret_key_ref: ObjectRef | None = None

    @property
    def optional(self) -> bool:
        """The variable is left out where its source is missing."""
        refs = (self.config_map_key_ref, self.secret_key_ref)
        return any(ref is not None and ref.optional for ref in refs)


class EnvVar(ApiObject, frozen=True):
    name: str = ""
    value: str = ""
    value_from: EnvSource | None = None


class VolumeMount(ApiObject, frozen=True):
    name: str = ""
    mount_path: str = ""


class ClaimRef(ApiObject, frozen=True):
    name: str = ""


class ContainerResources(ApiObject, frozen=True):
    """What a container asks for: amounts by resource, and the pod's claims that it uses."""

    requests: dict[str, Any] | None = None
    limits: dict[str, Any] | None = None
    claims: list[ClaimRef] | None = None

    def asked(self, resource: str) -> str:
        """How much of a resource is asked for: the request, or else the limit; "" if neither is set."""
        return str((self.requests or {}).get(resource) or (self.limits or {}).get(resource) or "")


class ResizePolicy(ApiObject, frozen=True):
    resource_name: str = ""
    restart_policy: str = "NotRequired"


class ContainerSecurityContext(ApiObject, frozen=True):
    run_as_non_root: bool | None = None
    run_as_user: int | None = None


class ContainerSpec(ApiObject, frozen=True):
    """One container of any kind, as the manifest has it."""

    name: str = ""
    image: str = ""
    command: list[str] | None = None
    env: list[EnvVar] | None = None
    env_from: list[dict[str, Any]] | None = None
    security_context: ContainerSecurityContext | None = None
    volume_mounts: list[VolumeMount] | None = None
    resources: ContainerResources = ContainerResources()
    resize_policy: list[ResizePolicy] | None = None
    image_pull_policy: str | None = None
    restart_policy: str | None = None
    restart_policy_rules: list[RestartRule] | None = None
    lifecycle: Lifecycle = Lifecycle()
    liveness_probe: Probe | None = None
    readiness_probe: Probe | None = None
    startup_probe: Probe | None = None
    ports: list[Port] | None = None
    target_container_name: str = ""
    termination_message_path: str = "/dev/termination-log"
    termination_message_policy: str = "File"

    @property
    def is_sidecar(self) -> bool:
        """An init container with restartPolicy Always (KEP-753)."""
        return self.restart_policy == "Always"

    def rule_for(self, code: int) -> str | None:
        """What the first of its restart rules that fits the exit code asks for."""
        return next((rule.action for rule in self.restart_policy_rules or () if rule.fits(code)), None)

    @property
    def pull_policy(self) -> str:
        """The policy as the API defaults it: Always for no tag or `latest`, else IfNotPresent."""
        if self.image_pull_policy:
            return self.image_pull_policy
        last = self.image.rsplit("/", 1)[-1]
        tagless = "@" not in last and ":" not in last
        return "Always" if tagless or last.endswith(":latest") else "IfNotPresent"


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
    finalizers: list[str] | None = None

    @property
    def is_mirror(self) -> bool:
        """Whether the object is a mirror pod, which represents a static pod at the API server."""
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
    service_account_name: str = ""
    host_aliases: list[HostAlias] | None = None
    resource_claims: list[ResourceClaim] | None = None

    @property
    def grace_seconds(self) -> int:
        """The pod's grace period, with the API's default; a negative one counts as 1."""
        given = self.termination_grace_period_seconds
        if given is None:
            return DEFAULT_GRACE_SECONDS
        return given if given >= 0 else 1

    @property
    def refers_to_the_api(self) -> bool:
        """The pod, or a variable of a container, refers to an object of the API server, besides volumes."""
        if self.service_account_name or self.image_pull_secrets or self.resource_claims:
            return True
        containers = (*self.containers, *(self.init_containers or ()))
        if any(
            one.get("configMapRef") or one.get("secretRef") for c in containers for one in c.env_from or ()
        ):
            return True
        sources = [one.value_from for c in containers for one in c.env or () if one.value_from is not None]
        return any(one.config_map_key_ref or one.secret_key_ref for one in sources)

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
        """The traits that rules about some pods only may require.

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
