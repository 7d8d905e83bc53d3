"""What a status says of a container and of its pod.

The phase is computed in two steps, as the kubelet does (getPhase in kubelet_pods.go): every container of the
spec counts as something, by its kind and by what its status says, and the counts decide.
"""

from collections.abc import Iterable
from functools import lru_cache
from typing import Literal, NamedTuple, TypeAlias

import msgspec

from kubelet_conformance.contract import ContainerStatus, PodSpec, PodStatus
from kubelet_conformance.contracts.tables.table import Row, Table, taken
from kubelet_conformance.trace.format.manifests import ContainerSpec

Recorded: TypeAlias = Literal["created", "running", "exited", "unknown"]
"""The state of a container's newest record, as the runtime reports it."""
Said: TypeAlias = Literal["nothing", "waiting", "running", "terminated"]
"""The state that the status before had."""
Shown: TypeAlias = Literal["waiting", "running", "terminated", "lost"]
"""What the status says now; `lost` is an invented end, which no record shows."""
Seen: TypeAlias = Literal[
    "running",
    "starting",
    "ended well",
    "ended badly",
    "waiting",
    "again after 0",
    "again",
]
"""What a container's status says.

`starting` is running, but not `started` yet. `again after 0` and `again` are waiting with a lastState that
ended with 0 or otherwise.
"""
Counted: TypeAlias = Literal["init", "sidecar", "app"]
_LOST = "ContainerStatusUnknown"


class StateSeen(NamedTuple):
    """Inputs: the state of the newest record, and the state in the status before."""

    record: Recorded
    before: Said


STATES = Table[StateSeen, tuple[Shown, ...]](
    Row("C4", lambda s: s.record == "created", ("waiting",), "it was created and never started"),
    Row("C5", lambda s: s.record == "running", ("running",), "it runs"),
    Row(
        "C6",
        lambda s: s.record == "exited",
        ("terminated", "waiting"),
        "it has ended, and waits once its next start was refused",
    ),
    Row("C7", lambda s: s.before == "running", ("lost", "waiting"), "it is not known how it has ended"),
    Row("C8", lambda _: True, ("waiting", "lost"), "its state is not known"),
)
"""What a status says of a container, by its newest record and by what was said."""


def said(status: ContainerStatus | None) -> Said:
    """What a status said of a container; None is a status that did not name it."""
    if status is None:
        return "nothing"
    state = status.state
    if state.running is not None:
        return "running"
    return "terminated" if state.terminated is not None else "waiting"


def shown(status: ContainerStatus) -> Shown:
    """What a status says of a container."""
    ended = status.state.terminated
    if ended is not None:
        return "lost" if ended.reason == _LOST else "terminated"
    return "running" if status.state.running is not None else "waiting"


def may_be_shown(records: Iterable[Recorded], before: Said) -> set[Shown]:
    """What a status may say that was built from one of these states of the newest record."""
    return {one for record in records for one in STATES.decide(StateSeen(record, before))}


class CountRow(NamedTuple):
    """A container of `kind` whose status says one of `seen` adds one to each of `counts`."""

    kind: Counted
    seen: tuple[Seen, ...]
    counts: tuple[str, ...]
    why: str

    @property
    def name(self) -> str:
        """The kind, and what its status says."""
        return f"{self.kind}: {', '.join(self.seen)}"


COUNTS: tuple[CountRow, ...] = (
    CountRow("init", ("running", "starting", "waiting"), ("pending_init",), "has to end"),
    CountRow("init", ("ended badly", "again"), ("failed_init",), "ended, and not with 0"),
    CountRow("init", ("ended well", "again after 0"), (), "done"),
    CountRow("sidecar", ("running",), ("running",), "runs"),
    CountRow("sidecar", ("starting",), ("pending_sidecar", "running"), "runs, the next has to wait for it"),
    CountRow("sidecar", ("waiting",), ("pending_sidecar", "waiting"), "was never started"),
    CountRow("sidecar", ("ended well", "ended badly"), (), "an ended sidecar says nothing of the pod"),
    CountRow("sidecar", ("again after 0", "again"), (), "nor does one that comes again"),
    CountRow("app", ("running", "starting"), ("running",), "runs"),
    CountRow("app", ("ended well",), ("stopped", "succeeded"), "ended with 0"),
    CountRow("app", ("ended badly",), ("stopped",), "ended otherwise"),
    CountRow("app", ("again after 0", "again"), ("stopped",), "ended, and what follows is not known"),
    CountRow("app", ("waiting",), ("waiting",), "was never started"),
)
"""What a container counts as."""
_COUNTS = {(row.kind, seen): row for row in COUNTS for seen in row.seen}


