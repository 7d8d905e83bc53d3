"""Keeps the status of every pod and writes it to the API server.

Setting a status is immediate and never waits: it is checked against the one before, dated, and kept. Writing
goes on by itself (`run`): at once when something changed, and every 10 s over all pods, which repeats what
failed and puts right what others wrote into the kubelet's fields (STATUS-01..03, STATUS-20).
"""

import asyncio
import logging
from collections.abc import Callable, Container
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from lightkube.models.core_v1 import ContainerStatus, Pod, PodCondition, PodStatus
from msgspec.structs import replace

from kubelet_reference.api import pods
from kubelet_reference.config.mirror_client import is_mirror_of
from kubelet_reference.config.pod_manager import PodManager
from kubelet_reference.status import conditions, status_rules
from kubelet_reference.status.container_statuses import whole_second
from kubelet_reference.status.status_rules import status_patch
from kubelet_reference.util.ports import ApiError, ApiServer, Clock
from kubelet_reference.util.versions import Behaviour

BATCH_SECONDS: Final = 10
_log = logging.getLogger("kubelet_reference.status")


@dataclass(frozen=True, slots=True)
class PodSafety:
    """What must be known before the end of a pod is published; each takes the kubelet's UID of a pod.

    `could_run` says whether containers of the pod may still run (TERM-15). `reclaimed` says whether its
    volumes are gone: up to 1.26 this, and not the terminal phase, lets the object go (TERM-18).
    """

    could_run: Callable[[str], bool]
    reclaimed: Callable[[str], bool]


@dataclass(slots=True)
class Kept:
    """The status of one pod as set; `finished` says that it is the last one."""

    pod: Pod
    status: PodStatus
    finished: bool


