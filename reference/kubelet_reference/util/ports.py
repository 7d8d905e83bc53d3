"""What the kubelet needs from the world: every effect goes through one of these Protocols.

Two errors cross them: `grpc.RpcError` from the runtime (with `code()` and `details()`, in process and over a
socket alike), and `ApiError` from the API server.
"""

from collections.abc import AsyncIterable, AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol, TypeAlias

import msgspec
from cri_api.v1 import api_pb2 as cri
from lightkube.models.core_v1 import ConfigMap, Node, Pod, Secret
from lightkube.models.node_v1 import RuntimeClass


@dataclass(frozen=True, slots=True)
class Amount:
    """What is left of something, and what there is of it in all: bytes, inodes or processes."""

    available: int
    capacity: int


@dataclass(frozen=True, slots=True)
class PodUsage:
    """What a pod uses: `memory`, `ephemeral-storage`, `inodes` and `pids` as a whole, by name.

    `containers` are the bytes of ephemeral storage of each container, `volumes` those of each emptyDir.
    """

    amounts: Mapping[str, int] = field(default_factory=dict[str, int])
    containers: Mapping[str, int] = field(default_factory=dict[str, int])
    volumes: Mapping[str, int] = field(default_factory=dict[str, int])


class NodeStats(Protocol):
    """Reads the signals of the machine, and what its pods use; what cannot be read is left out."""

    async def read(self) -> Mapping[str, Amount]:
        """The signals by name, such as `memory.available`."""
        ...

    async def usage(self) -> Mapping[str, PodUsage]:
        """What each pod uses now, by UID."""
        ...


class ShutdownSignal(Protocol):
    """Announces the shutdown of the machine, and delays it."""

    async def announced(self) -> None:
        """Return when the machine is about to shut down; at once if that was announced before."""
        ...

    def release(self) -> None:
        """Nothing holds the shutdown up any more."""
        ...


class Cgroups(Protocol):
    """The kernel's cgroups below the kubelet's own, by the UIDs of pods; errors are `OSError`."""

    def uids(self) -> Sequence[str]:
        """The pods that have one."""
        ...

    def exists(self, uid: str) -> bool:
        """Whether the pod has one."""
        ...

    def make(self, uid: str) -> None:
        """Make the pod's; one that is there is fine."""
        ...

    def remove(self, uid: str) -> None:
        """Remove the pod's, and end what still runs in it; one that is gone is fine."""
        ...

    def reduce(self, uid: str) -> None:
        """Leave the pod's as little CPU as there is."""
        ...


class Clock(Protocol):
    """Time, real or virtual."""

    def monotonic(self) -> float:
        """Seconds since some fixed moment near the start; never goes back."""
        ...

    def wall_ns(self) -> int:
        """Nanoseconds since the epoch."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Return after `seconds` (0 lets others run)."""
        ...


class Random(Protocol):
    """Choices that nothing decides: which of several ready inputs, how much jitter."""

    def jitter(self, seconds: float, factor: float) -> float:
        """A duration from `seconds` up to `seconds * (1 + factor)`, the end excluded."""
        ...

    def pick(self, count: int) -> int:
        """One of `count` equally good choices, as an index; 0 is first in, first out."""
        ...

    def token(self) -> str:
        """A short name that is not given twice."""
        ...


