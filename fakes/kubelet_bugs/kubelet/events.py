"""Bugs in what events report, and in what events do to the rest."""

from typing import Any

from lightkube.models.core_v1 import LifecycleHandler, Pod
from msgspec import structs

from kubelet_bugs.bug import WrongParts, bug, parts_with
from kubelet_reference.api import pods
from kubelet_reference.api.events import NORMAL, Reason, Recorder
from kubelet_reference.api.pods import AnyContainer
from kubelet_reference.api.sync_result import Failure, StartError
from kubelet_reference.kuberuntime.container.hooks import HookError, Hooks
from kubelet_reference.pod_workers.sync_pod import PodSyncer

_QUEUE = 4


@bug("MUT-EVENTS-01", breaks="EVENTS-01")
class CalmBackOff(Recorder):
    """That a container is held back after a crash is nothing to worry about."""

    def _record(self, kind: str, pod: Pod, reason: str, message: str, container: str) -> None:
        super()._record(NORMAL if reason == Reason.BACK_OFF else kind, pod, reason, message, container)


@bug("MUT-EVENTS-02", breaks="EVENTS-02")
class OneList(Recorder):
    """Events of init and ephemeral containers are about app containers."""

    def _reference(self, pod: Pod, container: str) -> str:
        return f"spec.containers{{{container}}}" if container else ""


@bug("MUT-EVENTS-03", breaks="EVENTS-03")
class TellsIds(Recorder):
    """Events name containers by ids that cannot be distinguished."""

    def _aggregatable(self, message: str, container: str, container_id: str) -> str:
        return message


@bug("MUT-EVENTS-06", breaks="EVENTS-06")
class StartedFirst(Recorder):
    """The creation of a container is reported after its start."""

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


@bug("MUT-EVENTS-05", breaks="EVENTS-05")
class ShortQueue(Recorder):
    """A container whose Created event cannot be written is not started."""

    def __init__(self, *parts: Any) -> None:  # noqa: ANN401 - as its parent's
        super().__init__(*parts)
        self._count = 0

    def _record(self, kind: str, pod: Pod, reason: str, message: str, container: str) -> None:
        self._count += 1
        if self._count > _QUEUE and reason == Reason.CREATED:
            raise StartError(Failure.RUN_CONTAINER, "the queue of events is full")
        super()._record(kind, pod, reason, message, container)


@bug("MUT-EVENTS-04", breaks="EVENTS-04")
class TalkativeHooks(Hooks):
    """The event of a failed hook shows what the hook has printed."""

    async def run(
        self, pod: Pod, container: AnyContainer, container_id: str, handler: LifecycleHandler
    ) -> None:
        try:
            await super().run(pod, container, container_id, handler)
        except HookError as error:
            self.tools.recorder.warning(pod, Reason.FAILED_POST_START_HOOK, str(error), container.name)
            raise


class _OfMirrors(Recorder):
    """Records events of static pods on the mirrors that stand for them."""

    def __init__(self, *parts: Any) -> None:  # noqa: ANN401 - as its parent's
        super().__init__(*parts)
        self.mirrors: dict[str, str] = {}
        """The UID of the mirror by that of the static pod."""

    def _record(self, kind: str, pod: Pod, reason: str, message: str, container: str) -> None:
        uid = self.mirrors.get(pods.uid(pod))
        if uid is not None and pod.metadata is not None:
            pod = structs.replace(pod, metadata=structs.replace(pod.metadata, uid=uid))
        super()._record(kind, pod, reason, message, container)


class _TellsOfMirrors(PodSyncer):
    """Lets the recorder know of mirrors."""

    async def ensure_mirror(self, pod: Pod, mirror: Pod | None) -> None:
        if mirror is not None and isinstance(self.recorder, _OfMirrors):
            self.recorder.mirrors[pods.uid(pod)] = pods.uid(mirror)
        await super().ensure_mirror(pod, mirror)


@bug("MUT-EVENTS-07", breaks="EVENTS-07")
def tells_of_mirrors() -> WrongParts:
    """Events of static pods are recorded on their mirrors."""
    return parts_with(_OfMirrors, _TellsOfMirrors)
