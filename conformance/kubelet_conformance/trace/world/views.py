"""Views: what a trace shows of pods, sandboxes, containers and images: their lifecycle, attempts and parents.

A view holds the past: everything learned from the records before the one being looked at.
An entity that was not `born` in the trace has an unknown past; no obligation follows from it.
"""

from __future__ import annotations

import math
from collections import OrderedDict, deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Protocol, TypeVar

from kubelet_conformance.trace.format.bodies import (
    ContainerConfig,
    ContainerRecord,
    PodSandboxConfig,
    SandboxRecord,
)
from kubelet_conformance.trace.format.labels import STATIC_SOURCES
from kubelet_conformance.trace.format.manifests import (
    ContainerSpec,
    Kind,
    Manifest,
    PodSpec,
    PodStatus,
    Trait,
)
from kubelet_conformance.trace.format.records import Call, RpcError

N = TypeVar("N")
K = TypeVar("K")
V = TypeVar("V")

_REMEMBERED = 10_000
_CALLS_KEPT = 8
_NOT_NAMED: tuple[Kind, ContainerSpec | None] = ("unknown", None)
"""A container that the manifest does not name."""


class Latest(OrderedDict[K, V]):
    """A mapping of bounded size: the oldest entries are dropped first."""

    def __setitem__(self, key: K, value: V) -> None:
        super().__setitem__(key, value)
        self.move_to_end(key)
        if len(self) > _REMEMBERED:
            self.popitem(last=False)


class _Note(Protocol):
    def __call__(self, kind: type[N], /) -> N: ...


class _Notes(dict[type, Any]):
    """One value of each kind, made on first use."""

    def __missing__(self, kind: type[N]) -> N:
        made = self[kind] = kind()
        return made


def _note() -> _Note:
    return _Notes().__getitem__


@dataclass(slots=True, eq=False, kw_only=True)
class Entity:
    """An entity that judges follow; it carries the judges' own notes about it."""

    born: bool
    owed: list[Any] = field(default_factory=list[Any])
    """The open obligations of the judges."""
    awaited: frozenset[str] = field(default=frozenset())
    """The keys of the records that may end these."""
    note: _Note = field(default_factory=_note)
    """The judge's own memory about this entity: one value of each kind, made on first use."""


@dataclass(slots=True, eq=False)
class Stop:
    """One StopContainer or StopPodSandbox: when it began, when it ended and how."""

    call: Call
    timeout: int | None = None
    """Seconds (StopContainer only)."""
    end_t: float | None = None
    end_seq: int = 0
    failed: bool = False
    not_found: bool = False
    """The runtime does not know what was to be stopped."""

    @property
    def succeeded(self) -> bool:
        """It was answered without an error."""
        return self.end_t is not None and not self.failed

    @property
    def is_done(self) -> bool:
        """It succeeded, or there was nothing to stop, which to a kubelet is the same."""
        return self.succeeded or self.not_found


@dataclass(slots=True, eq=False)
class Execution:
    """One ExecSync into a container: a hook where it has no timeout, else an exec probe."""

    call: Call
    cmd: list[str]
    end_t: float | None = None
    exit_code: int | None = None
    """None while it runs, and where the call failed."""
    failed: bool = False
    """It was answered by an error or by an exit code that is not 0."""


@dataclass(slots=True, eq=False)
class Exit:
    """The end of a container's process, as far as the trace shows."""

    t: float
    seq: int
    code: int | None = field(kw_only=True)
    """None while no record has reported it."""
    reason: str = field(default="", kw_only=True)
    commanded: bool = field(default=False, kw_only=True)
    """The exit follows a stop of the container or its sandbox."""


def _latest_calls() -> deque[Any]:
    return deque(maxlen=_CALLS_KEPT)


@dataclass(slots=True, eq=False)
class Container(Entity):
    """One container record at the runtime: one attempt of one name."""

    id: str
    name: str = ""
    attempt: int = 0
    pod: Pod | None = None
    sandbox: Sandbox | None = None
    config: ContainerConfig | None = None
    create: Call | None = None
    created_t: float | None = None
    start: Call | None = None
    started_t: float | None = None
    started_seq: int = 0
    start_failed: bool = False
    state: Literal["created", "running", "exited", "unknown", "removed", "unseen"] = "unseen"
    exit: Exit | None = None
    stops: deque[Stop] = field(default_factory=_latest_calls)
    removed_t: float | None = None
    vanished: bool = False
    """The runtime lost it: it left the lists without a RemoveContainer."""
    record: ContainerRecord | None = None
    """The last status the runtime gave (ContainerStatus)."""
    seen_running: bool = False
    """It was reported to the kubelet as running."""
    end_read_t: float | None = None
    """When the kubelet was first given a status of it as exited."""
    end_read_seq: int = 0
    """By which record."""
    listed_exited: bool = False
    """A list has reported it to the kubelet as exited."""
    hooks_open: dict[str, Call] = field(default_factory=dict[str, Call])
    """ExecSync calls into it that have no reply yet, by call id."""
    hooks: deque[Execution] = field(default_factory=_latest_calls)
    """The latest ExecSync calls without a timeout: lifecycle hooks, oldest first."""
    probes: dict[tuple[str, ...], Execution] = field(default_factory=dict[tuple[str, ...], Execution])
    """The latest ExecSync with a timeout, which is an exec probe, by command."""
    probes_failed: dict[tuple[str, ...], Execution] = field(default_factory=dict[tuple[str, ...], Execution])
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


