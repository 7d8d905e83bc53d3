"""Bugs of the pod workers."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kubelet_bugs.bug import Bug

__all__ = ("BUGS",)

BUGS: tuple[Bug, ...] = ()
