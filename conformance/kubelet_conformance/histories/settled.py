"""Whether a node has come to rest: every wanted pod in its final or running state, and nothing else there.

A container that ends by itself is at rest while it waits to be started again: back-off goes on for as long
as the pod does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from kubelet_conformance.histories.performing import Wanted
    from kubelet_conformance.node import Node

__all__ = ("unsettled",)

Json = dict[str, Any]
_FINAL = frozenset({"Succeeded", "Failed"})
_BACKING_OFF = frozenset(
    {"CrashLoopBackOff", "ImagePullBackOff", "ErrImageNeverPull", "PostStartHookError", "RunContainerError"}
)
_WAITING_FOR_INITS = frozenset(
    {"PodInitializing", "CreateContainerError", "ErrImagePull", "ImageInspectError"}
)
"""Of an app container what failed is told until it is made, though init containers must run again first."""
_MIRROR = "kubernetes.io/config.mirror"
_LOOKED_AFTER_SINCE = 1, 27
"""Up to 1.26 nobody repeats the kill of a pod that its source has lost, be it put off or failed (WORK-27)."""
_WAITS_OUT_SINCE = 1, 35
"""From here on a pod is looked at again when a back-off is over, and not before to tell that it waits."""


def unsettled(
    node: Node,
    wanted: Iterable[Wanted],
    *,
    missed: bool = False,
    starting: bool = False,
    kubernetes: tuple[int, int],
) -> list[str]:
    """What has not come to rest, in words; nothing, if all has.

    Args:
        node: Where it is looked for.
        wanted: The pods.
        missed: Container events may be lost.
        starting: What has a postStart hook may run untold: nothing is told of a start before its hook has
            succeeded, or it was killed because that failed.
        kubernetes: The version of the kubelet.
    """
    return list(_unsettled(node, list(wanted), missed=missed, starting=starting, kubernetes=kubernetes))


def _unsettled(
    node: Node, wanted: list[Wanted], *, missed: bool, starting: bool, kubernetes: tuple[int, int]
) -> Iterator[str]:
    gone = [one for one in wanted if node.api.get(one.handle.namespace, one.handle.name) is None]
    left = [one for one in wanted if _is_left_to_itself(one, kubernetes, is_gone=one in gone)]
    for one in wanted:
        if one.there and one not in left:
            waits_out = kubernetes >= _WAITS_OUT_SINCE
            yield from _of_wanted(one, missed=missed, starting=starting, ended_waits=waits_out)
            yield from _of_mirror(node, one)
        elif one not in left and node.api.get(one.handle.namespace, one.handle.name) is not None:
            yield f"{one.name} was deleted and is still at the API server"
    there = {one.handle.uid for one in wanted if one.there or one in left}
    for container in node.runtime.containers():
        if container.state == "RUNNING" and container.sandbox.pod_uid not in there:
            yield f"{container.name} of {container.sandbox.pod_name} runs, and nobody wants that pod"
    for sandbox in node.runtime.sandboxes():
        if sandbox.ready and sandbox.pod_uid not in there:
            yield f"sandbox {sandbox.attempt} of {sandbox.pod_name} is ready, and nobody wants that pod"


def _is_left_to_itself(one: Wanted, kubernetes: tuple[int, int], *, is_gone: bool) -> bool:
    """Its source has lost it, or it waits for the version before to go: nobody may care for that any more."""
    if kubernetes >= _LOOKED_AFTER_SINCE:
        return False
    if not one.there:
        return one.static or is_gone
    return one.static and not any(each.ready for each in one.handle.sandboxes())


def _of_wanted(one: Wanted, *, missed: bool, starting: bool, ended_waits: bool) -> Iterator[str]:
    phase = one.handle.phase
    if phase in _FINAL:
        if any(each.state == "RUNNING" for each in one.handle.containers()):
            yield f"{one.name} is {phase} and something of it runs"
        # One of which nothing was told when the pod was killed stays: only containers are looked for then.
        if not missed and any(each.ready for each in one.handle.sandboxes()):
            yield f"{one.name} is {phase} and has a ready sandbox"
        return
    if one.static and not phase and _has_had_its_run(one):
        return
    if phase not in {"Pending", "Running"}:
        yield f"{one.name} has {f'phase {phase}' if phase else 'no status'}"
        return
    policy = one.manifest["spec"]["restartPolicy"]
    sandboxes = one.handle.sandboxes()
    if policy == "Never" and sandboxes and not any(each.ready for each in sandboxes):
        yield from _of_cut_off(one)
        return
    yield from _of_containers(one, policy, starting=starting, ended_waits=ended_waits)


def _of_containers(one: Wanted, policy: str, *, starting: bool, ended_waits: bool) -> Iterator[str]:
    status, phase = one.handle.status, one.handle.phase
    inits = [_Container(each, one) for each in status.get("initContainerStatuses") or ()]
    apps = [_Container(each, one) for each in status.get("containerStatuses") or ()]
    if not apps:
        yield f"{one.name} is {phase} and has no container statuses"
    initializing = any(not each.is_sidecar and each.holds_up for each in inits) or any(
        each.is_sidecar and each.is_down for each in inits
    )
    if any(each.keeps_its_end(policy) for each in inits):
        return  # No status tells anything as long as that runs.
    for each in (*inits, *apps):
        if starting and each.may_be_starting:
            continue
        if not each.is_at_rest(policy, initializing=initializing, ended_waits=ended_waits):
            yield f"{each.name} of {one.name} is {each.told}"


def _of_cut_off(one: Wanted) -> Iterator[str]:
    """A pod of policy Never that lost its sandbox: what it has not run by then it never will (SANDBOX-06).

    So it stays Pending or Running where a container has never ended, and ends where all have (PHASE-07).
    """
    if any(each.state == "RUNNING" for each in one.handle.containers()):
        yield f"{one.name} has lost its sandbox and something of it runs"
    apps = one.handle.status.get("containerStatuses") or ()
    if apps and all("terminated" in each["state"] for each in apps):
        yield f"{one.name} has lost its sandbox, all of it has ended, and it is {one.handle.phase}"


def _has_had_its_run(one: Wanted) -> bool:
    """A static pod that runs nothing and never will again: its worker is done, no mirror kept (STATIC-12)."""
    if any(each.state == "RUNNING" for each in one.handle.containers()):
        return False
    spec = one.manifest["spec"]
    return spec["restartPolicy"] != "Always" or "activeDeadlineSeconds" in spec


def _of_mirror(node: Node, one: Wanted) -> Iterator[str]:
    """A static pod that goes on is shown by a mirror of what its file holds (STATIC-11, STATIC-13)."""
    if not one.static or _has_had_its_run(one):
        return
    mirror = node.api.get(one.handle.namespace, one.handle.name)
    if mirror is None or "deletionTimestamp" in mirror["metadata"]:
        yield f"{one.name} has no mirror" if mirror is None else f"the mirror of {one.name} is to go"
        return
    if mirror["metadata"].get("annotations", {}).get(_MIRROR) != one.handle.uid:
        yield f"the mirror of {one.name} is of another version than its sandbox"
    images = [[each["image"] for each in pod["spec"]["containers"]] for pod in (mirror, one.manifest)]
    if images[0] != images[1]:
        yield f"the mirror of {one.name} is not of what its file holds"


class _Container:
    """A container as its status tells of it, and as the runtime has it."""

    def __init__(self, status: Json, one: Wanted) -> None:
        self.name: str = status["name"]
        state: Json = status.get("state") or {}
        self._kind = next(iter(state), "waiting")
        told: Json = state.get(self._kind) or {}
        self._reason: str = told.get("reason", "")
        self._code: int = told.get("exitCode", 0)
        self._started = bool(status.get("started"))
        newest = one.handle.containers(self.name)[-1:]
        self._runs = any(each.state == "RUNNING" for each in newest)
        inits: list[Json] = one.manifest["spec"].get("initContainers") or []
        self._is_init = any(each["name"] == self.name for each in inits)
        every: list[Json] = [*inits, *one.manifest["spec"]["containers"]]
        hooked = {each["name"] for each in every if "postStart" in (each.get("lifecycle") or {})}
        self._is_hooked = self.name in hooked
        self.is_sidecar = any(
            each["name"] == self.name and each.get("restartPolicy") == "Always" for each in inits
        )

    @property
    def may_be_starting(self) -> bool:
        """It runs, and nothing is told of that before its postStart hook is over."""
        return self._runs and self._kind != "running" and self._is_hooked

    @property
    def told(self) -> str:
        """Its state in words."""
        runs = (
            ""
            if self._runs == (self._kind == "running")
            else f", and {'runs' if self._runs else 'does not run'}"
        )
        return f"{self._kind} {self._reason}".strip() + runs

    @property
    def holds_up(self) -> bool:
        """An init container that has not succeeded yet, or runs again in another sandbox."""
        return self._kind != "terminated" or self._code != 0 or self._runs

    @property
    def is_down(self) -> bool:
        """It does not run, or has not started up."""
        return self._kind != "running" or not self._started

    def _is_told_as_done(self, policy: str) -> bool:
        """That it runs again in another sandbox need not be told.

        In a pod that does not always restart, what has ended well stays so at the API server (STATUS-10).
        """
        is_done = self._kind == "terminated" and self._code == 0
        return is_done and self._is_init and not self.is_sidecar and policy != "Always"

    def keeps_its_end(self, policy: str) -> bool:
        """It runs again, which cannot be told."""
        return self._runs and self._is_told_as_done(policy)

    def is_at_rest(self, policy: str, *, initializing: bool, ended_waits: bool) -> bool:
        """Whether it may stay as it is; with `ended_waits` so may what ended and sits out its back-off."""
        if self._runs != (self._kind == "running"):
            return self.keeps_its_end(policy)
        if self._kind == "running":
            return True
        if self._kind == "waiting":
            while_initializing = {"PodInitializing"} if self._is_init else _WAITING_FOR_INITS
            return self._reason in _BACKING_OFF or (initializing and self._reason in while_initializing)
        if self.is_sidecar and (policy == "Never" or (policy == "OnFailure" and self._code == 0)):
            return (
                True  # That it waits is not told where by the pod's policy it would not run again (CSTAT-04).
            )
        if self._code == 0 and (self._is_init or policy != "Always"):
            return True
        # What ended beside a sidecar that is down waits until that was started again.
        return policy == "Never" or initializing or ended_waits
