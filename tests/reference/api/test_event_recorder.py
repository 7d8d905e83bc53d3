"""Events about pods."""

import msgspec
from lightkube.models.core_v1 import Pod

from kubelet_reference.api.events import Reason, Recorder
from kubelet_reference.util.ports import PodEvent

POD = msgspec.convert(
    {
        "metadata": {"name": "a", "namespace": "default", "uid": "u"},
        "spec": {
            "initContainers": [{"name": "setup", "image": "img:1"}],
            "containers": [{"name": "web", "image": "img:1"}],
        },
    },
    Pod,
)


class Sink:
    """Keeps the events."""

    def __init__(self) -> None:
        self.events: list[PodEvent] = []

    def emit(self, event: PodEvent) -> None:
        """Take the event."""
        self.events.append(event)


def test_an_event_names_pod_type_reason_and_message() -> None:
    """Normal and Warning events reach the sink as they were recorded, about the pod itself."""
    sink = Sink()
    recorder = Recorder(sink)
    recorder.normal(POD, Reason.SANDBOX_CHANGED, "new")
    recorder.warning(POD, Reason.FAILED_SYNC, "old")

    assert sink.events == [
        PodEvent(POD, "Normal", "SandboxChanged", "new"),
        PodEvent(POD, "Warning", "FailedSync", "old"),
    ]


def test_an_event_about_a_container_refers_to_it() -> None:
    """The reference says in which list the container stands (EVENTS-02)."""
    sink = Sink()
    recorder = Recorder(sink)
    recorder.normal(POD, Reason.CREATED, "", "web")
    recorder.normal(POD, Reason.CREATED, "", "setup")

    assert [event.field_path for event in sink.events] == [
        "spec.containers{web}",
        "spec.initContainers{setup}",
    ]


def test_ids_become_names() -> None:
    """A message that speaks of an instance speaks of the container, so that repetitions merge (EVENTS-03)."""
    sink = Sink()
    Recorder(sink).warning(POD, Reason.FAILED, "no task 1f0c in 1f0c", "web", container_id="1f0c")

    assert sink.events[0].message == "no task web in web"
