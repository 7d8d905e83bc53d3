"""A pod of a scenario: its state, the actions on it, and the waits for it."""

from collections.abc import Callable, Mapping
from typing import Any, Unpack

from kubelet_conformance.node.observations import SeenCall, SeenEvent
from kubelet_conformance.node.observer import Limits, Observer
from kubelet_conformance.targets.controls import RuntimeContainer, RuntimeSandbox

Json = dict[str, Any]
_STATUSES = ("initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses")


class NotThereError(AssertionError):
    """The runtime does not have the sandbox or container that an action is about."""


class PodHandle:
    """One desired pod. Every `until_...` waits at most `within` seconds and says what it waited for."""

    def __init__(self, observer: Observer, namespace: str, name: str, source: str, uid: str = "") -> None:
        self._observer = observer
        self._target = observer.target
        self._observations = observer.observations
        self.namespace = namespace
        self.name = name
        self.source = source
        self._uid = uid

    # State.

    @property
    def uid(self) -> str:
        """Its UID; that of a static pod is known from its first sandbox on, and empty before."""
        if not self._uid:
            for call in reversed(self._observations.of("RunPodSandbox")):
                metadata = call.request.config.metadata
                if (metadata.name, metadata.namespace) == (self.name, self.namespace):
                    return call.pod_uid
        return self._uid

    @property
    def status(self) -> Json:
        """The status that was last written; empty before the first."""
        found = self._target.api.get(self.namespace, self.name)
        if found is not None and (self.source != "api" or found["metadata"]["uid"] == self.uid):
            return dict(found.get("status", {}))
        return self._observations.statuses.get(self.uid, {})

    @property
    def phase(self) -> str:
        """The phase that was last written."""
        return str(self.status.get("phase", ""))

    def condition(self, kind: str) -> Json:
        """One condition as last written; empty if it is not there."""
        conditions: list[Json] = self.status.get("conditions", [])
        return next((each for each in conditions if each["type"] == kind), Json())

    def container_status(self, name: str) -> Json:
        """The status of one container of any kind as last written; empty if it is not there."""
        return next((each for each in self._container_statuses() if each["name"] == name), Json())

    def _container_statuses(self) -> list[Json]:
        status = self.status
        return [each for field in _STATUSES for each in status.get(field) or ()]

    def state(self, name: str) -> str:
        """A container's state as last written: `waiting`, `running`, `terminated`, or empty."""
        return next(iter(self.container_status(name).get("state", {})), "")

    def waiting_reason(self, name: str) -> str:
        """Why a container waits, as last written; empty if it does not."""
        return str(self.container_status(name).get("state", {}).get("waiting", {}).get("reason", ""))

    def sandboxes(self) -> list[RuntimeSandbox]:
        """Its sandboxes in the runtime, oldest first."""
        uid = self.uid
        return [s for s in self._target.runtime.sandboxes() if s.pod_uid == uid]

    def sandbox(self) -> RuntimeSandbox:
        """Its newest sandbox; `NotThereError` if it has none."""
        found = self.sandboxes()
        if not found:
            raise NotThereError(f"pod {self.name} has no sandbox in the runtime")
        return found[-1]

    def containers(self, name: str | None = None) -> list[RuntimeContainer]:
        """Its containers in the runtime, oldest first."""
        uid, every = self.uid, self._target.runtime.containers()
        return [c for c in every if c.sandbox.pod_uid == uid and name in (None, c.name)]

    def container(self, name: str = "c1") -> RuntimeContainer:
        """The newest instance of a container; `NotThereError` if there is none."""
        found = self.containers(name)
        if not found:
            raise NotThereError(f"pod {self.name} has no container {name} in the runtime")
        return found[-1]

    def calls(self, rpc: str, container: str | None = None) -> list[SeenCall]:
        """The calls of one rpc about this pod, in order."""
        uid = self.uid
        return [
            c for c in self._observations.of(rpc) if c.pod_uid == uid and container in (None, c.container)
        ]

    def events(self, reason: str) -> list[SeenEvent]:
        """The events about this pod with that reason, in order."""
        uid = self.uid
        return [each for each in self._observations.events if each.uid == uid and each.reason == reason]

    # Actions.

    def exit(self, container: str = "c1", code: int = 0) -> None:
        """The process of its container ends by itself; `NotThereError` if none runs."""
        newest = self.container(container)
        if newest.state != "RUNNING":
            raise NotThereError(f"container {container} of pod {self.name} is {newest.state}, not RUNNING")
        self._target.runtime.exit(newest.id, code)

    def delete(self, grace: int | None = None) -> None:
        """Ask for its deletion; `grace` in seconds, 0 forces it, None leaves it to the pod."""
        self._target.api.delete(self.namespace, self.name, grace)

    def update(self, **changes: Any) -> None:  # noqa: ANN401 - parts of a manifest
        """Change its `metadata` or `spec`; containers are merged by name."""
        self._target.api.update(self.namespace, self.name, changes)

    def set_image(self, container: str, image: str) -> None:
        """Change the image of a container."""
        self.update(spec={"containers": [{"name": container, "image": image}]})

    def annotate(self, annotations: Mapping[str, str]) -> None:
        """Set annotations."""
        self.update(metadata={"annotations": dict(annotations)})

    def resize(self, **sizes: Json) -> None:
        """Change the resources of containers, by name: their `requests` and `limits`, as far as named."""
        self._target.api.resize(self.namespace, self.name, sizes)

    def debug(self, container: Json) -> None:
        """Add an ephemeral container."""
        self._target.api.add_ephemeral(self.namespace, self.name, container)

    def use(self, **amounts: str) -> None:
        """Let it use so much: `memory="1Gi"`, `ephemeral_storage=`, `volume_NAME=`, `container_NAME=`."""
        self._target.machine.use(self.uid, {_resource(name): text for name, text in amounts.items()})

    # Waits.

    async def until(self, holds: Callable[[], bool], awaited: str, **limits: Unpack[Limits]) -> None:
        """Wait for anything about this pod."""
        await self._observer.until(
            holds, f"pod {self.name}: {awaited}", last_seen=self._status_line, **limits
        )

    def _status_line(self) -> str:
        """Its status in one line."""
        names = [each["name"] for each in self._container_statuses()]
        states = [f"{name} {self.state(name)} {self.waiting_reason(name)}".rstrip() for name in names]
        there = [f"{each.name}#{each.attempt} {each.state}" for each in self.containers()]
        at_runtime = f"the runtime has {', '.join(there) or 'no container of it'}"
        return f"phase {self.phase or 'none'}; {', '.join(states) or 'no container statuses'}; {at_runtime}"

    async def until_phase(self, phase: str, **limits: Unpack[Limits]) -> None:
        """Wait for a phase."""
        await self.until(lambda: self.phase == phase, f"phase {phase}", **limits)

    async def until_running(
        self, *names: str, attempt: int | None = None, or_ended: bool = False, **limits: Unpack[Limits]
    ) -> None:
        """Wait until these containers (all if none is named) run, by status and in the runtime.

        With `or_ended` one that has ended will do: a busy kubelet may see only the end of a short life.
        """

        def is_meant(number: int) -> bool:
            # A fault at any call may have made it a later one.
            return number == attempt or (self._target.is_disturbed and number > (attempt or 0))

        def runs(name: str) -> bool:
            shown = self.container_status(name).get("containerID", "")
            return self.state(name) == "running" and any(
                c.state == "RUNNING" and (attempt is None or (is_meant(c.attempt) and shown.endswith(c.id)))
                for c in self.containers(name)[-1:]
            )

        def is_up(name: str) -> bool:
            return runs(name) or (or_ended and self._has_ended(name))

        which = f"{', '.join(names) or 'all containers'} running"
        shown = which if attempt is None else f"{which} at attempt {attempt}"
        await self.until(lambda: all(is_up(name) for name in names or self._app_names()), shown, **limits)

    def _app_names(self) -> list[str]:
        return [status["name"] for status in self.status.get("containerStatuses") or ()] or [""]

    async def until_started(self, name: str = "c1", *, attempt: int = 0, **limits: Unpack[Limits]) -> None:
        """Wait until an instance of a container was started at the runtime, whatever the status says."""

        def started() -> bool:
            every = [c for c in self.containers(name) if c.attempt >= attempt]
            if self._target.is_disturbed and any(c.state in {"RUNNING", "EXITED"} for c in every):
                return True  # Its start took place, though it may not have been answered.
            ids = {c.id for c in every}
            return any(c.done and c.container_id in ids for c in self.calls("StartContainer", name))

        await self.until(started, f"{name} started at attempt {attempt}", **limits)

    async def until_waiting(self, name: str, reason: str, **limits: Unpack[Limits]) -> None:
        """Wait until a container waits for that reason, for the judge of START-02 unless another is named."""
        limits = {"contract": "START-02", **limits}
        await self.until(
            lambda: self.waiting_reason(name) == reason, f"{name} waiting with {reason}", **limits
        )

    async def until_held_back(self, name: str = "c1", **limits: Unpack[Limits]) -> None:
        """Wait until a container that has ended again waits for its back-off.

        Where statuses are polled its end is enough: kubelets from 1.35 on show the reason for moments only.
        """
        polled = self._target.recheck_seconds is not None

        def waits() -> bool:
            has_ended = self.state(name) == "terminated" and self.container_status(name)["restartCount"] > 0
            return self.waiting_reason(name) == "CrashLoopBackOff" or (polled and has_ended)

        await self.until(waits, f"{name} waiting with CrashLoopBackOff", **limits)

    async def until_terminated(self, name: str = "c1", **limits: Unpack[Limits]) -> None:
        """Wait until a container's status says terminated."""
        await self.until(lambda: self.state(name) == "terminated", f"{name} terminated", **limits)

    async def until_ended(self, name: str = "c1", **limits: Unpack[Limits]) -> None:
        """Wait until the newest instance of a container has ended, whatever the status says."""
        await self.until(lambda: self._has_ended(name), f"{name} ended", **limits)

    def _has_ended(self, name: str) -> bool:
        return any(one.state == "EXITED" for one in self.containers(name)[-1:])

    async def until_condition(self, kind: str, *, status: str = "True", **limits: Unpack[Limits]) -> None:
        """Wait until a condition has that status."""
        await self.until(
            lambda: self.condition(kind).get("status") == status, f"condition {kind} {status}", **limits
        )

    async def until_called(
        self,
        rpc: str,
        container: str | None = None,
        *,
        count: int = 1,
        done: bool = True,
        **limits: Unpack[Limits],
    ) -> None:
        """Wait until a call about this pod was made `count` times, and answered if `done`."""

        def made() -> bool:
            calls = self.calls(rpc, container)
            answered = done and not self._target.is_disturbed
            return len([c for c in calls if not answered or c.reply_at is not None]) >= count

        what = f"{rpc} {f'of {container} ' if container else ''}x{count}"
        await self.until(made, what, **limits)

    async def until_event(self, reason: str, *, count: int = 1, **limits: Unpack[Limits]) -> None:
        """Wait for an event, for the judge of EVENTS-01 unless another is named."""
        limits = {"contract": "EVENTS-01", **limits}
        await self.until(lambda: len(self.events(reason)) >= count, f"event {reason} x{count}", **limits)

    async def until_stopped(self, **limits: Unpack[Limits]) -> None:
        """Wait until nothing of it runs: no container and no ready sandbox."""
        await self.until(
            lambda: (
                not any(c.state == "RUNNING" for c in self.containers())
                and not any(s.ready for s in self.sandboxes())
            ),
            "nothing of it runs",
            **limits,
        )

    async def until_gone(self, **limits: Unpack[Limits]) -> None:
        """Wait until its object is deleted for good (a static pod: until nothing of it runs)."""
        if self.source != "api":
            await self.until_stopped(**limits)
            return
        await self.until(lambda: self.uid in self._observations.deleted, "deleted", **limits)


def _resource(keyword: str) -> str:
    """The name of what a pod uses: `volume_data` is `volume data`, `ephemeral_storage` has a hyphen."""
    kind, _, name = keyword.partition("_")
    return f"{kind} {name}" if kind in {"volume", "container"} else keyword.replace("_", "-")
