"""What the kubelet remembers of one pod UID while it has a worker."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

import msgspec
from lightkube.models.core_v1 import Pod, PodStatus

from kubelet_reference import pods
from kubelet_reference.updates import Update, Waits
from kubelet_reference.worker_states import State

_ENDING = frozenset({State.TERMINATING, State.TERMINATED, State.FINISHED})


class KnownPod(msgspec.Struct, frozen=True):
    """A pod that has a worker, as housekeeping sees it; `is_orphan` says that no source wants it."""

    state: State
    is_orphan: bool
    has_spec: bool
    is_static: bool


@dataclass(slots=True)
class Worker:
    """One pod's worker; `state` says where it stands, the rest is what its table's actions need.

    `grace` is in seconds, 0 before anybody asked; `last_round` is the clock's second at which the last round
    ended; `terminating_begun` says that a terminating round has begun, not only been asked for.
    """

    uid: str
    full_name: str
    state: State = State.NONE
    pending: Update | None = None
    active: Update | None = None
    is_working: bool = False
    grace: int = 0
    is_deleted: bool = False
    is_evicted: bool = False
    restart_requested: bool = False
    terminating_begun: bool = False
    last_round: float = float("-inf")
    error: Exception | None = None
    waits: Waits | None = None
    killers: list[asyncio.Event] = field(default_factory=list["asyncio.Event"])
    status_changes: list[Callable[[PodStatus], PodStatus]] = field(
        default_factory=list["Callable[[PodStatus], PodStatus]"]
    )

    @property
    def is_ending(self) -> bool:
        """Whether its termination was asked for, or is over."""
        return self.state in _ENDING

    @property
    def has_ended(self) -> bool:
        """Whether nothing of the pod runs any more."""
        return self.state in {State.TERMINATED, State.FINISHED}

    @property
    def known_spec(self) -> Pod | None:
        """The newest spec that the worker was told of."""
        for update in (self.pending, self.active):
            if update is not None and update.pod is not None:
                return update.pod
        return None

    def known(self, *, is_orphan: bool) -> KnownPod:
        """What housekeeping wants to know."""
        spec = self.known_spec
        return KnownPod(self.state, is_orphan, spec is not None, spec is not None and pods.is_static(spec))
