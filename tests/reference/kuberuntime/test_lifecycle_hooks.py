"""Hooks by handler: exec, httpGet, sleep, and those that there are not."""

from collections.abc import Mapping
from typing import Any

import pytest
from runtime_world import RuntimeWorld, a_container, a_pod

from kubelet_fakes.clock import run
from kubelet_reference.api.sync_result import Failure
from kubelet_reference.util.ports import FetchError, PlainAnswerError


class Web:
    """Answers every request, or raises what it was made with, once."""

    def __init__(self, error: Exception | None = None, status: int = 200) -> None:
        self.asked: list[tuple[str, dict[str, str]]] = []
        self._error = error
        self._status = status

    async def get(self, url: str, headers: Mapping[str, str]) -> int:
        """Answer."""
        self.asked.append((url, dict(headers)))
        error, self._error = self._error, None
        if error is not None:
            raise error
        return self._status


def _started(handler: dict[str, Any], web: Web, **fields: Any) -> RuntimeWorld:
    """A world in which a container with this postStart hook was started."""

    async def play() -> RuntimeWorld:
        world = RuntimeWorld(http=web)
        pod = a_pod(a_container("c1", lifecycle={"postStart": handler}, **fields))
        await world.sync(pod)
        return world

    return run(play())


def test_http_get() -> None:
    """The pod's IP, the port by its name in the container; any status is a success (HOOK-08)."""
    web = Web(status=500)
    ports = [{"name": "http", "containerPort": 8080}]
    header = {"name": "X-From", "value": "hook"}

    world = _started({"httpGet": {"port": "http", "path": "/up", "httpHeaders": [header]}}, web, ports=ports)

    assert world.result.error is None
    assert web.asked == [("http://10.88.0.2:8080/up", {**USUAL, "X-From": "hook"})]


USUAL = {"User-Agent": "kube-lifecycle/1.32", "Accept": "*/*"}


def test_https_answered_in_plain() -> None:
    """It is sent once more over HTTP, without the authorization, and reported (HOOK-09)."""
    web = Web(error=PlainAnswerError("plain"))
    header = {"name": "Authorization", "value": "secret"}
    action = {"host": "web.example", "port": 443, "scheme": "HTTPS", "path": "x", "httpHeaders": [header]}

    world = _started({"httpGet": action}, web)

    assert world.result.error is None
    assert web.asked[1] == ("http://web.example:443/x", USUAL)
    assert len(world.events("LifecycleHTTPFallback")) == 1


@pytest.mark.parametrize(
    ("handler", "error"),
    [
        ({"httpGet": {"port": 80}}, FetchError("refused")),
        ({"httpGet": {"port": "nameless"}}, None),
        ({"tcpSocket": {"port": 80}}, None),
        ({}, None),
    ],
    ids=["no answer", "no such port", "tcp", "nothing"],
)
def test_failing_handlers(handler: dict[str, Any], error: Exception | None) -> None:
    """No answer, an unknown port, and handlers that do not exist fail the hook (HOOK-12)."""
    world = _started(handler, Web(error=error))

    assert [one.reason for one in world.result.failures] == [Failure.POST_START_HOOK]


def test_sleep() -> None:
    """A sleep takes its time, which is off the grace (HOOK-11)."""

    async def play() -> list[str]:
        world = RuntimeWorld()
        pod = a_pod(a_container("c1", lifecycle={"preStop": {"sleep": {"seconds": 3}}}))
        await world.sync(pod)
        world.forget()
        await world.kill(pod, 10)
        return world.done

    assert run(play()) == ["StopContainer c1#0 7", "StopPodSandbox"]
