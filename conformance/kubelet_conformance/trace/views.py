"""What a trace tells about pods, sandboxes, containers and images: their life, attempts and parents.

A view holds the past: everything learned from the records before the one being looked at.
An entity that was not `born` in the trace has an unknown past; no obligation follows from it.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal

from kubelet_conformance.trace.bodies import ContainerConfig, ContainerRecord, PodSandboxConfig, SandboxRecord
from kubelet_conformance.trace.container_specs import ContainerSpec
from kubelet_conformance.trace.entity import Entity, Served
from kubelet_conformance.trace.manifests import Kind, Manifest, PodSpec, PodStatus, Trait
from kubelet_conformance.trace.records import Call

if TYPE_CHECKING:
    from kubelet_conformance.trace.images import Pulls


_STOPS_KEPT = 8
_NOT_NAMED: tuple[Kind, ContainerSpec | None] = ("unknown", None)
"""A container that the manifest does not name."""


class Stop:
    """One StopContainer or StopPodSandbox: when it began, when it ended and how."""

    __slots__ = ("call", "end_seq", "end_t", "failed", "not_found", "timeout")

    def __init__(self, call: Call, timeout: int | None = None) -> None:
        self.call = call
        self.timeout = timeout
        """Seconds (StopContainer only)."""
        self.end_t: float | None = None
        self.end_seq = 0
        self.failed = False
        self.not_found = False
        """The runtime does not know what was to be stopped."""

    @property
    def succeeded(self) -> bool:
        """It was answered without an error."""
        return self.end_t is not None and not self.failed


class Execution:
    """One ExecSync into a container: a hook where it has no timeout, else an exec probe."""

    __slots__ = ("call", "cmd", "end_t", "exit_code", "failed")

    def __init__(self, call: Call, cmd: list[str]) -> None:
        self.call = call
        self.cmd = cmd
        self.end_t: float | None = None
        self.exit_code: int | None = None
        """None while it runs, and where the call failed."""
        self.failed = False
        """It was answered by an error or by an exit code that is not 0."""


class Exit:
    """The end of a container's process, as far as the trace tells."""

    __slots__ = ("code", "commanded", "reason", "seq", "t")

    def __init__(
        self, t: float, seq: int, *, code: int | None, reason: str = "", commanded: bool = False
    ) -> None:
        self.t = t
        self.seq = seq
        self.code = code
        """None while no record has told it."""
        self.reason = reason
        self.commanded = commanded
        """The exit follows a stop of the container or its sandbox."""


class Container(Entity):
    """One container record at the runtime: one attempt of one name."""

    __slots__ = (
        "attempt",
        "config",
        "create",
        "created_t",
        "exit",
        "hooks",
        "hooks_open",
        "id",
        "name",
        "pod",
        "probed",
        "probes_failed",
        "record",
        "removed_t",
        "sandbox",
        "seen_running",
        "start",
        "start_failed",
        "started_seq",
        "started_t",
        "state",
        "stops",
        "vanished",
    )

    def __init__(self, container_id: str, *, born: bool) -> None:
        super().__init__(born=born)
        self.id = container_id
        self.name = ""
        self.attempt = 0
        self.pod: Pod | None = None
        self.sandbox: Sandbox | None = None
        self.config: ContainerConfig | None = None
        self.create: Call | None = None
        self.created_t: float | None = None
        self.start: Call | None = None
        self.started_t: float | None = None
        self.started_seq = 0
        self.start_failed = False
        self.state: Literal["created", "running", "exited", "unknown", "removed", "unseen"] = "unseen"
        self.exit: Exit | None = None
        self.stops: deque[Stop] = deque(maxlen=_STOPS_KEPT)
        self.removed_t: float | None = None
        self.vanished = False
        """The runtime lost it: it left the lists without a RemoveContainer."""
        self.record: ContainerRecord | None = None
        """The last status the runtime gave (ContainerStatus)."""
        self.seen_running = False
        """The kubelet was told that it runs."""
        self.hooks_open: dict[str, Call] = {}
        """ExecSync calls into it that have no reply yet, by call id."""
        self.hooks: deque[Execution] = deque(maxlen=_STOPS_KEPT)
        """The latest ExecSync calls without a timeout: lifecycle hooks, oldest first."""
        self.probed: Execution | None = None
        """The latest ExecSync with a timeout: an exec probe."""
        self.probes_failed: dict[tuple[str, ...], Execution] = {}
        """The latest execution of the liveness and of the startup probe, by command, where it failed."""

    @property
    def kind(self) -> Kind:
        """Which list of the manifest names it."""
        return self.pod.entries.get(self.name, _NOT_NAMED)[0] if self.pod is not None else "unknown"

    @property
    def spec(self) -> ContainerSpec | None:
        """The manifest's entry of that name, newest version."""
        return self.pod.entries.get(self.name, _NOT_NAMED)[1] if self.pod is not None else None

    @property
    def ended(self) -> bool:
        """It ran and does not run any more, or its record is gone."""
        return self.state in {"exited", "removed"}

    @property
    def stopping(self) -> bool:
        """A StopContainer has begun and not been answered."""
        return any(stop.end_t is None for stop in self.stops)