@dataclass(eq=False)
class StatusManager:
    """The statuses of all pods. `api` None is a kubelet on its own, which writes nowhere (STATUS-15)."""

    api: ApiServer | None
    clock: Clock
    known: PodManager
    safety: PodSafety
    behaviour: Behaviour

    def __post_init__(self) -> None:
        self._kept: dict[str, Kept] = {}
        self._unsent: dict[str, None] = {}
        self._changed = asyncio.Event()
        self._batch_is_due = False

    # Setting

    def get(self, uid: str) -> PodStatus | None:
        """The status that was set last for the pod."""
        kept = self._kept.get(uid)
        return kept.status if kept else None

    def set_pod_status(self, pod: Pod, status: PodStatus) -> None:
        """Take a status that a sync generated.

        For a pod that is being deleted it is written even without a difference, so that the deletion can
        complete (STATUS-19).
        """
        self._set(pod, status, force=pods.deletion_asked(pod))

    def terminate_pod(self, pod: Pod) -> None:
        """Set the last status: all that ran has ended, and the phase is terminal (TERM-16, TERM-17).

        A static pod keeps its phase, and so does every pod up to 1.26 (STATIC-21).
        """
        status = status_rules.with_final_states(pod, self._before(pod))
        must_end = self.behaviour.terminal_phase_before_deletion and not pods.is_static(pod)
        if must_end and not pods.is_terminal_phase(status.phase):
            status = replace(status, phase=pods.FAILED)
        self._set(pod, status, force=True, finished=True)

    def is_written(self, uid: str) -> bool:
        """Whether the status that was set last is written to the API server, if there is one."""
        return self.api is None or uid not in self._unsent

    def set_container_readiness(self, uid: str, container_id: str, *, ready: bool) -> None:
        """Take a readiness probe's result: the container's `ready` and the conditions on it (STATUS-13)."""
        follow = (conditions.ready, conditions.containers_ready)
        self._change_container(uid, container_id, lambda one: replace(one, ready=ready), *follow)

    def set_container_startup(self, uid: str, container_id: str, *, started: bool) -> None:
        """Take a startup probe's result: the container's `started`."""
        self._change_container(uid, container_id, lambda one: replace(one, started=started))

    def set_sandbox_ready(self, pod: Pod) -> None:
        """Report that the pod has a sandbox, before a sync that may take long is over (COND-07)."""
        status = self.get(pods.uid(pod))
        if status is None or not self.behaviour.reports_ready_to_start_containers:
            return
        usable = PodCondition(type=conditions.READY_TO_START, status="True")
        self._set(pod, replace(status, conditions=conditions.put(status.conditions or (), usable)))

    def remove_orphans(self, uids: Container[str]) -> None:
        """Forget the pods that are not among `uids` (STATUS-14)."""
        for uid in [uid for uid in self._kept if uid not in uids]:
            self._forget(uid)

    def _change_container(
        self,
        uid: str,
        container_id: str,
        change: Callable[[ContainerStatus], ContainerStatus],
        *follow: Callable[[Pod, PodStatus], PodCondition],
    ) -> None:
        """Change the status of one container, and the conditions that follow from it."""
        kept = self._kept.get(uid)
        if kept is None:
            return

        def changed(one: ContainerStatus) -> ContainerStatus:
            return change(one) if pods.bare_id(one.containerID) == container_id else one

        status = status_rules.in_statuses(kept.status, changed)
        for decide in follow:
            found = conditions.put(status.conditions or (), decide(kept.pod, status))
            status = replace(status, conditions=found)
        self._set(kept.pod, status)

    def _before(self, pod: Pod) -> PodStatus:
        """The status set last, or else the one that the API server has of the pod, or of its mirror."""
        kept = self.get(pods.uid(pod))
        if kept is not None:
            return kept
        stored = self.known.mirror_of(pod) if pods.is_static(pod) else pod
        return (stored or pod).status or PodStatus()

    def _set(self, pod: Pod, status: PodStatus, *, force: bool = False, finished: bool = False) -> None:
        """Accept a status, unless it is impossible or the same as before (STATUS-02, STATUS-10)."""
        uid, before = pods.uid(pod), self._before(pod)
        illegal_transition = self._illegal_transition(pod, before, status)
        if illegal_transition:
            _log.error(
                "status of %s dropped: container %s had ended for good", pods.key(pod), illegal_transition
            )
            return
        status = self._limited(status_rules.dated(status, before, self._now()))
        kept = self._kept.get(uid)
        if kept is not None and not force and status_rules.is_same(kept.status, status):
            return
        finished = finished or (kept is not None and kept.finished)
        self._kept[uid] = Kept(pod, status, finished)
        self._unsent[uid] = None
        self._changed.set()

    def _illegal_transition(self, pod: Pod, before: PodStatus, status: PodStatus) -> str | None:
        """The container that had ended for good and is shown otherwise (STATUS-10)."""
        return status_rules.illegal_transition(pod, before, status, self.behaviour)

    def _limited(self, status: PodStatus) -> PodStatus:
        """The status with the messages that it may have (STATUS-12)."""
        return status_rules.with_limited_messages(status)

    def _now(self) -> datetime:
        return whole_second(self.clock.wall_ns())

    def _forget(self, uid: str) -> None:
        self._kept.pop(uid, None)
        self._unsent.pop(uid, None)

    # Writing

    async def run(self) -> None:
        """Write to the API server until cancelled."""
        if self.api is None:
            return
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._tick())
            while True:
                await self._changed.wait()
                self._changed.clear()
                await self.write(self.api)

    async def _tick(self) -> None:
        while True:
            await self.clock.sleep(BATCH_SECONDS)
            self._batch_is_due = True
            self._changed.set()

    async def write(self, api: ApiServer) -> None:
        """Write what is unsent, and when the batch is due whatever else needs it."""
        due = [*self._unsent]
        if self._batch_is_due:
            self._batch_is_due = False
            sent = ((uid, kept) for uid, kept in self._kept.items() if uid not in self._unsent)
            due += [uid for uid, kept in sent if self._is_due(uid, kept)]
        for uid in due:
            kept = self._kept.get(uid)
            if kept is not None:
                await self._write_one(api, uid, kept)

    def _is_due(self, uid: str, kept: Kept) -> bool:
        """Whether a status that was sent needs another write: others changed it, or its pod may go."""
        stored = self._in_api(uid, kept)
        return stored is not None and (
            self._may_be_deleted(uid, stored, kept) or self._patch(uid, stored, kept) is not None
        )

    def _in_api(self, uid: str, kept: Kept) -> Pod | None:
        """The object that shows the pod in the API server: of a static pod that is its mirror (STATIC-16).

        When the file has changed, the next mirror of that name shows another pod.
        """
        if not pods.is_static(kept.pod):
            return self.known.by_uid(uid)
        mirror = self.known.mirror_of(kept.pod)
        return mirror if mirror is not None and is_mirror_of(mirror, kept.pod) else None

    def _patch(self, uid: str, stored: Pod, kept: Kept) -> dict[str, object] | None:
        """What has to be patched so that the stored pod shows the status; None if nothing has."""
        old = stored.status or PodStatus()
        return status_patch(pods.uid(stored), old, self._merged(uid, old, kept.status))

    def _merged(self, uid: str, stored: PodStatus, new: PodStatus) -> PodStatus:
        """What the stored status becomes (STATUS-06, TERM-15, TERM-31)."""
        return status_rules.merged(stored, new, could_run=self.safety.could_run(uid), now=self._now())

    async def _write_one(self, api: ApiServer, uid: str, kept: Kept) -> None:
        """GET, PATCH what differs, DELETE a pod that has ended; what failed is left for the next time."""
        try:
            live = await self._live(api, uid, kept)
            if live is None:
                return
            patch = self._patch(uid, live, kept)
            if patch is not None:
                live = await api.patch_pod_status(pods.namespace(live), pods.name(live), patch)
            if self._kept.get(uid) is kept:
                self._unsent.pop(uid, None)
            if self._may_be_deleted(uid, live, kept):
                await self._delete(api, uid, live)
        except ApiError as error:
            _log.warning("status of %s not written: %s", pods.key(kept.pod), error)

    async def _live(self, api: ApiServer, uid: str, kept: Kept) -> Pod | None:
        """The pod as the API server has it now, None if there is nothing to write to.

        A pod of another UID under the same name is not touched (STATUS-04). The status of a static pod waits
        for its mirror.
        """
        static = pods.is_static(kept.pod)
        shown = self._in_api(uid, kept) if static else None
        if static and shown is None:
            return None
        try:
            live = await api.get_pod(pods.namespace(kept.pod), pods.name(kept.pod))
        except ApiError as error:
            if not error.is_not_found:
                raise
            return None
        return live if pods.uid(live) == (pods.uid(shown) if shown else uid) else None

    def _may_be_deleted(self, uid: str, stored: Pod, kept: Kept) -> bool:
        """Whether the pod's object may go: its deletion was asked for, and nothing of it is left (TERM-18).

        The object of a pod that ended by itself stays (TERM-20), and so do mirrors (STATIC-17).
        """
        if not pods.deletion_asked(stored) or pods.is_mirror(stored):
            return False
        if self.behaviour.terminal_phase_before_deletion:
            return kept.finished and pods.is_terminal_phase(pods.phase(stored))
        stopped = not self.safety.could_run(uid) and status_rules.runs_nothing(kept.status)
        return stopped and self.safety.reclaimed(uid)

    async def _delete(self, api: ApiServer, uid: str, pod: Pod) -> None:
        """The final DELETE: at once, and of this very object (TERM-19)."""
        await api.delete_pod(pods.namespace(pod), pods.name(pod), grace_seconds=0, uid=pods.uid(pod))
        self._forget(uid)
