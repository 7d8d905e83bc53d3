"""What scenarios do to the fake runtime."""

from __future__ import annotations

from cri_api.v1 import api_pb2 as cri

from kubelet_conformance.targets.pod_cgroups import RecordedCgroups
from kubelet_conformance.targets.pod_servers import PodServers
from kubelet_conformance.targets.protocols import (
    Fault,
    FaultPlan,
    NotPossibleError,
    RuntimeContainer,
    RuntimeSandbox,
)
from kubelet_conformance.trace.recorder import Recorder
from kubelet_fakes.runtime import FakeRuntime
from kubelet_fakes.runtime.faults import Effect, Subject
from kubelet_fakes.runtime.records import Container, Sandbox
from kubelet_reference.ports import HttpAnswer


class FakeRuntimeControl:
    """The fake runtime in a scenario's hands; what it does by itself goes onto the record."""

    def __init__(
        self,
        runtime: FakeRuntime,
        servers: PodServers,
        recorder: Recorder,
        cgroups: RecordedCgroups | None = None,
    ) -> None:
        self._cgroups = cgroups
        self._runtime = runtime
        self._servers = servers
        self._core = runtime.core
        self._recorder = recorder
        runtime.core.store.on_runtime = self._happened
        runtime.core.store.events.on_mishap = self._untold

    def _happened(self, op: str, container_id: str, sandbox_id: str, name: str, code: int | None) -> None:
        self._recorder.record(
            "runtime",
            op=op,
            container_id=container_id or None,
            sandbox_id=sandbox_id or None,
            name=name or None,
            exit_code=code,
        )

    def sandboxes(self) -> list[RuntimeSandbox]:
        """All records, oldest first."""
        return [_sandbox(each) for each in self._core.store.sandboxes.values()]

    def containers(self) -> list[RuntimeContainer]:
        """All records, oldest first."""
        return [_container(each) for each in self._core.store.containers.values()]

    def exit(self, container_id: str, code: int) -> None:
        """Its process ends by itself."""
        self._runtime.exit(container_id, code)

    def oom(self, container_id: str, code: int = 137) -> None:
        """A process of it is killed for lack of memory, and it ends with `code`."""
        self._runtime.oom(container_id, code)

    def lose_track(self, container_id: str) -> None:
        """Its state becomes UNKNOWN."""
        self._runtime.lose_track(container_id)

    def kill_sandbox(self, sandbox_id: str) -> None:
        """The sandbox becomes NOTREADY; containers go on."""
        self._runtime.kill_sandbox(sandbox_id)

    def remove_container(self, container_id: str) -> None:
        """Its record vanishes."""
        self._runtime.remove_container(container_id)

    def remove_sandbox(self, sandbox_id: str) -> None:
        """Its record and those of its containers vanish."""
        self._runtime.remove_sandbox(sandbox_id)

    def restart(self, *, lose_state: bool = False) -> None:
        """The runtime goes down and comes up at once."""
        self._runtime.restart(lose_state=lose_state)

    def reboot(self) -> None:
        """The node went down and up: nothing runs, all records remain."""
        self._runtime.reboot()

    def set_conditions(self, *, runtime_ready: bool = True, network_ready: bool = True) -> None:
        """What Status answers from now on."""
        self._runtime.set_conditions(runtime_ready=runtime_ready, network_ready=network_ready)

    def set_address(self, address: str | None) -> None:
        """What sandboxes run from now on get as their address."""
        self._core.store.addresses.given = address

    def _untold(self, how: str, uid: str, seconds: float) -> None:
        """An event is not told as it happens."""
        values = {"seconds": f"{seconds:g}"} if seconds else {}
        self._recorder.record("fault", what=f"a container event is {how}", uid=uid, values=values or None)

    def lose_events(self, count: int) -> None:
        """Nobody is told of the next `count` events."""
        self._core.store.events.lose(count)

    def delay_events(self, count: int, seconds: float) -> None:
        """The next `count` events are told so much later."""
        self._core.store.events.delay(count, seconds)

    def reverse_events(self, count: int) -> None:
        """The next `count` events are told in reverse order."""
        self._core.store.events.reverse(count)

    def cut_events(self) -> None:
        """The stream breaks."""
        self._recorder.record("fault", what="the stream of container events is cut")
        self._runtime.cut_events()

    def set_file(self, name: str, *, there: bool) -> None:
        """What an `xf NAME` command finds."""
        (self._core.files.add if there else self._core.files.discard)(name)

    def answer_http(  # noqa: PLR0913 - each is a side of an answer
        self,
        path: str,
        status: int,
        *,
        location: str = "",
        delay: float = 0,
        body: str = "",
        plain: bool = False,
    ) -> None:
        """What servers in pods answer at this path."""
        self._servers.answer(path, HttpAnswer(status, location, body), delay, plain=plain)

    def open_port(self, port: int, *, is_open: bool) -> None:
        """Whether servers in pods take TCP connections at this port."""
        self._servers.open_port(port, is_open=is_open)

    def report_health(self, service: str, status: str) -> None:
        """What servers in pods answer to health checks of this service."""
        self._servers.report_health(service, status)

    def add_image(self, name: str, *, user: str = "") -> None:
        """Put an image onto the node."""
        self._core.images.add(name, user=user)

    def remove_image(self, name: str) -> None:
        """Take an image off the node."""
        self._core.images.remove_image(cri.RemoveImageRequest(image=cri.ImageSpec(image=name)))

    def protect_image(self, name: str, username: str, password: str) -> None:
        """Let the registry give it only to this user."""
        self._core.images.protect(name, username, password)

    def publish_image(self, name: str, *, there: bool = True) -> None:
        """Whether the registry has it."""
        self._core.images.publish(name, there=there)

    def remove_cgroup(self, uid: str) -> None:
        """A pod's cgroup vanishes."""
        if self._cgroups is None:
            raise NotPossibleError("pods with cgroups of their own")
        self._cgroups.remove(uid)

    def inject(self, plan: FaultPlan) -> Fault:
        """Let calls fail or be late from now on."""
        return self._runtime.faults.add(
            plan.rpc,
            Effect(plan.effect),
            code=plan.code,
            message=plan.message,
            delay=plan.delay_seconds,
            times=plan.times,
            where=lambda about: _is_about(about, plan),
        )


def _is_about(subject: Subject, plan: FaultPlan) -> bool:
    return plan.pod in {None, subject.pod_uid} and plan.container in {None, subject.container}


def _sandbox(sandbox: Sandbox) -> RuntimeSandbox:
    metadata = sandbox.config.metadata
    return RuntimeSandbox(
        sandbox.id, metadata.uid, metadata.name, metadata.namespace, metadata.attempt, sandbox.ready
    )


def _container(container: Container) -> RuntimeContainer:
    return RuntimeContainer(
        container.id,
        container.name,
        container.attempt,
        container.state_name.removeprefix("CONTAINER_"),
        _sandbox(container.sandbox),
    )
