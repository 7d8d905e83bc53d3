"""What the runtime knows of a pod, as the kubelet remembers it between relists."""

from collections.abc import Sequence
from enum import StrEnum, auto
from ipaddress import ip_address

import msgspec

NANOSECONDS = 1_000_000_000
"""Of a second; the runtime reports times in them."""


class ContainerState(StrEnum):
    """The state of a container, which the kubelet's texts and metrics name in lower case."""

    CREATED = auto()
    RUNNING = auto()
    EXITED = auto()
    UNKNOWN = auto()


class ActuatedResources(msgspec.Struct, frozen=True):
    """What a container may use, in the kernel's units; 0 is no limit.

    `cpu_quota` is microseconds of each 100 ms, `memory_limit` bytes.
    """

    cpu_shares: int
    cpu_quota: int
    memory_limit: int


class ContainerRecord(msgspec.Struct, frozen=True):
    """One instance of a container: ContainerStatus, with what the kubelet wrote into its annotations.

    Times are nanoseconds since the epoch, 0 where the runtime gave none. `hash` is the definition's, in hex.
    `actuated` is None where the runtime does not report it.
    """

    id: str
    name: str
    state: ContainerState
    attempt: int
    restart_count: int
    hash: str
    created_at: int
    started_at: int
    finished_at: int
    exit_code: int
    reason: str
    message: str
    image: str
    image_ref: str
    image_id: str
    actuated: ActuatedResources | None
    stop_signal: str

    @property
    def is_running(self) -> bool:
        """Whether its process runs."""
        return self.state is ContainerState.RUNNING

    @property
    def has_exited(self) -> bool:
        """Whether its process ended."""
        return self.state is ContainerState.EXITED


class SandboxRecord(msgspec.Struct, frozen=True):
    """One sandbox: PodSandboxStatus. `ips` is None where the runtime reports no network at all."""

    id: str
    attempt: int
    created_at: int
    ready: bool
    host_network: bool
    ips: tuple[str, ...] | None


class PodRecords(msgspec.Struct, frozen=True):
    """Everything the runtime remembers of one pod; sandboxes and containers newest first (PLEG-12)."""

    uid: str
    name: str = ""
    namespace: str = ""
    ips: tuple[str, ...] = ()
    sandboxes: tuple[SandboxRecord, ...] = ()
    containers: tuple[ContainerRecord, ...] = ()

    def newest(self, container: str) -> ContainerRecord | None:
        """The newest instance of the container of that name."""
        return next((record for record in self.containers if record.name == container), None)

    @property
    def running(self) -> tuple[ContainerRecord, ...]:
        """The containers whose process runs."""
        return tuple(record for record in self.containers if record.is_running)

    @property
    def is_running(self) -> bool:
        """Whether a container runs or a sandbox is ready."""
        return any(record.is_running for record in self.containers) or any(s.ready for s in self.sandboxes)


class ListedRecord(msgspec.Struct, frozen=True):
    """A container or sandbox as a list shows it; a READY sandbox is RUNNING, another EXITED (PLEG-04)."""

    id: str
    name: str
    state: ContainerState
    created_at: int


class ListedPod(msgspec.Struct, frozen=True):
    """A pod as the unfiltered lists show it."""

    uid: str
    name: str
    namespace: str
    sandboxes: tuple[ListedRecord, ...]
    containers: tuple[ListedRecord, ...]


def ips_of(sandbox: SandboxRecord) -> tuple[str, ...]:
    """The sandbox's IPs; none at all where one of them is no address (SANDBOX-21)."""
    ips = sandbox.ips or ()
    return ips if all(_is_address(ip) for ip in ips) else ()


def ips_of_newest(sandboxes: Sequence[SandboxRecord]) -> tuple[str, ...]:
    """The IPs of the newest sandbox if it is ready, else none; newest first."""
    return ips_of(sandboxes[0]) if sandboxes and sandboxes[0].ready else ()


def _is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True
