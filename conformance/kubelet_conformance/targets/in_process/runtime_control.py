"""What scenarios do to the fake runtime."""

from cri_api.v1 import api_pb2 as cri

from kubelet_conformance.targets.controls import (
    ActiveCallFault,
    Fault,
    NotPossibleError,
    RuntimeContainer,
    RuntimeSandbox,
)
from kubelet_conformance.targets.in_process.disk_recorder import RecordedCgroups
from kubelet_conformance.targets.in_process.pod_servers import PodServers
from kubelet_conformance.trace.format.recorder import Recorder
from kubelet_fakes.runtime import FakeRuntime
from kubelet_fakes.runtime.records import Container, Sandbox


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
        self._core = runtime.core
        self._recorder = recorder
        runtime.core.store.on_runtime = self._record_event
        events, images = runtime.core.store.events, runtime.core.images
        events.on_event_fault = self._record_event_fault
        self.exit, self.oom, self.lose_track = runtime.exit, runtime.oom, runtime.lose_track
        self.kill_sandbox = runtime.kill_sandbox
        self.remove_container, self.remove_sandbox = runtime.remove_container, runtime.remove_sandbox
        self.restart, self.reboot = runtime.restart, runtime.reboot
        self.set_conditions = runtime.set_conditions
        self.lose_events, self.delay_events, self.reverse_events = events.lose, events.delay, events.reverse
        self.answer_http, self.headers = servers.answer_http, servers.headers
        self.open_port, self.report_health = servers.open_port, servers.report_health
        self.protect_image, self.publish_image = images.protect, images.publish

    def _record_event(self, op: str, container_id: str, sandbox_id: str, name: str, code: int | None) -> None:
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

    def set_address(self, address: str | None) -> None:
        """What sandboxes run from now on get as their address."""
        self._core.store.addresses.given = address

    def _record_event_fault(self, how: str, uid: str, seconds: float) -> None:
        """Record that an event is not sent as it happens."""
        values = {"seconds": f"{seconds:g}"} if seconds else {}
        self._recorder.record("fault", what=f"a container event is {how}", uid=uid, values=values or None)

    def cut_events(self) -> None:
        """The stream breaks."""
        self._recorder.record("fault", what="the stream of container events is cut")
        self._runtime.cut_events()

    def set_file(self, name: str, *, there: bool) -> None:
        """What an `xf NAME` command finds."""
        (self._core.files.add if there else self._core.files.discard)(name)

    def add_image(self, name: str, *, user: str = "") -> None:
        """Put an image onto the node."""
        self._core.images.add(name, user=user)

    def remove_image(self, name: str) -> None:
        """Take an image off the node."""
        self._core.images.remove_image(cri.RemoveImageRequest(image=cri.ImageSpec(image=name)))

    def remove_cgroup(self, uid: str) -> None:
        """A pod's cgroup vanishes."""
        if self._cgroups is None:
            raise NotPossibleError("pods with cgroups of their own")
        self._cgroups.remove(uid)

    def inject(self, fault: Fault) -> ActiveCallFault:
        """Let calls, probes or hooks fail or be late from now on."""
        return self._runtime.faults.add(fault)


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