class RuntimeService(Protocol):
    """The CRI's RuntimeService as its stub has it: a `grpc.aio` stub and a fake in process both fit.

    `timeout` is the deadline in seconds; None is no deadline. A failed call raises `grpc.RpcError`.
    """

    async def Version(
        self, request: cri.VersionRequest, *, timeout: float | None = None
    ) -> cri.VersionResponse: ...
    async def Status(
        self, request: cri.StatusRequest, *, timeout: float | None = None
    ) -> cri.StatusResponse: ...
    async def RuntimeConfig(
        self, request: cri.RuntimeConfigRequest, *, timeout: float | None = None
    ) -> cri.RuntimeConfigResponse: ...
    async def RunPodSandbox(
        self, request: cri.RunPodSandboxRequest, *, timeout: float | None = None
    ) -> cri.RunPodSandboxResponse: ...
    async def StopPodSandbox(
        self, request: cri.StopPodSandboxRequest, *, timeout: float | None = None
    ) -> cri.StopPodSandboxResponse: ...
    async def RemovePodSandbox(
        self, request: cri.RemovePodSandboxRequest, *, timeout: float | None = None
    ) -> cri.RemovePodSandboxResponse: ...
    async def PodSandboxStatus(
        self, request: cri.PodSandboxStatusRequest, *, timeout: float | None = None
    ) -> cri.PodSandboxStatusResponse: ...
    async def ListPodSandbox(
        self, request: cri.ListPodSandboxRequest, *, timeout: float | None = None
    ) -> cri.ListPodSandboxResponse: ...
    async def CreateContainer(
        self, request: cri.CreateContainerRequest, *, timeout: float | None = None
    ) -> cri.CreateContainerResponse: ...
    async def StartContainer(
        self, request: cri.StartContainerRequest, *, timeout: float | None = None
    ) -> cri.StartContainerResponse: ...
    async def StopContainer(
        self, request: cri.StopContainerRequest, *, timeout: float | None = None
    ) -> cri.StopContainerResponse: ...
    async def RemoveContainer(
        self, request: cri.RemoveContainerRequest, *, timeout: float | None = None
    ) -> cri.RemoveContainerResponse: ...
    async def ListContainers(
        self, request: cri.ListContainersRequest, *, timeout: float | None = None
    ) -> cri.ListContainersResponse: ...
    async def ContainerStatus(
        self, request: cri.ContainerStatusRequest, *, timeout: float | None = None
    ) -> cri.ContainerStatusResponse: ...
    async def UpdateContainerResources(
        self, request: cri.UpdateContainerResourcesRequest, *, timeout: float | None = None
    ) -> cri.UpdateContainerResourcesResponse: ...
    async def ContainerStats(
        self, request: cri.ContainerStatsRequest, *, timeout: float | None = None
    ) -> cri.ContainerStatsResponse: ...
    async def ListContainerStats(
        self, request: cri.ListContainerStatsRequest, *, timeout: float | None = None
    ) -> cri.ListContainerStatsResponse: ...
    async def ExecSync(
        self, request: cri.ExecSyncRequest, *, timeout: float | None = None
    ) -> cri.ExecSyncResponse: ...
    def GetContainerEvents(
        self, request: cri.GetEventsRequest, *, timeout: float | None = None
    ) -> AsyncIterable[cri.ContainerEventResponse]: ...


class ImageService(Protocol):
    """The CRI's ImageService, as `RuntimeService` is meant."""

    async def ImageStatus(
        self, request: cri.ImageStatusRequest, *, timeout: float | None = None
    ) -> cri.ImageStatusResponse: ...
    async def PullImage(
        self, request: cri.PullImageRequest, *, timeout: float | None = None
    ) -> cri.PullImageResponse: ...
    async def ListImages(
        self, request: cri.ListImagesRequest, *, timeout: float | None = None
    ) -> cri.ListImagesResponse: ...
    async def RemoveImage(
        self, request: cri.RemoveImageRequest, *, timeout: float | None = None
    ) -> cri.RemoveImageResponse: ...
    async def ImageFsInfo(
        self, request: cri.ImageFsInfoRequest, *, timeout: float | None = None
    ) -> cri.ImageFsInfoResponse: ...


NOT_FOUND = 404
_UNREACHABLE, _TOO_MANY = 0, 429


