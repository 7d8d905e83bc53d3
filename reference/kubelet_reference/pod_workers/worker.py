"""One pod worker: the updates that it receives, the errors that end a sync of it, and its state.

An `Update` is sent to the worker of its pod. `SyncFailed` and its kinds end one sync, which is tried again. A
`Worker` is what the kubelet remembers of one pod UID until it forgets it.
"""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from enum import StrEnum, auto
from typing import Any, TypeVar

import msgspec
from lightkube.models.core_v1 import Pod, PodStatus

from kubelet_reference.api import pods
from kubelet_reference.api.records import ListedPod
from kubelet_reference.pod_workers.worker_table import State

T = TypeVar("T")


class SyncFailed(Exception):  # noqa: N818 - the sync failed, the kubelet is fine
    """A sync could not do all that it should; it is tried again, after `wait` seconds if it says so."""

    def __init__(self, message: str, wait: float | None = None) -> None:
        super().__init__(message)
        self.wait = wait


class NetworkNotReady(SyncFailed):
    """The pod needs a network that is not there yet: tried again after a second, not ten (SYNC-09)."""


class WaitCancelled(SyncFailed):
    """The pod's termination cancelled what the sync waited for, such as its volumes."""


class UpdateKind(StrEnum):
    """Why a worker gets an update of its pod."""

    CREATE = auto()
    UPDATE = auto()
    SYNC = auto()
    KILL = auto()


@dataclass(frozen=True, slots=True)
class KillOptions:
    """How a pod is to be killed, and the event that says that it is done.

    `grace_override` is in seconds. `status` changes the status written first, such as to Failed and Evicted.
    `done` is set when nothing of the pod runs any more.
    """

    grace_override: int | None
    evict: bool
    status: Callable[[PodStatus], PodStatus] | None = None
    done: asyncio.Event | None = None


class Update(msgspec.Struct, frozen=True):
    """An update of a pod: either its spec, or for a kill what the runtime lists of it (`running`)."""

    kind: UpdateKind
    pod: Pod | None = None
    mirror: Pod | None = None
    running: ListedPod | None = None
    kill: KillOptions | None = None

    @property
    def uid(self) -> str:
        """The UID of the pod that it is about."""
        if self.pod is not None:
            return pods.uid(self.pod)
        return self.running.uid if self.running is not None else ""

    @property
    def full_name(self) -> str:
        """The pod's name and namespace, joined; "" for what the runtime alone knows, which never waits."""
        return pods.full_name(self.pod) if self.pod is not None else ""


class Waits:
    """The waits of one sync, such as for volumes, which a termination cancels (WORK-06).

    Calls to the runtime do not go through it: what has begun there is awaited (TERM-26).
    """

    def __init__(self) -> None:
        self._is_cancelled = False
        self._waiting: asyncio.Task[Any] | None = None

    def cancel(self) -> None:
        """End the wait in progress, if there is one, and let no other one begin."""
        self._is_cancelled = True
        if self._waiting is not None:
            self._waiting.cancel()

    async def wait(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of `work`; raises `WaitCancelled` when cut."""
        self._waiting = task = asyncio.ensure_future(work)
        if self._is_cancelled:
            task.cancel()
        try:
            return await task
        except asyncio.CancelledError:
            me = asyncio.current_task()
            if me is not None and me.cancelling():
                raise
            raise WaitCancelled("the pod's termination was asked for") from None


_ENDING = frozenset({State.TERMINATING, State.TERMINATED, State.FINISHED})


@dataclass(slots=True)
class Worker:
    """What the kubelet remembers of one pod UID: the state of its worker, and its updates and waits.

    `grace` is in seconds, 0 before any request; `last_sync_ended` is the clock's second at which the last
    sync ended.
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
    last_sync_ended: float = float("-inf")
    error: Exception | None = None
    waits: Waits = field(default_factory=Waits)
    killers: list[asyncio.Event] = field(default_factory=list[asyncio.Event])
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
        """The newest spec that the worker has received."""
        specs = (update.pod for update in (self.pending, self.active) if update is not None)
        return next(filter(None, specs), None)
