"""Runtimes that are called directly, with no kubelet in between: the fake, and any at a socket."""

from kubelet_conformance.targets.runtime.opening import (
    Wanted,
    is_in_process,
    on_virtual_time,
    opened,
    opened_in_process,
)
from kubelet_conformance.targets.runtime.runtime_target import DirectRuntime, StateLoss

__all__ = (
    "DirectRuntime",
    "StateLoss",
    "Wanted",
    "is_in_process",
    "on_virtual_time",
    "opened",
    "opened_in_process",
)