class Sandbox(Entity):
    """One pod sandbox at the runtime."""

    __slots__ = (
        "attempt",
        "config",
        "containers",
        "died_t",
        "id",
        "ip",
        "pod",
        "ready_t",
        "record",
        "removed_t",
        "run",
        "state",
        "status_t",
        "stops",
        "vanished",
    )

    def __init__(self, sandbox_id: str, *, born: bool) -> None:
        super().__init__(born=born)
        self.id = sandbox_id
        self.attempt = 0
        self.pod: Pod | None = None
        self.config: PodSandboxConfig | None = None
        self.run: Call | None = None
        self.ready_t: float | None = None
        self.state: Literal["ready", "notready", "removed", "unseen"] = "unseen"
        self.status_t: float | None = None
        """When its status was last read with success."""
        self.died_t: float | None = None
        """When it became not ready without a StopPodSandbox."""
        self.ip = ""
        self.record: SandboxRecord | None = None  # as it was read, or as an event tells it
        self.stops: deque[Stop] = deque(maxlen=_STOPS_KEPT)
        self.removed_t: float | None = None
        self.vanished = False
        """The runtime lost it: it left the lists without a RemovePodSandbox."""
        self.containers: dict[str, Container] = {}
        """Its containers by id, those still recorded at the runtime."""

    @property
    def stopped(self) -> bool:
        """A StopPodSandbox of it has succeeded."""
        return any(stop.succeeded for stop in self.stops)


class Termination:
    """A pod's way out, as told to the kubelet: requested by deletion, removal or force."""

    __slots__ = ("cause", "grace", "seq", "t")

    def __init__(self, t: float, seq: int, cause: str, grace: int | None) -> None:
        self.t = t
        self.seq = seq
        self.cause: str = cause
        """`deleted` (deletionTimestamp), `removed` (gone from its source), `forced` (object gone at once)."""
        self.grace = grace
        """Smallest grace requested so far, in seconds; None where the request named none."""


