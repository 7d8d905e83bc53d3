"""Bugs of lifecycle hooks: how they are carried out, and what counts as their success."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress

from lightkube.models.core_v1 import HTTPGetAction, LifecycleHandler, Pod

from kubelet_bugs.bug import Bug
from kubelet_reference.hooks import Hooks, NoAddressError
from kubelet_reference.parts import Parts
from kubelet_reference.pods import AnyContainer
from kubelet_reference.ports import FetchError, PlainAnswerError
from kubelet_reference.runtime_side import RuntimeParts
from kubelet_reference.runtime_tools import RuntimeTools
from kubelet_reference.start_container import ContainerStarter, PodToStart, StartParts
from kubelet_reference.stop_timeout import stop_timeout
from kubelet_reference.termination import ContainerKill, Terminator
from kubelet_reference.versions import Behaviour

StopTimeout = Callable[[int, int | None, float, Behaviour], int]


_BAD = 400


class _InAShell(Hooks):
    """Gives the words of a hook's command to a shell."""

    async def _exec(
        self, pod: Pod, container: AnyContainer, container_id: str, command: Sequence[str]
    ) -> None:
        await super()._exec(pod, container, container_id, ("/bin/sh", "-c", " ".join(command)))


class _NobodyWaits(ContainerStarter):
    """Goes on while a postStart hook runs."""

    def __init__(self, tools: RuntimeTools, parts: StartParts) -> None:
        super().__init__(tools, parts)
        self._spawn = tools.spawn
        self._sleep = tools.clock.sleep

    async def _post_start(self, into: PodToStart, container: AnyContainer, container_id: str) -> None:
        self._spawn(super()._post_start(into, container, container_id))
        await self._sleep(0.01)


class _MindsTheStatus(Hooks):
    """Takes an answer with an error status for a failure."""

    async def _get(self, pod: Pod, container: AnyContainer, url: str, headers: dict[str, str]) -> int:
        status = await super()._get(pod, container, url, headers)
        if status >= _BAD:
            raise FetchError(f"the hook was answered with {status}")
        return status


class _AsksTheNode(Hooks):
    """Sends hooks to the node itself."""

    async def _host(self, pod: Pod, action: HTTPGetAction) -> str:
        del pod
        return action.host or "127.0.0.1"


class _NoAddressNoHook(Hooks):
    """Leaves a hook out for which there is no address."""

    async def _http_get(self, pod: Pod, container: AnyContainer, action: HTTPGetAction) -> None:
        with suppress(NoAddressError):
            await super()._http_get(pod, container, action)


class _NeverFallsBack(Hooks):
    """Takes a plain answer to an HTTPS hook for none."""

    async def _get(self, pod: Pod, container: AnyContainer, url: str, headers: dict[str, str]) -> int:
        try:
            return await self._send(url, headers)
        except PlainAnswerError as error:
            raise FetchError(str(error)) from error


class _TellsEverybody(Hooks):
    """Sends the credentials of an HTTPS hook in plain HTTP too."""

    def _without_credentials(self, headers: dict[str, str]) -> dict[str, str]:
        return headers


class _DoesNotSleep(Hooks):
    """Knows of no hook that sleeps."""

    async def run(
        self, pod: Pod, container: AnyContainer, container_id: str, handler: LifecycleHandler
    ) -> None:
        if handler.sleep is None:
            await super().run(pod, container, container_id, handler)


class _SocketsAreFine(Hooks):
    """Takes a hook that it cannot run for one that succeeded."""

    async def run(
        self, pod: Pod, container: AnyContainer, container_id: str, handler: LifecycleHandler
    ) -> None:
        if handler.tcpSocket is None:
            await super().run(pod, container, container_id, handler)


class _TrustsItsForerunner(Terminator):
    """Takes the hooks of a pod for done whose deletion was asked for before it started."""

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


BUGS: tuple[Bug, ...] = (
    Bug(
        "MUT-HOOK-02",
        "Nobody waits for a postStart hook.",
        lambda: Parts(runtime=RuntimeParts(starter=_NobodyWaits)),
        ("HOOK-02", "HOOK-04"),
    ),
    Bug(
        "MUT-HOOK-07",
        "The command of a hook is run by a shell.",
        lambda: Parts(runtime=RuntimeParts(hooks=_InAShell)),
        ("HOOK-07",),
    ),
    Bug(
        "MUT-HOOK-08",
        "A hook whose request is answered with an error status has failed.",
        lambda: Parts(runtime=RuntimeParts(hooks=_MindsTheStatus)),
        ("HOOK-08",),
    ),
    Bug(
        "MUT-HOOK-08-B",
        "Hooks are sent to the node instead of the pod.",
        lambda: Parts(runtime=RuntimeParts(hooks=_AsksTheNode)),
        ("HOOK-08",),
    ),
    Bug(
        "MUT-HOOK-09",
        "An HTTPS hook that is answered in plain HTTP has failed.",
        lambda: Parts(runtime=RuntimeParts(hooks=_NeverFallsBack)),
        ("HOOK-09",),
    ),
    Bug(
        "MUT-HOOK-09-B",
        "The credentials of an HTTPS hook are sent in plain HTTP too.",
        lambda: Parts(runtime=RuntimeParts(hooks=_TellsEverybody)),
        ("HOOK-09",),
    ),
    Bug(
        "MUT-HOOK-10",
        "A hook for which there is no address is left out.",
        lambda: Parts(runtime=RuntimeParts(hooks=_NoAddressNoHook)),
        ("HOOK-10",),
    ),
    Bug(
        "MUT-HOOK-11",
        "A hook that sleeps is left out.",
        lambda: Parts(runtime=RuntimeParts(hooks=_DoesNotSleep)),
        ("HOOK-11",),
    ),
    Bug(
        "MUT-HOOK-12",
        "A hook that cannot be run counts as a success.",
        lambda: Parts(runtime=RuntimeParts(hooks=_SocketsAreFine)),
        ("HOOK-12",),
    ),
    Bug(
        "MUT-HOOK-13",
        "A preStop hook that the end of the kubelet cut short is not run again.",
        lambda: Parts(runtime=RuntimeParts(terminator=_TrustsItsForerunner)),
        ("HOOK-13",),
    ),
)
