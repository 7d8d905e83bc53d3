"""Events about pods: their reasons, and the recorder that gives them their final form."""

from enum import StrEnum

from lightkube.models.core_v1 import Pod
from lightkube.models.meta_v1 import ObjectMeta

from kubelet_reference.api.pods import field_path
from kubelet_reference.util.ports import EventSink, PodEvent

NORMAL = "Normal"
WARNING = "Warning"


class Reason(StrEnum):
    """Why an event is recorded, in the kubelet's words (EVENTS-01)."""

    # Images
    PULLING = "Pulling"
    PULLED = "Pulled"
    INSPECT_FAILED = "InspectFailed"
    NEVER_PULL = "ErrImageNeverPull"
    # Containers
    CREATED = "Created"
    STARTED = "Started"
    KILLING = "Killing"
    FAILED = "Failed"
    BACK_OFF = "BackOff"
    UNHEALTHY = "Unhealthy"
    PROBE_WARNING = "ProbeWarning"
    FAILED_POST_START_HOOK = "FailedPostStartHook"
    FAILED_PRE_STOP_HOOK = "FailedPreStopHook"
    # Sandboxes
    SANDBOX_CHANGED = "SandboxChanged"
    FAILED_CREATE_POD_SANDBOX = "FailedCreatePodSandBox"
    FAILED_POD_SANDBOX_STATUS = "FailedPodSandBoxStatus"
    # Pods
    DEADLINE_EXCEEDED = "DeadlineExceeded"
    EVICTED = "Evicted"
    EXCEEDED_GRACE_PERIOD = "ExceededGracePeriod"
    FAILED_KILL_POD = "FailedKillPod"
    FAILED_MOUNT = "FailedMount"
    FAILED_PREPARE_DYNAMIC_RESOURCES = "FailedPrepareDynamicResources"
    FAILED_SYNC = "FailedSync"
    FAILED_VALIDATION = "FailedValidation"
    NETWORK_NOT_READY = "NetworkNotReady"
    PREEMPTING = "Preempting"
    # The node
    CONTAINER_GC_FAILED = "ContainerGCFailed"


class Recorder:
    """Passes events to the sink, which may merge or drop them; nothing else depends on it (EVENTS-05)."""

    def __init__(self, sink: EventSink) -> None:
        self._sink = sink

    def normal(
        self, pod: Pod, reason: str, message: str, container: str = "", *, container_id: str = ""
    ) -> None:
        """Record that something went as it should.

        `container` names the pod's container that the event is about (none: the pod itself), `container_id`
        the instance that the message may speak of.
        """
        self._record(NORMAL, pod, reason, self._aggregatable(message, container, container_id), container)

    def warning(
        self, pod: Pod, reason: str, message: str, container: str = "", *, container_id: str = ""
    ) -> None:
        """Record that something went wrong; the arguments are those of `normal`."""
        self._record(WARNING, pod, reason, self._aggregatable(message, container, container_id), container)

    def of_node(self, name: str, kind: str, reason: str, message: str) -> None:
        """Record an event about the node itself, whose name is its UID here."""
        node = Pod(metadata=ObjectMeta(name=name, uid=name))
        self._sink.emit(PodEvent(node, kind, reason, message))

    def _aggregatable(self, message: str, container: str, container_id: str) -> str:
        """The message with the container's name in place of its id, so that repetitions merge (EVENTS-03)."""
        return message.replace(container_id, container) if container_id and container else message

    def _reference(self, pod: Pod, container: str) -> str:
        """Which part of the pod the event is about, such as `spec.containers{web}` (EVENTS-02)."""
        return field_path(pod, container) if container else ""

    def _record(self, kind: str, pod: Pod, reason: str, message: str, container: str) -> None:
        # The pod is the one that was synced: a static pod's events carry its own UID (EVENTS-07).
        self._sink.emit(PodEvent(pod, kind, reason, message, self._reference(pod, container)))
