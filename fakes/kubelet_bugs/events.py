"""Bugs in what is told by events, and in what events do to the rest."""

from __future__ import annotations

from typing import Any

from lightkube.models.core_v1 import LifecycleHandler, Pod
from msgspec.structs import replace

from kubelet_bugs.bug import Bug
from kubelet_reference import pods
from kubelet_reference.events import NORMAL, Reason, Recorder
from kubelet_reference.hooks import HookError, Hooks
from kubelet_reference.parts import Parts
from kubelet_reference.pods import AnyContainer
from kubelet_reference.runtime_side import RuntimeParts
from kubelet_reference.sync_pod import PodSyncer
from kubelet_reference.sync_result import Failure, StartError

_QUEUE = 4


class _CalmBackOff(Recorder):
    """Takes every back-off for what goes its way, as that of an image is."""

    def _record(self, kind: str, pod: Pod, reason: str, message: str, container: str) -> None:
        super()._record(NORMAL if reason == Reason.BACK_OFF else kind, pod, reason, message, container)


class _OneList(Recorder):
    """Names every container as if it were one of the app containers."""

    def _reference(self, pod: Pod, container: str) -> str:
        return f"spec.containers{{{container}}}" if container else ""


class _TellsIds(Recorder):
    """Tells ids as the runtime does."""

    def _aggregatable(self, message: str, container: str, container_id: str) -> str:
        del container, container_id
        return message


class _StartedFirst(Recorder):
    """Tells that a container was created once it has told that it was started."""

    def __init__(self, *parts: Any) -> None:  # noqa: ANN401 - as its parent's
        super().__init__(*parts)
        self._held: dict[tuple[str, str], tuple[str, Pod, str, str, str]] = {}

    def _record(self, kind: str, pod: Pod, reason: str, message: str, container: str) -> None:
        whom = pods.uid(pod), container
        if reason == Reason.CREATED:
            self._held[whom] = kind, pod, reason, message, container
            return
        super()._record(kind, pod, reason, message, container)
        if reason == Reason.STARTED and whom in self._held:
            super()._record(*self._held.pop(whom))


class _ShortQueue(Recorder):
    """Has a queue of a few events, and lets fail what cannot be told."""

    def __init__(self, *parts: Any) -> None:  # noqa: ANN401 - as its parent's
        super().__init__(*parts)
        self._count = 0

    def _record(self, kind: str, pod: Pod, reason: str, message: str, container: str) -> None:
        self._count += 1
        if self._count > _QUEUE and reason == Reason.CREATED:
            raise StartError(Failure.RUN_CONTAINER, "the queue of events is full")
        super()._record(kind, pod, reason, message, container)


class _TalkativeHooks(Hooks):
    """Tells everything about a hook that failed, its output too."""

    async def run(
        self, pod: Pod, container: AnyContainer, container_id: str, handler: LifecycleHandler
    ) -> None:
        try:
            await super().run(pod, container, container_id, handler)
        except HookError as error:
            self._recorder.warning(pod, Reason.FAILED_POST_START_HOOK, str(error), container.name)
            raise


class _OfMirrors(Recorder):
    """Tells events of static pods of the mirrors that stand for them."""

    def __init__(self, *parts: Any) -> None:  # noqa: ANN401 - as its parent's
        super().__init__(*parts)
        self.mirrors: dict[str, str] = {}
        """The UID of the mirror by that of the static pod."""

    def _record(self, kind: str, pod: Pod, reason: str, message: str, container: str) -> None:
        uid = self.mirrors.get(pods.uid(pod))
        if uid is not None and pod.metadata is not None:
            pod = replace(pod, metadata=replace(pod.metadata, uid=uid))
        super()._record(kind, pod, reason, message, container)


class _TellsOfMirrors(PodSyncer):
    """Lets the recorder know of mirrors."""

    async def keep_mirror(self, pod: Pod, mirror: Pod | None) -> None:
        if mirror is not None and isinstance(self._tools.recorder, _OfMirrors):
            self._tools.recorder.mirrors[pods.uid(pod)] = pods.uid(mirror)
        await super().keep_mirror(pod, mirror)


BUGS: tuple[Bug, ...] = (
    Bug(
        "MUT-EVENTS-01",
        "That a container is held back after a crash is nothing to worry about.",
        lambda: Parts(recorder=_CalmBackOff),
        ("EVENTS-01",),
    ),
    Bug(
        "MUT-EVENTS-02",
        "Events of init and ephemeral containers are about app containers.",
        lambda: Parts(recorder=_OneList),
        ("EVENTS-02",),
    ),
    Bug(
        "MUT-EVENTS-03",
        "Events name containers by ids that nobody can tell apart.",
        lambda: Parts(recorder=_TellsIds),
        ("EVENTS-03",),
    ),
    Bug(
        "MUT-EVENTS-06",
        "That a container was created is told after its start.",
        lambda: Parts(recorder=_StartedFirst),
        ("EVENTS-06",),
    ),
    Bug(
        "MUT-EVENTS-04",
        "What a failed hook has printed is told to everybody.",
        lambda: Parts(runtime=RuntimeParts(hooks=_TalkativeHooks)),
        ("EVENTS-04",),
    ),
    Bug(
        "MUT-EVENTS-05",
        "A container whose creation cannot be told is not started.",
        lambda: Parts(recorder=_ShortQueue),
        ("EVENTS-05",),
    ),
    Bug(
        "MUT-EVENTS-07",
        "Events of static pods are told of their mirrors.",
        lambda: Parts(recorder=_OfMirrors, pod_syncer=_TellsOfMirrors),
        ("EVENTS-07",),
    ),
)
