"""What all components of the runtime manager share: the CRI client, files, events, metrics and settings."""

from dataclasses import dataclass

from kubelet_reference.allocation.dynamic_resources import DynamicResources
from kubelet_reference.cri.tools import CriTools
from kubelet_reference.kuberuntime.pod_files import PodFiles


@dataclass(frozen=True, slots=True, kw_only=True)
class RuntimeTools(CriTools):
    """The runtime and the pods' files; `resources` is None where pods have none."""

    files: PodFiles
    resources: DynamicResources | None = None
