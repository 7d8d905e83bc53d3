"""A minimal but real kubelet core: the executable specification of a pod's life."""

import logging

__all__ = ()

# A program that wants to read the log sets a handler; Python's handler of last resort writes nothing.
logging.getLogger(__name__).addHandler(logging.NullHandler())