class Pod(Served):
    """One pod, joined over its manifest, its sandboxes and containers, and its status."""

    __slots__ = (
        "calls_open",
        "changed_t",
        "containers",
        "create",
        "create_failed",
        "deleted_t",
        "entries",
        "finished",
        "finished_before",
        "manifest",
        "mirror_uid",
        "name",
        "namespace",
        "pulls",
        "sandboxes",
        "set_seq",
        "set_t",
        "source",
        "spec",
        "spec_changed_seq",
        "spec_changed_t",
        "static",
        "status",
        "status_seq",
        "status_t",
        "termination",
        "traits",
        "uid",
        "wanted",
    )

    def __init__(self, uid: str, namespace: str, name: str, *, born: bool) -> None:
        super().__init__(born=born)
        self.uid = uid
        self.namespace = namespace
        self.name = name
        self.source = ""
        self.static = False
        """It came from a manifest folder or URL."""
        self.mirror_uid = ""
        """The UID that statuses and deletions of a static pod carry."""
        self.manifest: Manifest | None = None
        self.spec: PodSpec | None = None
        """The newest wanted spec, if the trace told it."""
        self.traits: frozenset[Trait] | None = None
        """What the manifest has, as `PodSpec.traits` tells; None while there is no manifest."""
        self.entries: dict[str, tuple[Kind, ContainerSpec]] = {}
        """The manifest's containers of any kind, by name."""
        self.set_t: float | None = None
        self.set_seq = 0
        self.wanted = False
        self.termination: Termination | None = None
        self.sandboxes: list[Sandbox] = []
        """Oldest first; a removed one stays only while it is the newest."""
        self.containers: dict[str, list[Container]] = {}
        """By name, oldest first; a removed one stays only while it is the newest of its name."""
        self.status: PodStatus | None = None
        self.status_t: float | None = None
        self.status_seq = 0
        self.finished: str = ""
        """The terminal phase written for it, if any."""
        self.finished_before = False
        """It had been finished and gone, and then appeared again."""
        self.deleted_t: float | None = None
        self.spec_changed_t: float | None = None
        """When it was last sent with another spec than before."""
        self.spec_changed_seq = 0
        self.calls_open: dict[str, Call] = {}
        """Calls that change it, PullImage and ExecSync included, which have no reply yet, by call id."""
        self.changed_t: float | None = None
        """When its newest manifest was sent."""
        self.create: Call | None = None
        """The latest CreateContainer that began for it."""
        self.create_failed: dict[str, Call] = {}
        """By container name, the latest CreateContainer that failed."""
        self.pulls: dict[str, Pulls] = {}
        """By image, how the pulls of it went."""

    def take(self, source: str, manifest: Manifest) -> None:
        """It was sent with this manifest."""
        self.source, self.static = source, source in {"file", "http"}
        self.manifest, self.spec = manifest, manifest.spec
        self.traits, self.entries = manifest.spec.traits, manifest.spec.entries

    @property
    def sandbox(self) -> Sandbox | None:
        """The newest sandbox."""
        return self.sandboxes[-1] if self.sandboxes else None

    @property
    def restart_policy(self) -> str:
        """Always where the trace does not tell."""
        return self.spec.restart_policy if self.spec else "Always"

    @property
    def claims(self) -> frozenset[tuple[str, str]]:
        """The claims of dynamic resources that the manifest names: namespace and name."""
        every = (self.spec.resource_claims if self.spec else None) or ()
        return frozenset((self.namespace, name) for one in every if (name := one.resource_claim_name))

    def kind_of(self, name: str) -> Kind:
        """Which list of the manifest names this container."""
        return self.entries.get(name, _NOT_NAMED)[0]

    def container_spec(self, name: str) -> ContainerSpec | None:
        """The manifest's entry for a container of any kind."""
        return self.entries.get(name, _NOT_NAMED)[1]

    def newest(self, name: str) -> Container | None:
        """The newest record of that name."""
        found = self.containers.get(name)
        return found[-1] if found else None

    def of_kind(self, *kinds: Kind) -> Iterator[Container]:
        """Every known record of containers of these kinds, oldest of each name first."""
        for name, records in self.containers.items():
            if self.entries.get(name, _NOT_NAMED)[0] in kinds:
                yield from records

    def every_container(self) -> Iterator[Container]:
        """Every known record."""
        for records in self.containers.values():
            yield from records


class Node(Entity):
    """The node as a whole: the kubelet's lives and what belongs to no pod."""

    __slots__ = (
        *("away_t", "cut_off_until", "down_t", "kubelet_up", "listed", "listing_failed", "lives"),
        *("relisted_t", "runtime_ready", "started_seq", "started_t"),
    )

    def __init__(self, *, born: bool) -> None:
        super().__init__(born=born)
        self.kubelet_up = True
        self.lives, self.started_seq = 0, 0
        """How many starts of the kubelet the trace holds, and where the last one is."""
        self.started_t: float | None = None
        self.down_t: float | None = None
        self.listed = False
        """A full listing of containers was seen, so what was there before is known."""
        self.away_t = -math.inf
        """When the runtime was last found to be away."""
        self.cut_off_until = -math.inf
        """Until when what is due may wait because the runtime was away; infinity while it is."""
        self.listing_failed = False
        """The last listing of pods or containers was answered by an error: the kubelet sees nothing new."""
        self.relisted_t: float | None = None
        """When the current kubelet's first full listing of containers was answered."""
        self.runtime_ready = True
        """Its last Status says so of it and of the pod network: else pods have to wait."""
