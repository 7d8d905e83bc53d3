"""What the sync loop does with pods that the sources add, change and remove."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from lightkube.models.core_v1 import PodStatus

from kubelet_reference import pods
from kubelet_reference.conditions import is_ready_as_shown
from kubelet_reference.qos import qos_class
from kubelet_reference.updates import Update, UpdateKind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from lightkube.models.core_v1 import Pod

    from kubelet_reference.admission import Admission, Rejection
    from kubelet_reference.deadline import Deadlines
    from kubelet_reference.events import Recorder
    from kubelet_reference.pod_activity import PodActivity
    from kubelet_reference.pod_manager import PodManager
    from kubelet_reference.pod_workers import PodWorkers
    from kubelet_reference.ports import Clock
    from kubelet_reference.status_manager import StatusManager

__all__ = ("HandlerTools", "PodHandlers")
