"""Lifecycle hooks: what a container has run after its start, and before its stop (HOOK-07..12)."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

import grpc
from lightkube.models.core_v1 import HTTPGetAction, LifecycleHandler, Pod

from kubelet_reference.api.go_text import pod_text, quoted, text_of
from kubelet_reference.api.pods import AnyContainer
from kubelet_reference.api.requests import PortError, http_headers, http_url
from kubelet_reference.cri.errors import wrapped_text
from kubelet_reference.kuberuntime.runtime_tools import RuntimeTools
from kubelet_reference.util.ports import FetchError, HttpGet, PlainAnswerError

HTTP_FALLBACK = "LifecycleHTTPFallback"


class HookError(Exception):
    """The hook failed, or there is no way to run it."""


class NoAddressError(HookError):
    """The hook is to be sent to its pod, and that has no address (HOOK-10)."""


@dataclass(eq=False)
class Hooks:
    """Runs hooks; `pod_ip` finds the present IP of a pod, "" if it has none."""

    tools: RuntimeTools
    http: HttpGet
    pod_ip: Callable[[Pod], Awaitable[str]]

    async def run(
        self, pod: Pod, container: AnyContainer, container_id: str, handler: LifecycleHandler
    ) -> None:
        """Run a hook to its end, however long that takes; raises `HookError` if it fails."""
        if handler.exec is not None:
            await self._exec(pod, container, container_id, handler.exec.command or ())
        elif handler.httpGet is not None:
            await self._http_get(pod, container, handler.httpGet)
        elif handler.sleep is not None:
            await self.tools.clock.sleep(handler.sleep.seconds)
        else:
            raise HookError(f"invalid handler of container {container.name}: {handler}")

    async def _exec(
        self, pod: Pod, container: AnyContainer, container_id: str, command: Sequence[str]
    ) -> None:
        """The command word for word, without a shell, without a time limit (HOOK-02, HOOK-07)."""
        try:
            reply = await self.tools.client.exec_sync(container_id, command)
        except grpc.RpcError as error:
            raise HookError(self._exec_text(pod, container, command, wrapped_text(error), "")) from error
        if reply.exit_code:
            said, output = text_of(reply.stderr), text_of(reply.stdout)
            why = f"command '{' '.join(command)}' exited with {reply.exit_code}: {said}"
            raise HookError(self._exec_text(pod, container, command, why, output))

    def _exec_text(
        self, pod: Pod, container: AnyContainer, command: Sequence[str], why: str, output: str
    ) -> str:
        what = f"Exec lifecycle hook ([{' '.join(command)}]) for Container {quoted(container.name)}"
        return f"{what} in Pod {quoted(pod_text(pod))} failed - error: {why}, message: {quoted(output)}"

    async def _http_get(self, pod: Pod, container: AnyContainer, action: HTTPGetAction) -> None:
        """Any answer is a success, whatever its status (HOOK-08)."""
        host = await self._host(pod, action)
        try:
            url = http_url(container, action, host)
        except PortError as error:
            raise HookError(str(error)) from None
        headers = http_headers(action, f"kube-lifecycle/1.{self.tools.behaviour.minor}")
        try:
            await self._get(pod, container, url, headers)
        except FetchError as error:
            what = f"HTTP lifecycle hook ({action.path}) for Container {quoted(container.name)}"
            raise HookError(f"{what} in Pod {quoted(pod_text(pod))} failed - error: {error}") from error

    async def _host(self, pod: Pod, action: HTTPGetAction) -> str:
        """The host that is named, or the pod itself by its present address."""
        host = action.host or await self.pod_ip(pod)
        if not host:
            raise NoAddressError(f"failed to find networking container of pod {pod_text(pod)}")
        return host

    async def _get(self, pod: Pod, container: AnyContainer, url: str, headers: dict[str, str]) -> None:
        """Send the request; an HTTPS one answered in plain HTTP is sent again as such (HOOK-09)."""
        try:
            await self.http.get(url, headers)
        except PlainAnswerError:
            plain = urlsplit(url)._replace(scheme="http").geturl()
            await self.http.get(plain, self._without_credentials(headers))
            text = f"request to HTTPS lifecycle hook {url} got HTTP response, retry with HTTP succeeded"
            self.tools.recorder.warning(pod, HTTP_FALLBACK, text, container.name)

    def _without_credentials(self, headers: dict[str, str]) -> dict[str, str]:
        return {name: value for name, value in headers.items() if name != "Authorization"}