@dataclass(slots=True, eq=False)
class Sandbox(Entity):
    """One pod sandbox at the runtime."""

    id: str
    attempt: int = 0
    pod: Pod | None = None
    config: PodSandboxConfig | None = None
    run: Call | None = None
    ready_t: float | None = None
    state: Literal["ready", "notready", "removed", "unseen"] = "unseen"
    status_t: float | None = None
    """When its status was last read with success."""
    status_seq: int = 0
    """The request for that status."""
    died_t: float | None = None
    """When it became not ready without a StopPodSandbox."""
    ip: str = ""
    record: SandboxRecord | None = None
    """As it was read, or as an event reports it."""
    stops: deque[Stop] = field(default_factory=_latest_calls)
    removed_t: float | None = None
    vanished: bool = False
    """The runtime lost it: it left the lists without a RemovePodSandbox."""
    containers: dict[str, Container] = field(default_factory=dict[str, Container])
    """Its containers by id, those still recorded at the runtime."""

    @property
    def stopped(self) -> bool:
        """A StopPodSandbox of it has succeeded."""
        return any(stop.succeeded for stop in self.stops)


@dataclass(slots=True, eq=False)
class Termination:
    """A pod's termination as requested from the kubelet: by deletion, removal or force."""

    t: float
    seq: int
    cause: str
    """`deleted` (deletionTimestamp), `removed` (gone from its source), `forced` (object gone at once)."""
    grace: int | None
    """Smallest grace requested so far, in seconds; None where the request named none."""
    seen: bool = True
    """Its begin is in the trace: otherwise the pod may have been killed for any time."""


class ImageAnswer(NamedTuple):
    """One answer to ImageStatus."""

    seq: int
    present: bool | None
    """None for an error."""


@dataclass(slots=True, eq=False)
class ImageKnown:
    """One image name as the kubelet asks for it, and what the runtime last said of it."""

    answers: list[ImageAnswer] = field(default_factory=list[ImageAnswer])
    """The latest answers to ImageStatus, oldest first."""
    absent_seq: int = 0
    """The last answer that it is not there."""
    failed_seq: int = 0
    """The last of its answers that was an error."""
    id: str = ""
    pulled_ref: str = ""
    """What the last good PullImage returned."""
    pulled_seq: int = 0

    @property
    def last(self) -> ImageAnswer | None:
        """The last answer."""
        return self.answers[-1] if self.answers else None


@dataclass(slots=True, eq=False)
class Pulls:
    """The pulls of one image by one pod, in one kubelet instance."""

    life: int
    due: ImageAnswer | None = None
    """What ImageStatus had said last when a pull was announced: it may have to wait for others then."""
    failed_t: float = 0.0
    failed_seq: int = 0
    pulled_seq: int = 0
    """The last one that succeeded."""
    errors: list[RpcError] = field(default_factory=list[RpcError])
    """The last two failures, oldest first."""

    def due_since(self, seq: int) -> ImageAnswer | None:
        """The answer that the image is absent, later than `seq`, which a pull that had to wait follows."""
        return self.due if self.due is not None and self.due.present is False and self.due.seq > seq else None


