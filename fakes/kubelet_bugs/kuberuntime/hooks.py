"""Bugs of lifecycle hooks: how they are carried out, and what counts as their success."""

from collections.abc import Callable, Sequence
from contextlib import suppress

from lightkube.models.core_v1 import HTTPGetAction, LifecycleHandler, Pod

from kubelet_bugs.bug import bug
from kubelet_reference.api.pods import AnyContainer
from kubelet_reference.kuberuntime.container.hooks import Hooks, NoAddressError
from kubelet_reference.kuberuntime.container.kill_container import ContainerKill, ContainerKiller
from kubelet_reference.kuberuntime.container.start_container import ContainerStarter, StartContext
from kubelet_reference.kuberuntime.container.stop_timeout import stop_timeout
from kubelet_reference.kuberuntime.runtime_tools import RuntimeTools
from kubelet_reference.util.ports import FetchError, PlainAnswerError
from kubelet_reference.util.versions import Behaviour

StopTimeout = Callable[[int, int | None, float, Behaviour], int]


_BAD = 400


@bug("MUT-HOOK-07", breaks="HOOK-07")
class InAShell(Hooks):
    """The command of a hook is run by a shell."""

    async def _exec(
        self, pod: Pod, container: AnyContainer, container_id: str, command: Sequence[str]
    ) -> None:
        await super()._exec(pod, container, container_id, ("/bin/sh", "-c", " ".join(command)))


@bug("MUT-HOOK-02", breaks=("HOOK-02", "HOOK-04"))
class NobodyWaits(ContainerStarter):
    """The kubelet does not wait for a postStart hook."""

    async def _post_start(self, context: StartContext, container: AnyContainer, container_id: str) -> None:
        self.tools.spawn(super()._post_start(context, container, container_id))
        await self.tools.clock.sleep(0.01)


@bug("MUT-HOOK-08", breaks="HOOK-08")
class MindsTheStatus(Hooks):
    """A hook whose request is answered with an error status has failed."""

    async def _get(self, pod: Pod, container: AnyContainer, url: str, headers: dict[str, str]) -> None:
        status = await self.http.get(url, headers)
        if status >= _BAD:
            raise FetchError(f"the hook was answered with {status}")


@bug("MUT-HOOK-08-B", breaks="HOOK-08")
class AsksTheNode(Hooks):
    """Hooks are sent to the node instead of the pod."""

    async def _host(self, pod: Pod, action: HTTPGetAction) -> str:
        return action.host or "127.0.0.1"


@bug("MUT-HOOK-10", breaks="HOOK-10")
class NoAddressNoHook(Hooks):
    """A hook for which there is no address is left out."""

    async def _http_get(self, pod: Pod, container: AnyContainer, action: HTTPGetAction) -> None:
        with suppress(NoAddressError):
            await super()._http_get(pod, container, action)


@bug("MUT-HOOK-09", breaks="HOOK-09")
class NeverFallsBack(Hooks):
    """An HTTPS hook that is answered in plain HTTP has failed."""

    async def _get(self, pod: Pod, container: AnyContainer, url: str, headers: dict[str, str]) -> None:
        try:
            await self.http.get(url, headers)
        except PlainAnswerError as error:
            raise FetchError(str(error)) from error


@bug("MUT-HOOK-09-B", breaks="HOOK-09")
class TellsEverybody(Hooks):
    """The credentials of an HTTPS hook are sent in plain HTTP too."""

    def _without_credentials(self, headers: dict[str, str]) -> dict[str, str]:
        return headers


@bug("MUT-HOOK-11", breaks="HOOK-11")
class DoesNotSleep(Hooks):
    """A hook that sleeps is left out."""

    async def run(
        self, pod: Pod, container: AnyContainer, container_id: str, handler: LifecycleHandler
    ) -> None:
        if handler.sleep is None:
            await super().run(pod, container, container_id, handler)


@bug("MUT-HOOK-12", breaks="HOOK-12")
class SocketsAreFine(Hooks):
    """A hook that cannot be run counts as a success."""

    async def run(
        self, pod: Pod, container: AnyContainer, container_id: str, handler: LifecycleHandler
    ) -> None:
        if handler.tcpSocket is None:
            await super().run(pod, container, container_id, handler)


@bug("MUT-HOOK-13", breaks="HOOK-13")
class TrustsItsForerunner(ContainerKiller):
    """A preStop hook that the end of the kubelet cut short is not run again."""

    def __init__(self, tools: RuntimeTools, hooks: Hooks, timeout: StopTimeout = stop_timeout) -> None:
        super().__init__(tools, hooks, timeout)
        self._began = tools.clock.wall_ns() / 1e9

    async def _pre_stop(self, kill: ContainerKill, container: AnyContainer, limit: int) -> None:
        meta = kill.pod.metadata
        if meta is not None and meta.deletionTimestamp is not None:
            asked = meta.deletionTimestamp.timestamp() - (meta.deletionGracePeriodSeconds or 0)
            if asked < self._began:
                return
        await super()._pre_stop(kill, container, limit)
