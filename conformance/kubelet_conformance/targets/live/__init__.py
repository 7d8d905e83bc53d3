"""A real runtime at a socket as a target: the reference kubelet in this process, on wall time."""

from __future__ import annotations

__all__ = ()
