"""A runtime by the name that a user gives it."""

from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass

from kubelet_conformance.reports.safe import nearest
from kubelet_conformance.targets.choice import UnknownTargetError
from kubelet_conformance.targets.cri_endpoint import path_of
from kubelet_conformance.targets.in_process.stage import runtime_parts_of
from kubelet_conformance.targets.runtime.at_socket import fake_over_grpc, private_containerd, runtime_at
from kubelet_conformance.targets.runtime.fake import FakeNode
from kubelet_conformance.targets.runtime.runtime_target import DirectRuntime
from kubelet_fakes.clock import run

_GRPC = "-grpc"
_PRIVATE = "containerd"
_LIMIT_SECONDS = 24 * 3600


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a user wants to have called.

    Attributes:
        target: `unix:///PATH`, `containerd`, `fake`, `fake-grpc`, `bug:ID` or `bug:ID-grpc`.
        image: the image for containers; of no account for fakes.
        run_id: marks what is made in this run, among what others made.
        now_ns: the time of day, in nanoseconds since the epoch.
    """

    target: str
    image: str
    run_id: str
    now_ns: int


def is_in_process(target: str) -> bool:
    """Whether it is called in this process on virtual time; `UnknownTargetError` if nothing is named so."""
    if target.startswith("unix:") or target == _PRIVATE:
        return False
    runtime_parts_of(_bare(target))
    return not target.endswith(_GRPC)


def opened_in_process(target: str) -> Callable[[], DirectRuntime]:
    """Makes a new runtime on the loop that runs, each time it is called."""
    parts = runtime_parts_of(target)
    return lambda: FakeNode(parts).direct()


def on_virtual_time(scenario: Coroutine[None, None, None]) -> None:
    """Run a coroutine to its end on a loop of its own, whose time is virtual."""
    run(scenario, limit_seconds=_LIMIT_SECONDS)


@asynccontextmanager
async def opened(wanted: Wanted) -> AsyncGenerator[DirectRuntime]:
    """The runtime over a socket, for as long as the context is open.

    Raises:
        TargetError: It cannot be called.
        UnknownTargetError: Nothing is named so.
    """
    if wanted.target == _PRIVATE:
        async with private_containerd(wanted.run_id) as runtime:
            yield runtime
    elif wanted.target.startswith("unix:"):
        async with runtime_at(path_of(wanted.target), wanted.image, wanted.run_id) as runtime:
            yield runtime
    else:
        async with fake_over_grpc(runtime_parts_of(_bare(wanted.target)), wanted.now_ns) as runtime:
            yield runtime


def _bare(target: str) -> str:
    """The fake's name without the way it is called. Raises `UnknownTargetError`."""
    bare = target.removesuffix(_GRPC)
    if bare != "fake" and not bare.startswith("bug:"):
        near = nearest(target, ("containerd", "fake", f"fake{_GRPC}"))
        raise UnknownTargetError(
            f"no runtime is named {target!r}{near}; choose unix:///PATH, containerd, fake, fake-grpc, bug:ID "
            "or bug:ID-grpc"
        )
    return bare
