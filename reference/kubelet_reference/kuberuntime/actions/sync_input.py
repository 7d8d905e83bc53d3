"""The input of the decision of a sync, and a container that the decision says to stop."""

from collections.abc import Callable
from dataclasses import dataclass

import msgspec
from lightkube.models.core_v1 import Pod

from kubelet_reference.api.pods import AnyContainer
from kubelet_reference.api.records import ContainerRecord, PodRecords
from kubelet_reference.api.results import KillReason, ProbeOutcome
from kubelet_reference.kuberuntime.actions.sandbox_changed import SandboxChange
from kubelet_reference.util.versions import Behaviour


class SyncInput(msgspec.Struct, frozen=True):
    """Everything that `compute_actions` decides from.

    `liveness` and `startup` give the published outcome of a probe by container id, None if there is none.
    """

    pod: Pod
    records: PodRecords
    liveness: Callable[[str], ProbeOutcome | None]
    startup: Callable[[str], ProbeOutcome | None]
    behaviour: Behaviour
    sandbox: SandboxChange


@dataclass(frozen=True, slots=True)
class Kill:
    """A container to stop; `message` is the text of its Killing event."""

    record: ContainerRecord
    container: AnyContainer
    reason: KillReason
    message: str