class ApiError(Exception):
    """The API server refused or could not be reached: `code` is HTTP's (404, 409, 422; 0 is unreachable)."""

    def __init__(self, code: int, reason: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason

    @property
    def is_not_found(self) -> bool:
        """Whether what was asked for does not exist."""
        return self.code == NOT_FOUND

    @property
    def is_passing(self) -> bool:
        """A watch that breaks for it goes on where it was: out of reach, or told to wait (reflector.go)."""
        return self.code in {_UNREACHABLE, _TOO_MANY}


@dataclass(frozen=True, slots=True)
class WatchEvent:
    """One event of a watch: `type` is ADDED, MODIFIED or DELETED."""

    type: str
    pod: Pod


class ApiServer(Protocol):
    """What the kubelet asks of the API server; each method raises `ApiError`."""

    async def list_pods(self, node_name: str) -> tuple[list[Pod], str]:
        """The pods bound to the node, and the resourceVersion to watch from."""
        ...

    def watch_pods(self, node_name: str, resource_version: str) -> AsyncIterator[WatchEvent]:
        """Each change after `resource_version`; ends or raises when it breaks (code 410: list anew)."""
        ...

    async def get_pod(self, namespace: str, name: str) -> Pod: ...
    async def create_pod(self, pod: Pod) -> Pod: ...
    async def patch_pod_status(self, namespace: str, name: str, patch: Mapping[str, object]) -> Pod:
        """Send a strategic merge patch of the status subresource; the merged pod comes back."""
        ...

    async def delete_pod(self, namespace: str, name: str, *, grace_seconds: int, uid: str | None) -> None:
        """Delete with a grace period and, unless None, the precondition that the pod has this UID."""
        ...

    async def get_node(self, name: str) -> Node: ...
    async def get_config_map(self, namespace: str, name: str) -> ConfigMap: ...
    async def get_secret(self, namespace: str, name: str) -> Secret: ...
    async def get_runtime_class(self, name: str) -> RuntimeClass: ...


class ServiceAccountTokens(Protocol):
    """Gives tokens of service accounts, each bound to a pod; raises `ApiError`."""

    async def get(self, pod: Pod, audience: str, seconds: int | None) -> str:
        """A token of the pod's account that is valid now, for an audience ("" is the API server).

        `seconds` is how long a new one should last.
        """
        ...


class PodEvent(msgspec.Struct, frozen=True):
    """One event about a pod: `type` is Normal or Warning, `field_path` names its container, if one."""

    pod: Pod
    type: str
    reason: str
    message: str
    field_path: str = ""


class EventSink(Protocol):
    """Where events go: best effort, never raises, never blocks (EVENTS-05)."""

    def emit(self, event: PodEvent) -> None:
        """Take the event."""
        ...


FileKind: TypeAlias = Literal["Directory", "File", "Link", "Socket", "CharDevice", "BlockDevice", "Other"]
"""The type of what is at a path, in the words of a hostPath volume's type, as far as that has one."""


class Disk(Protocol):
    """The node's disk, as far as the kubelet needs it; paths are absolute. Errors are `OSError`.

    Below the kubelet's own folders no symbolic link is followed and no path with a ".." is taken: what pods
    write there cannot lead the kubelet elsewhere.
    """

    def make_folder(self, path: str, mode: int | None = None) -> None:
        """Make the folder, with these permissions if any, and those above it; one that is there is fine."""
        ...

    def names(self, folder: str) -> Sequence[str]:
        """The names of files and folders in `folder`, sorted; `FileNotFoundError` if it is not there."""
        ...

    def is_folder(self, path: str) -> bool:
        """Whether `path` is a folder."""
        ...

    def kind(self, path: str) -> FileKind | None:
        """What is at `path`, None if nothing is; a link is what it leads to, where it is followed."""
        ...

    def read(self, path: str) -> bytes:
        """The content of a file."""
        ...

    def read_end(self, path: str, size: int) -> bytes:
        """The last `size` bytes of a file, all of it if it is shorter."""
        ...

    def write(self, path: str, content: bytes, mode: int | None = None) -> None:
        """Replace a file, or a link, by a file with this content and these permissions, whole at once.

        Its folder must be there.
        """
        ...

    def create(self, path: str, mode: int) -> None:
        """Make an empty file with these permissions; one that is there stays as it is."""
        ...

    def link(self, path: str, target: str) -> None:
        """Replace a file, or a link, by a symbolic link to `target`, at once."""
        ...

    def link_target(self, path: str) -> str:
        """Where a symbolic link leads."""
        ...

    def remove(self, path: str) -> None:
        """Remove a file, a link or a folder with everything in it; what is not there is fine.

        Where something is mounted on it or below nothing is removed, and it is an error.
        """
        ...

    def mount_memory(self, path: str, size: int) -> bool:
        """Mount `size` bytes of memory on a folder; False where this process may not mount."""
        ...

    def bind(self, root: str, path: str, target: str) -> str:
        """Show at `target` what is at the relative `path` below the folder `root`; return where to find it.

        Links on the way are followed as long as they stay below `root`. A folder that is missing is made,
        with the permissions of `root`. A `target` that shows something else is changed. Where this process
        may not mount, the way to the thing itself is returned.
        """
        ...

    def unmount(self, path: str) -> None:
        """Take away what was mounted on `path` last; an error if nothing is, or it is in use."""
        ...

    def mounts(self, folder: str) -> Sequence[str]:
        """Where something is mounted, on `folder` or below, what is deepest first."""
        ...

    def changes(self, folder: str) -> AsyncIterator[str]:
        """The name of each file of `folder` that was written, moved in or removed, as it happens."""
        ...


class FetchError(Exception):
    """The manifest URL could not be read."""


class PlainAnswerError(FetchError):
    """A request over HTTPS was answered in plain HTTP."""


class HttpGet(Protocol):
    """Sends the requests of httpGet hooks."""

    async def get(self, url: str, headers: Mapping[str, str]) -> int:
        """The status of the answer, certificates unchecked; raises `FetchError` when there is none."""
        ...


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """What a server answered: its status, where it sends the caller, if anywhere, and its first 10 KiB."""

    status: int
    location: str = ""
    body: str = ""


class PodNetwork(Protocol):
    """Reaches servers in pods, for probes.

    `seconds` is how long each may take. All raise `FetchError`, with a text for the user, if no answer comes.
    """

    async def http_get(self, url: str, headers: Mapping[str, str], *, seconds: float) -> HttpAnswer:
        """Send one request, certificates unchecked; a redirect is an answer like any other."""
        ...

    async def tcp_connect(self, host: str, port: int, *, seconds: float) -> None:
        """Open a connection and close it."""
        ...

    async def grpc_check(self, host: str, port: int, service: str, *, seconds: float) -> str:
        """Ask the server's health service; its answer by name, such as SERVING."""
        ...


class ManifestUrl(Protocol):
    """Reads the manifest URL."""

    async def fetch(self, url: str) -> tuple[int, bytes]:
        """The HTTP status and the body; raises `FetchError` when there is no answer."""
        ...


class Claim(msgspec.Struct, frozen=True):
    """A ResourceClaim by its name."""

    namespace: str
    name: str


class ResourcePlugins(Protocol):
    """The drivers of devices on this node; a failed call raises `grpc.RpcError`."""

    async def prepare(self, claims: Sequence[Claim]) -> Mapping[Claim, Sequence[str]]:
        """Make the claims' devices ready; their CDI names by claim. Again is fine."""
        ...

    async def unprepare(self, claims: Sequence[Claim]) -> None:
        """Give the claims' devices back. Again is fine."""
        ...


@dataclass(frozen=True, slots=True)
class Ports:
    """The world of one kubelet.

    `api` is None on a node without an API server, `tokens` where service accounts have none, `stats` where
    the machine is not measured, `shutdown` where its shutdown is not announced, `resources` where no device
    has a driver, `cgroups` where pods have no cgroups of their own.
    """

    clock: Clock
    random: Random
    runtime: RuntimeService
    images: ImageService
    events: EventSink
    disk: Disk
    url: ManifestUrl
    http: HttpGet
    network: PodNetwork
    api: ApiServer | None = None
    tokens: ServiceAccountTokens | None = None
    stats: NodeStats | None = None
    shutdown: ShutdownSignal | None = None
    resources: ResourcePlugins | None = None
    cgroups: Cgroups | None = None
