"""A minimal but real kubelet core: the executable specification of a pod's life."""

from __future__ import annotations

import logging

__all__ = ()

# Who wants to read its log says so; nobody else is told by Python's last resort.
logging.getLogger(__name__).addHandler(logging.NullHandler())