class Counts(msgspec.Struct, frozen=True):
    """What the containers of a pod count as, and what of the pod decides with them."""

    policy: str = "Always"
    final: bool = False
    """The pod is being terminated for good and is not static (since 1.27)."""
    apps: tuple[Seen, ...] = ()
    """What the status says of each app container of the spec."""
    app_was_up: bool = False
    """The state of some app container is running or terminated."""
    pending_init: int = 0
    failed_init: int = 0
    pending_sidecar: int = 0
    waiting: int = 0
    running: int = 0
    stopped: int = 0
    succeeded: int = 0

    @property
    def all_stopped(self) -> bool:
        """Nothing runs, and something has stopped."""
        return self.running == 0 and self.stopped > 0

    @property
    def all_succeeded(self) -> bool:
        """All stopped, each with 0."""
        return self.all_stopped and self.stopped == self.succeeded


PHASES = Table[Counts, str](
    Row(
        "P1",
        lambda c: c.failed_init > 0 and c.policy == "Never",
        "Failed",
        "an init container failed and is not tried again",
    ),
    Row("P2", lambda c: c.pending_init > 0, "Pending", "an init container has not ended"),
    Row(
        "P3",
        lambda c: c.pending_sidecar > 0 and not c.app_was_up,
        "Pending",
        "a sidecar is not up, and no app container has ever been",
    ),
    Row("P4", lambda c: c.waiting > 0, "Pending", "a container was never started"),
    Row("P5", lambda c: c.running > 0, "Running", "a container runs"),
    Row("P6", lambda c: c.final and c.all_succeeded, "Succeeded", "terminated for good, all ended with 0"),
    Row("P7", lambda c: c.final, "Failed", "terminated for good, not all with 0"),
    Row("P8", lambda c: c.policy == "Always", "Running", "all ended and will come again"),
    Row("P9", lambda c: c.all_succeeded, "Succeeded", "all ended with 0 and stay so"),
    Row("P10", lambda c: c.policy == "Never", "Failed", "all ended, not all with 0"),
    Row("P11", lambda _: True, "Running", "what failed will come again"),
)
"""Which phase the counts amount to."""


def seen(status: ContainerStatus | None) -> Seen:
    """What a container's status says; without one, or without a state, it waits."""
    if status is None:
        return "waiting"
    state, last = status.state, status.last_state.terminated
    if state.running is not None:
        return "running" if status.started else "starting"
    if state.terminated is not None:
        return "ended badly" if state.terminated.exit_code else "ended well"
    if last is None:
        return "waiting"
    return "again" if last.exit_code else "again after 0"


def _kind(init: ContainerSpec) -> Counted:
    return "sidecar" if init.is_sidecar else "init"


def count(spec: PodSpec, status: PodStatus, *, final: bool = False) -> Counts:
    """Count the containers of a spec by what a status says of them. Ephemeral ones do not count."""
    apps = {s.name: s for s in status.container_statuses or ()}
    apps_seen: list[Seen] = [seen(apps.get(one.name)) for one in spec.containers]
    inits_seen: list[tuple[Counted, Seen]] = []
    if spec.init_containers:
        inits = {s.name: s for s in status.init_container_statuses or ()}
        inits_seen = [(_kind(one), seen(inits.get(one.name))) for one in spec.init_containers]
    up = [s for s in apps.values() if s.state.running or s.state.terminated]
    every = [*[("app", one) for one in apps_seen], *inits_seen]
    taken.update(_COUNTS[one] for one in every)
    start = Counts(policy=_policy(spec), final=final, apps=tuple(apps_seen), app_was_up=bool(up))
    return _counted(start, tuple(inits_seen))


def _policy(spec: PodSpec) -> str:
    """The policy of the app containers: one of their own, if all have the same and nothing but that."""
    own = {None if one.restart_policy_rules else one.restart_policy for one in spec.containers}
    return (own.pop() if len(own) == 1 else None) or spec.restart_policy


@lru_cache(maxsize=1024)
def _counted(start: Counts, inits: tuple[tuple[Counted, Seen], ...]) -> Counts:
    """The counts with the numbers filled in; cached, as pods of a few forms come by the thousand."""
    found: dict[str, int] = {}
    for one in (*[("app", one) for one in start.apps], *inits):
        for name in _COUNTS[one].counts:
            found[name] = found.get(name, 0) + 1
    return msgspec.structs.replace(start, **found)
