"""Whether a node converges: every desired pod is in its final or running state, and nothing else is there.

A container that ends by itself is at rest while it waits to be started again: back-off goes on for as long
as the pod does.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, Protocol

from kubelet_conformance.node import Node, PodHandle
from kubelet_conformance.targets.controls import RuntimeContainer, RuntimeSandbox

Json = dict[str, Any]
_FINAL = frozenset({"Succeeded", "Failed"})
_BACKING_OFF = frozenset(
    {"CrashLoopBackOff", "ImagePullBackOff", "ErrImageNeverPull", "PostStartHookError", "RunContainerError"}
)
_WAITING_FOR_INITS = frozenset(
    {"PodInitializing", "CreateContainerError", "ErrImagePull", "ImageInspectError"}
)
"""Failures of a container are reported until it is made, though init containers must run again before it."""
_STAY_SECONDS = 20.0
"""For how long at most something that ends and begins again may be between two states; what is killed because
its postStart hook fails has its grace besides.
"""
_MIRROR = "kubernetes.io/config.mirror"
_LOOKED_AFTER_SINCE = 1, 27
"""Up to 1.26 a kill of a pod that its source has lost is not repeated if put off or failed (WORK-27)."""
_WAITS_OUT_SINCE = 1, 35
"""From here on a pod is looked at again when a back-off is over, and not before to report that it waits."""


class DesiredPod(Protocol):
    """A name under which pods are created, one after another, and the latest of these."""

    @property
    def name(self) -> str:
        """What it is called in words."""
        ...

    @property
    def manifest(self) -> Json:
        """The manifest of the latest pod."""
        ...

    @property
    def static(self) -> bool:
        """It does not come from the API server."""
        ...

    @property
    def there(self) -> bool:
        """The pod is desired: its deletion has not been asked for since."""
        ...

    @property
    def handle(self) -> PodHandle:
        """The latest pod."""
        ...


class Convergence:
    """Whether a node comes to rest on which these pods are desired, with a kubelet of that version.

    `missed` says that container events may have been lost or late. Static pods have `mirrors` unless there is
    no API server.
    """

    def __init__(
        self,
        node: Node,
        wanted: Sequence[DesiredPod],
        kubernetes: tuple[int, int],
        *,
        missed: bool = False,
        mirrors: bool = True,
    ) -> None:
        self._node = node
        self._wanted = wanted
        self._kubernetes = kubernetes
        self._missed = missed
        self._mirrors = mirrors

    async def comes(self, within: float) -> Sequence[str]:
        """Wait until all has come to rest; what has not."""
        if await self._node.reaches(lambda: not self.found(starting=True), within):
            return ()
        return self.found(starting=True)

    async def stays(self) -> Sequence[str]:
        """Look again for a while; what has not been at rest at any moment, or not done with its start."""
        left = await self._never_at_rest(_STAY_SECONDS, starting=True)
        if left:
            return left
        specs = (one.manifest["spec"] for one in self._wanted)
        grace = max((spec.get("terminationGracePeriodSeconds") or 0 for spec in specs), default=0)
        return await self._never_at_rest(_STAY_SECONDS + grace, starting=False)

    async def _never_at_rest(self, within: float, *, starting: bool) -> Sequence[str]:
        """What is at rest at no moment of these seconds.

        Of several that end and begin again each has its moment, and there may be none for all of them.
        """

        def found() -> dict[str, str]:
            return {whom(one): one for one in self.found(starting=starting)}

        left = found()

        def was_at_rest() -> bool:
            nonlocal left
            left = {each: one for each, one in found().items() if each in left}
            return not left

        await self._node.reaches(was_at_rest, within)
        return tuple(left.values())

    def found(self, *, starting: bool) -> list[str]:
        """What has not come to rest, in words; nothing, if all has.

        With `starting`, what has a postStart hook may run unreported: no start is reported before its hook
        has succeeded, or it was killed because that failed.
        """
        return list(self._not_converged(starting=starting))

    def _not_converged(self, *, starting: bool) -> Iterator[str]:
        runtime = _Runtime(self._node)
        pods = [_PodState(self._node, one, runtime, self._kubernetes) for one in self._wanted]
        waits_out = self._kubernetes >= _WAITS_OUT_SINCE
        for pod in pods:
            if pod.is_left:
                continue
            if pod.one.there:
                yield from _of_wanted(pod, missed=self._missed, starting=starting, ended_waits=waits_out)
                if self._mirrors:
                    yield from _of_mirror(pod)
            elif pod.stored is not None:
                yield f"{pod.one.name} was deleted and is still at the API server"
        there = {pod.uid for pod in pods if pod.one.there or pod.is_left}
        for container in runtime.every_container:
            if container.state == "RUNNING" and container.sandbox.pod_uid not in there:
                yield f"{container.name} of {container.sandbox.pod_name} runs, and that pod is not desired"
        for sandbox in runtime.every_sandbox:
            if sandbox.ready and sandbox.pod_uid not in there:
                yield f"sandbox {sandbox.attempt} of {sandbox.pod_name} is ready, and that pod is not desired"


def whom(complaint: str) -> str:
    """Whom it is about, however it has not come to rest."""
    return complaint.partition(" is ")[0]


class _PodState:
    """A desired pod at one look, taken after each record: the runtime and the API server are asked seldom."""

    def __init__(self, node: Node, one: DesiredPod, runtime: _Runtime, kubernetes: tuple[int, int]) -> None:
        self._node = node
        self.one = one
        self.uid = one.handle.uid
        self.containers = runtime.containers.get(self.uid, ())
        self.sandboxes = runtime.sandboxes.get(self.uid, ())
        self.is_left = kubernetes < _LOOKED_AFTER_SINCE and self._is_left_to_itself()

    @cached_property
    def stored(self) -> Json | None:
        """What the API server has under its name."""
        return self._node.api.get(self.one.handle.namespace, self.one.handle.name)

    @cached_property
    def status(self) -> Json:
        """The status that was last written."""
        return self.one.handle.status

    @property
    def phase(self) -> str:
        """The phase in that."""
        phase: str = self.status.get("phase", "")
        return phase

    @property
    def runs(self) -> bool:
        """Something of it runs."""
        return any(each.state == "RUNNING" for each in self.containers)

    @property
    def is_ready(self) -> bool:
        """It has a ready sandbox."""
        return any(each.ready for each in self.sandboxes)

    def _is_left_to_itself(self) -> bool:
        """Its source has lost it, or it waits until the version before it has gone: it may be left alone."""
        if not self.one.there:
            return self.one.static or self.stored is None
        return self.one.static and not self.is_ready


class _Runtime:
    """What the runtime has at one look: all of it, and by the UIDs of pods."""

    def __init__(self, node: Node) -> None:
        self.containers: dict[str, list[RuntimeContainer]] = {}
        self.sandboxes: dict[str, list[RuntimeSandbox]] = {}
        self.every_container = node.runtime.containers()
        self.every_sandbox = node.runtime.sandboxes()
        for container in self.every_container:
            self.containers.setdefault(container.sandbox.pod_uid, []).append(container)
        for sandbox in self.every_sandbox:
            self.sandboxes.setdefault(sandbox.pod_uid, []).append(sandbox)


def _of_wanted(pod: _PodState, *, missed: bool, starting: bool, ended_waits: bool) -> Iterator[str]:
    name, phase = pod.one.name, pod.phase
    if phase in _FINAL:
        if pod.runs:
            yield f"{name} is {phase} and something of it runs"
        # A sandbox that was not reported when the pod was killed stays: only containers are looked for then.
        if not missed and pod.is_ready:
            yield f"{name} is {phase} and has a ready sandbox"
        return
    if pod.one.static and not phase and _has_had_its_run(pod):
        return
    if phase not in {"Pending", "Running"}:
        yield f"{name} has {f'phase {phase}' if phase else 'no status'}"
        return
    policy = pod.one.manifest["spec"]["restartPolicy"]
    if policy == "Never" and pod.sandboxes and not pod.is_ready:
        yield from _of_cut_off(pod)
        return
    yield from _of_containers(pod, policy, starting=starting, ended_waits=ended_waits)


def _of_containers(pod: _PodState, policy: str, *, starting: bool, ended_waits: bool) -> Iterator[str]:
    kinds, newest = _Kinds(pod.one.manifest["spec"]), {each.name: each for each in pod.containers}
    inits, apps = (
        [_Container(each, kinds, newest.get(each["name"])) for each in pod.status.get(field) or ()]
        for field in ("initContainerStatuses", "containerStatuses")
    )
    if not apps:
        yield f"{pod.one.name} is {pod.phase} and has no container statuses"
    initializing = any(not each.is_sidecar and each.holds_up for each in inits) or any(
        each.is_sidecar and each.is_down for each in inits
    )
    if any(each.keeps_its_end(policy) for each in inits):
        return  # The status does not show anything as long as that runs.
    held_up = False
    for number, each in enumerate((*inits, *apps)):
        each.waits_for_another = held_up or (initializing and not each.is_init)
        held_up = held_up or (each.is_init and not each.is_sidecar and each.holds_up)
        if (starting and each.may_be_starting) or each.is_past((*inits, *apps)[number + 1 :]):
            continue
        if not each.is_at_rest(policy, initializing=initializing, ended_waits=ended_waits):
            yield f"{each.name} of {pod.one.name} is {each.state_text}"


def _of_cut_off(pod: _PodState) -> Iterator[str]:
    """A pod of policy Never that lost its sandbox: what it has not run by then it never will (SANDBOX-06).

    So it stays Pending or Running where a container has never ended, and ends where all have (PHASE-07).
    """
    if pod.runs:
        yield f"{pod.one.name} has lost its sandbox and something of it runs"
    apps = pod.status.get("containerStatuses") or ()
    if apps and all("terminated" in each["state"] for each in apps):
        yield f"{pod.one.name} has lost its sandbox, all of it has ended, and it is {pod.phase}"


def _has_had_its_run(pod: _PodState) -> bool:
    """A static pod that runs nothing and never will again: its worker is done, no mirror kept (STATIC-12)."""
    if pod.runs:
        return False
    spec = pod.one.manifest["spec"]
    return spec["restartPolicy"] != "Always" or "activeDeadlineSeconds" in spec


def _of_mirror(pod: _PodState) -> Iterator[str]:
    """A static pod that goes on is shown by a mirror of what its file holds (STATIC-11, STATIC-13)."""
    one = pod.one
    if not one.static or _has_had_its_run(pod):
        return
    mirror = pod.stored
    if mirror is None or "deletionTimestamp" in mirror["metadata"]:
        yield f"{one.name} has no mirror" if mirror is None else f"the mirror of {one.name} is to go"
        return
    if mirror["metadata"].get("annotations", {}).get(_MIRROR) != pod.uid:
        yield f"the mirror of {one.name} is of another version than its sandbox"
    images = [[each["image"] for each in held["spec"]["containers"]] for held in (mirror, one.manifest)]
    if images[0] != images[1]:
        yield f"the mirror of {one.name} is not of what its file holds"


class _Kinds:
    """Which of a pod's containers are of which kind, by name."""

    def __init__(self, spec: Json) -> None:
        inits: list[Json] = spec.get("initContainers") or []
        every: list[Json] = [*inits, *spec["containers"]]
        self.inits = {each["name"] for each in inits}
        self.sidecars = {each["name"] for each in inits if each.get("restartPolicy") == "Always"}
        self.hooked = {each["name"] for each in every if "postStart" in (each.get("lifecycle") or {})}


