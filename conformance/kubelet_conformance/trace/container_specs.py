"""Typed accessors on the containers of a pod's manifest: only the fields that judges read."""

from __future__ import annotations

from typing import Any

import msgspec


class ApiObject(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """A part of an API object; absent fields have the API's defaults."""


class ExecAction(ApiObject, frozen=True):
    command: list[str] = []


class SleepAction(ApiObject, frozen=True):
    seconds: int = 0


class Handler(ApiObject, frozen=True):
    """What a hook or a probe does; only the exec kind passes through the runtime."""

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
