"""Runtime classes: which handler a sandbox is asked for, and what becomes of a pod whose class is unknown."""

from collections.abc import Callable
from typing import Any

import pytest
from config_doubles import SmallApi
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.models.node_v1 import RuntimeClass
from runtime_world import RuntimeWorld, a_container, a_pod

from kubelet_fakes.clock import run
from kubelet_reference.kuberuntime.sandbox import RuntimeClasses, UnknownClassError
from kubelet_reference.util.ports import ApiError

AWAY = ApiError(0, "", "connection refused")


def _api() -> SmallApi:
    api = SmallApi()
    api.classes["strong"] = RuntimeClass(handler="runc", metadata=ObjectMeta(name="strong"))
    return api


@pytest.mark.parametrize(
    ("name", "handler", "asked"),
    [(None, "", []), ("", "", []), ("strong", "runc", ["runtimeclass strong"])],
)
def test_handler(name: str | None, handler: str, asked: list[str]) -> None:
    """It is that of the class; a pod without a class gets the nameless one, and nobody is asked."""
    api = _api()

    assert run(RuntimeClasses(api).handler(name)) == handler
    assert api.asked == asked


def test_without_an_api_server_there_are_no_classes() -> None:
    """A kubelet of its own runs every pod by the default handler."""
    assert run(RuntimeClasses(None).handler("strong")) == ""


def _forget(api: SmallApi) -> None:
    del api.classes["strong"]


def _go_away(api: SmallApi) -> None:
    api.down = AWAY


@pytest.mark.parametrize(
    ("known", "change", "handler"),
    [
        (True, _go_away, "runc"),
        (False, _go_away, "failed to lookup RuntimeClass strong: connection refused"),
        (True, _forget, 'runtimeclass.node.k8s.io "strong" not found'),
    ],
)
def test_what_is_known_outlasts_an_outage(
    known: bool,  # noqa: FBT001 - a parameter of the test
    change: Callable[[SmallApi], None],
    handler: str,
) -> None:
    """A class that was seen is known while the API server is away, and not once it is gone."""
    api = _api()

    async def main() -> str:
        classes = RuntimeClasses(api)
        if known:
            await classes.handler("strong")
        change(api)
        try:
            return await classes.handler("strong")
        except UnknownClassError as error:
            return str(error)

    assert run(main()) == handler


def _sync(pod_class: str) -> tuple[RuntimeWorld, list[str]]:
    """A round of a pod of that class; the world after it, and the events of failure."""

    async def work() -> tuple[RuntimeWorld, list[str]]:
        world = RuntimeWorld(api=_api())
        fields: dict[str, Any] = {"runtimeClassName": pod_class}
        await world.sync(a_pod(a_container(), **fields))
        return world, world.events("FailedCreatePodSandBox")

    return run(work())


def test_sandbox_is_asked_of_the_handler() -> None:
    """RunPodSandbox carries the handler of the class (SANDBOX-16)."""
    world, failures = _sync("strong")

    assert [call.request.runtime_handler for call in world.calls("RunPodSandbox")] == ["runc"]
    assert failures == []


def test_unknown_class_makes_no_sandbox() -> None:
    """The runtime is not asked, the event tells why, and the round has failed (SANDBOX-16)."""
    world, failures = _sync("odd")

    assert world.calls("RunPodSandbox") == []
    assert "Failed to create sandbox" in world.result.problem
    assert len(failures) == 1
    assert 'runtimeclass.node.k8s.io "odd" not found' in failures[0]