class _Container:
    """A container as its status shows it, and as the runtime has it."""

    def __init__(self, status: Json, kinds: _Kinds, newest: RuntimeContainer | None) -> None:
        self.name: str = status["name"]
        state: Json = status.get("state") or {}
        self._kind = next(iter(state), "waiting")
        detail: Json = state.get(self._kind) or {}
        self._reason: str = detail.get("reason", "")
        self._code: int = detail.get("exitCode", 0)
        self._started = bool(status.get("started"))
        self._runs = newest is not None and newest.state == "RUNNING"
        self.is_init = self.name in kinds.inits
        self._is_hooked = self.name in kinds.hooked
        self.is_sidecar = self.name in kinds.sidecars
        self.waits_for_another = False
        """An init container has to run before it."""

    @property
    def may_be_starting(self) -> bool:
        """It runs, and that is not reported before its postStart hook is over."""
        return self._runs and self._kind != "running" and self._is_hooked

    @property
    def state_text(self) -> str:
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

    def is_past(self, later: Sequence[_Container]) -> bool:
        """An init container that is not run again whatever its record says: a later one has run (INIT-05)."""
        is_init = self.is_init and not self.is_sidecar
        return is_init and not self._runs and any(not each.is_sidecar and each.has_run for each in later)

    @property
    def has_run(self) -> bool:
        """It runs, or has ended."""
        return self._kind in {"running", "terminated"}

    @property
    def is_down(self) -> bool:
        """It does not run, or has not started up."""
        return self._kind != "running" or not self._started

    def _is_reported_as_done(self, policy: str) -> bool:
        """That it runs again in another sandbox need not be reported.

        In a pod that does not always restart, what has ended well stays so at the API server (STATUS-10). An
        app container runs again where its record has gone.
        """
        is_done = self._kind == "terminated" and self._code == 0
        return is_done and not self.is_sidecar and policy != "Always"

    def keeps_its_end(self, policy: str) -> bool:
        """It runs again, which cannot be reported."""
        return self._runs and self._is_reported_as_done(policy)

    def is_at_rest(self, policy: str, *, initializing: bool, ended_waits: bool) -> bool:
        """Whether it may stay as it is; with `ended_waits` so may what ended and sits out its back-off."""
        if self._runs != (self._kind == "running"):
            return self.keeps_its_end(policy)
        if self._kind == "running":
            return True
        if self._kind == "waiting":
            while_initializing = _WAITING_FOR_INITS if self.waits_for_another else {"PodInitializing"}
            return self._reason in _BACKING_OFF or (initializing and self._reason in while_initializing)
        if self.is_sidecar and (policy == "Never" or (policy == "OnFailure" and self._code == 0)):
            # By the pod's policy it would not run again: then it is not reported as waiting (CSTAT-04).
            return True
        if self._code == 0 and (self.is_init or policy != "Always"):
            return True
        # What ended beside a sidecar that is down waits until that was started again.
        return policy == "Never" or initializing or ended_waits
