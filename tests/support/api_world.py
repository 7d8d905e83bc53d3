"""A fake API server in a test: a core on a clock that the test sets, and the smallest pods."""

from collections.abc import Callable
from typing import Any

from kubelet_fakes.api import ApiCore, ApiStatusError

#: 2026-01-01T12:00:00Z, in nanoseconds since the epoch.
NOON = 1_767_268_800 * 1_000_000_000


class ApiWorld(ApiCore):
    """A core whose time stands still until `wait` moves it."""

    def __init__(self, **options: Any) -> None:
        self.time_ns = NOON
        super().__init__(lambda: self.time_ns, **options)

    def wait(self, seconds: float) -> None:
        """Let time pass."""
        self.time_ns += round(seconds * 1_000_000_000)


def pod(
    name: str = "web", *, node: str = "node-1", container: dict[str, Any] | None = None, **spec: Any
) -> dict[str, Any]:
    """A pod of one container; `spec` is the rest of its spec."""
    bound = {"nodeName": node} if node else {}
    containers = [{"name": "app", "image": "img:1", **(container or {})}]
    return {"metadata": {"name": name}, "spec": {"containers": containers, **bound, **spec}}


def refused(call: Callable[..., object], *arguments: Any, **options: Any) -> ApiStatusError:
    """The error that the call ends with."""
    try:
        call(*arguments, **options)
    except ApiStatusError as error:
        return error
    raise AssertionError("the API server took it")
