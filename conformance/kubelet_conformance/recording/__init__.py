"""Record a node: the CRI calls that a tap observes and the desired pods, written as traces while it runs.

`tapping` runs in the process that relays and does nothing else; `writing` in one of its own, which reads what
passed, reads the desired pods and writes. `transcript` makes records of what is observed.
"""

__all__ = ()
