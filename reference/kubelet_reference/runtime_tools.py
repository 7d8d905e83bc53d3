"""What every part of the runtime side works with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kubelet_reference.cri_client import CriClient
    from kubelet_reference.events import Recorder
    from kubelet_reference.metrics import Metrics
    from kubelet_reference.pod_files import PodFiles
    from kubelet_reference.ports import Clock
    from kubelet_reference.settings import Settings
    from kubelet_reference.versions import Behaviour

__all__ = ("RuntimeTools",)


@dataclass(frozen=True, slots=True)
class RuntimeTools:
    """The runtime, the pods' files, the ways to tell what happens, and the settings."""

    client: CriClient
    files: PodFiles
    recorder: Recorder
    metrics: Metrics
    clock: Clock
    settings: Settings
    behaviour: Behaviour
