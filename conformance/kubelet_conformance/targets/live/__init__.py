"""A real runtime at a socket as a target: the reference kubelet in this process, on wall time."""

__all__ = ()