@dataclass(slots=True, eq=False)
class Pod(Entity):
    """One pod, joined over its manifest, its sandboxes and containers, and its status."""

    uid: str
    namespace: str
    name: str
    source: str = ""
    static: bool = False
    """It came from a manifest folder or URL."""
    mirror_uid: str = ""
    """The UID that statuses and deletions of a static pod carry."""
    manifest: Manifest | None = None
    spec: PodSpec | None = None
    """The newest desired spec, if the trace has it."""
    traits: frozenset[Trait] | None = None
    """What the manifest has, by `PodSpec.traits`; None while there is no manifest."""
    entries: dict[str, tuple[Kind, ContainerSpec]] = field(default_factory=dict[str, Any])
    """The manifest's containers of any kind, by name."""
    set_t: float | None = None
    set_seq: int = 0
    wanted: bool = False
    termination: Termination | None = None
    back_t: float = -math.inf
    """When it last came back, as a static pod does under the same UID."""
    former_end: Termination | None = None
    """The termination that it came back from."""
    former_phase: str = ""
    """The terminal phase that it had come to before it came back."""
    sandboxes: list[Sandbox] = field(default_factory=list[Sandbox])
    """Oldest first; a removed one stays only while it is the newest."""
    containers: dict[str, list[Container]] = field(default_factory=dict[str, list[Container]])
    """By name, oldest first; a removed one stays only while it is the newest of its name."""
    status: PodStatus | None = None
    status_t: float | None = None
    status_seq: int = 0
    finished: str = ""
    """The terminal phase written for it, if any."""
    finished_before: bool = False
    """It had been finished and gone, and then appeared again."""
    deleted_t: float | None = None
    spec_changed_t: float | None = None
    """When it was last sent with another spec than before."""
    spec_changed_seq: int = 0
    calls_open: dict[str, Call] = field(default_factory=dict[str, Call])
    """Calls that change it, PullImage and ExecSync included, which have no reply yet, by call id."""
    changed_t: float | None = None
    """When its newest manifest was sent."""
    changed_seq: int = 0
    create: Call | None = None
    """The latest CreateContainer that began for it."""
    create_failed: dict[str, Call] = field(default_factory=dict[str, Call])
    """By container name, the latest CreateContainer that failed."""
    pulls: dict[str, Pulls] = field(default_factory=dict[str, Pulls])
    """By image, how the pulls of it went."""
    work_unknown: bool = False
    """What its worker did when the trace began is not known, and it was not seen to do anything yet."""
    at_work_t: float = -math.inf
    """When the kubelet began what it did last without a break: a sync, a kill, or both."""
    worked_t: float = -math.inf
    """When it was last seen to do something of that."""

    def take(self, source: str, manifest: Manifest) -> None:
        """It was sent with this manifest."""
        self.source, self.static = source, source in STATIC_SOURCES
        self.manifest, self.spec = manifest, manifest.spec
        self.traits, self.entries = manifest.spec.traits, manifest.spec.entries

    def adopt(self, stray: Pod) -> None:
        """Take over the records of this pod that were found before its UID was known: its past is not."""
        self.born = False
        self.sandboxes[:0] = stray.sandboxes
        for name, records in stray.containers.items():
            self.containers.setdefault(name, [])[:0] = records
            for container in records:
                container.pod = self
        for sandbox in stray.sandboxes:
            sandbox.pod = self

    @property
    def sandbox(self) -> Sandbox | None:
        """The newest sandbox."""
        return self.sandboxes[-1] if self.sandboxes else None

    @property
    def sent_status(self) -> PodStatus | None:
        """The status that the object had when it was sent to the kubelet, where that matters."""
        return self.manifest.status if self.manifest is not None else None

    @property
    def restart_policy(self) -> str:
        """The restart policy; Always where it is not known."""
        return self.spec.restart_policy if self.spec else "Always"

    @property
    def claims(self) -> frozenset[tuple[str, str]]:
        """The claims of dynamic resources that the manifest names: namespace and name."""
        every = (self.spec.resource_claims if self.spec else None) or ()
        return frozenset((self.namespace, name) for one in every if (name := one.resource_claim_name))

    def was_gone_at(self, t: float | None) -> bool:
        """Whether it had gone by then, and came back later."""
        return self.former_end is not None and t is not None and self.former_end.t <= t <= self.back_t

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


@dataclass(slots=True, eq=False)
class Node(Entity):
    """The node as a whole: the kubelet's instances and what belongs to no pod."""

    kubelet_up: bool = True
    lives: int = 0
    """How many starts of the kubelet the trace has."""
    started_seq: int = 0
    """Where the last one is."""
    started_t: float | None = None
    down_t: float | None = None
    listed: bool = False
    """A full listing of containers was seen, so what was there before is known."""
    away_t: float = -math.inf
    """When the runtime was last found unreachable."""
    cut_off_until: float = -math.inf
    """Until when obligations are deferred because the runtime was unreachable; infinity while it is."""
    listing_failed: bool = False
    """The last listing of pods or containers was answered by an error: the kubelet sees nothing new."""
    relisted_t: float | None = None
    """When the current kubelet's first full listing of containers was answered."""
    runtime_ready: bool = True
    """Its last Status says so of it and of the pod network: else pods have to wait."""
