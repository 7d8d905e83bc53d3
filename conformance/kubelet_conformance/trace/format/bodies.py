"""Typed accessors on the messages of the CRI and of DRA plugins in a trace: only the fields that judges read.

Field names and defaults are protobuf's: an absent field has the default, an enum is its name.
"""

from __future__ import annotations

import msgspec

from kubelet_conformance.trace.format.once import once


class _Body(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A message whose absent fields have protobuf's defaults."""


class PodSandboxMetadata(_Body, frozen=True):
    name: str = ""
    uid: str = ""
    namespace: str = ""
    attempt: int = 0


class ContainerMetadata(_Body, frozen=True):
    name: str = ""
    attempt: int = 0


class NamespaceOptions(_Body, frozen=True):
    """Namespace modes: POD (the default), CONTAINER, NODE, TARGET."""

    network: str = "POD"
    pid: str = "POD"
    ipc: str = "POD"
    target_id: str = ""


class SecurityContext(_Body, frozen=True):
    namespace_options: NamespaceOptions = NamespaceOptions()


class LinuxSandbox(_Body, frozen=True):
    security_context: SecurityContext = SecurityContext()
    sysctls: dict[str, str] = {}


class PortMapping(_Body, frozen=True):
    protocol: str = "TCP"
    container_port: int = 0
    host_port: int = 0
    host_ip: str = ""


class DnsConfig(_Body, frozen=True):
    servers: list[str] = []
    searches: list[str] = []
    options: list[str] = []


class PodSandboxConfig(_Body, frozen=True):
    metadata: PodSandboxMetadata = PodSandboxMetadata()
    hostname: str = ""
    log_directory: str = ""
    dns_config: DnsConfig = DnsConfig()
    port_mappings: list[PortMapping] = []
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    linux: LinuxSandbox = LinuxSandbox()


class RunPodSandboxRequest(_Body, frozen=True):
    config: PodSandboxConfig = PodSandboxConfig()
    runtime_handler: str = ""


class RunPodSandboxReply(_Body, frozen=True):
    pod_sandbox_id: str = ""


class SandboxRequest(_Body, frozen=True):
    """StopPodSandbox, RemovePodSandbox and PodSandboxStatus."""

    pod_sandbox_id: str = ""


class PodIP(_Body, frozen=True):
    ip: str = ""


class Network(_Body, frozen=True):
    ip: str = ""
    additional_ips: list[PodIP] = []


class Namespace(_Body, frozen=True):
    options: NamespaceOptions = NamespaceOptions()


class LinuxSandboxStatus(_Body, frozen=True):
    namespaces: Namespace = Namespace()


class SandboxRecord(_Body, frozen=True):
    """A sandbox as the runtime lists it or gives its status; `created_at` is nanoseconds since the epoch."""

    id: str = ""
    metadata: PodSandboxMetadata = PodSandboxMetadata()
    state: str = "SANDBOX_READY"
    created_at: int = 0
    network: Network | None = None
    linux: LinuxSandboxStatus = LinuxSandboxStatus()
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    runtime_handler: str = ""


class StateFilter(_Body, frozen=True):
    """Presence counts: `{}` is the state with value 0."""

    state: str = ""


class SandboxFilter(_Body, frozen=True):
    id: str = ""
    state: StateFilter | None = None
    label_selector: dict[str, str] = {}


_ALL_SANDBOXES = SandboxFilter()


class ListPodSandboxRequest(_Body, frozen=True, dict=True, gc=True):
    filter: SandboxFilter = SandboxFilter()

    @once
    def everything(self) -> bool:
        """No filter and an empty filter both ask for everything."""
        return self.filter == _ALL_SANDBOXES


class ListPodSandboxReply(_Body, frozen=True):
    items: list[SandboxRecord] = []


class ImageSpec(_Body, frozen=True):
    image: str = ""
    annotations: dict[str, str] = {}
    user_specified_image: str = ""


class Mount(_Body, frozen=True):
    container_path: str = ""
    host_path: str = ""
    image: ImageSpec | None = None
    """What is mounted where it is an image."""
    readonly: bool = False


class KeyValue(_Body, frozen=True):
    key: str = ""
    value: str = ""


class CdiDevice(_Body, frozen=True):
    """A device by its full name, such as `vendor.example/gpu=0`."""

    name: str = ""


class LinuxContainer(_Body, frozen=True):
    security_context: SecurityContext = SecurityContext()
    resources: LinuxResources | None = None


class ContainerConfig(_Body, frozen=True):
    metadata: ContainerMetadata = ContainerMetadata()
    image: ImageSpec = ImageSpec()
    command: list[str] = []
    envs: list[KeyValue] = []
    mounts: list[Mount] = []
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    log_path: str = ""
    linux: LinuxContainer = LinuxContainer()
    stop_signal: str = ""
    cdi_devices: list[CdiDevice] = msgspec.field(default_factory=list[CdiDevice], name="CDI_devices")


class CreateContainerRequest(_Body, frozen=True):
    pod_sandbox_id: str = ""
    config: ContainerConfig = ContainerConfig()
    sandbox_config: PodSandboxConfig = PodSandboxConfig()


class CreateContainerReply(_Body, frozen=True):
    container_id: str = ""


class ContainerRequest(_Body, frozen=True):
    """Any request that names one container: StartContainer, RemoveContainer and others."""

    container_id: str = ""


class StopContainerRequest(_Body, frozen=True):
    """`timeout` is seconds between the stop signal and the kill."""

    container_id: str = ""
    timeout: int = 0


class LinuxResources(_Body, frozen=True):
    """What a container may use; 0 is a value that was not given."""

    cpu_period: int = 0
    cpu_quota: int = 0
    cpu_shares: int = 0
    memory_limit_in_bytes: int = 0


class Resources(_Body, frozen=True):
    linux: LinuxResources | None = None


class ContainerRecord(_Body, frozen=True):
    """A container as the runtime lists it or gives its status; times are nanoseconds since the epoch."""

    id: str = ""
    pod_sandbox_id: str = ""
    metadata: ContainerMetadata = ContainerMetadata()
    state: str = "CONTAINER_CREATED"
    created_at: int = 0
    started_at: int = 0
    finished_at: int = 0
    exit_code: int = 0
    image: ImageSpec = ImageSpec()
    image_ref: str = ""
    image_id: str = ""
    reason: str = ""
    message: str = ""
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    mounts: list[Mount] = []
    log_path: str = ""
    resources: Resources | None = None


class ContainerStatusReply(_Body, frozen=True):
    status: ContainerRecord | None = None


class PodSandboxStatusReply(_Body, frozen=True):
    """`containers_statuses` and `timestamp` are for the evented PLEG; 0 is a runtime without it."""

    status: SandboxRecord | None = None
    containers_statuses: list[ContainerRecord] = []
    timestamp: int = 0


class ContainerFilter(_Body, frozen=True):
    id: str = ""
    state: StateFilter | None = None
    pod_sandbox_id: str = ""
    label_selector: dict[str, str] = {}


_ALL_CONTAINERS = ContainerFilter()


class ListContainersRequest(_Body, frozen=True, dict=True, gc=True):
    filter: ContainerFilter = ContainerFilter()

    @once
    def everything(self) -> bool:
        """No filter and an empty filter both ask for everything."""
        return self.filter == _ALL_CONTAINERS


class ListContainersReply(_Body, frozen=True):
    containers: list[ContainerRecord] = []


class ExecSyncRequest(_Body, frozen=True):
    """`timeout` is seconds, 0 for none."""

    container_id: str = ""
    cmd: list[str] = []
    timeout: int = 0


class ExecSyncReply(_Body, frozen=True):
    exit_code: int = 0


class ImageStatusRequest(_Body, frozen=True):
    image: ImageSpec = ImageSpec()


class Number(_Body, frozen=True):
    """A number that may be absent."""

    value: int = 0


class Image(_Body, frozen=True):
    id: str = ""
    uid: Number | None = None
    username: str = ""
    repo_tags: list[str] = []
    repo_digests: list[str] = []
    size: int = 0
    pinned: bool = False


class ImageStatusReply(_Body, frozen=True):
    image: Image | None = None


class PullImageRequest(_Body, frozen=True):
    image: ImageSpec = ImageSpec()
    auth: dict[str, str] = {}
    """Credentials, or digests in their place."""
    sandbox_config: PodSandboxConfig = PodSandboxConfig()


class PullImageReply(_Body, frozen=True):
    image_ref: str = ""


class VersionReply(_Body, frozen=True):
    version: str = ""
    runtime_name: str = ""
    runtime_version: str = ""
    runtime_api_version: str = ""


class RuntimeCondition(_Body, frozen=True):
    type: str = ""
    status: bool = False


class RuntimeStatus(_Body, frozen=True):
    conditions: list[RuntimeCondition] = []


class RuntimeHandler(_Body, frozen=True):
    name: str = ""


class StatusReply(_Body, frozen=True, dict=True, gc=True):
    """`runtime_handlers` came with Kubernetes 1.30: an older runtime lists none, not even the default one."""

    status: RuntimeStatus | None = None
    runtime_handlers: list[RuntimeHandler] = []

    @once
    def says(self) -> dict[str, bool]:
        """Its conditions by type; none where the runtime gave no status."""
        return {one.type: one.status for one in self.status.conditions} if self.status is not None else {}


class UpdateContainerResourcesRequest(_Body, frozen=True):
    """What of a container's resources is to be changed."""

    container_id: str = ""
    linux: LinuxResources = LinuxResources()


class ContainerEvent(_Body, frozen=True):
    """One item of GetContainerEvents; `created_at` is nanoseconds since the epoch."""

    container_id: str = ""
    container_event_type: str = "CONTAINER_CREATED_EVENT"
    created_at: int = 0
    pod_sandbox_status: SandboxRecord | None = None
    containers_statuses: list[ContainerRecord] = []


class MemoryUse(_Body, frozen=True):
    """How many bytes a container uses; None where the runtime does not report it."""

    working_set_bytes: Number | None = None


class ContainerStatsRecord(_Body, frozen=True):
    """The statistics of one container, of which only memory is read."""

    memory: MemoryUse | None = None


class ContainerStatsReply(_Body, frozen=True):
    """Answers ContainerStats."""

    stats: ContainerStatsRecord = ContainerStatsRecord()


class RemoveImageRequest(_Body, frozen=True):
    """The image by any of its names."""

    image: ImageSpec = ImageSpec()


class ListImagesReply(_Body, frozen=True):
    """The images on the node, or those that a filter names."""

    images: list[Image] = []


class ClaimName(_Body, frozen=True):
    """A claim of dynamic resources, and in a reply the devices that are ready for it."""

    namespace: str = ""
    name: str = ""
    cdi_devices: list[str] = msgspec.field(default_factory=list[str], name="CDI_devices")


class ClaimsRequest(_Body, frozen=True):
    """NodePrepareResources and NodeUnprepareResources."""

    claims: list[ClaimName] = []


class ClaimsReply(_Body, frozen=True):
    """What NodePrepareResources answers."""

    claims: list[ClaimName] = []
