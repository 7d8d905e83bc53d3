"""Record a node: what a tap hears, and the pods that are wanted there, written as traces while it lives.

`tapping` runs in the process that relays and does nothing else; `writing` in one of its own, which reads what
passed, looks at the wanted pods and writes. `transcript` makes records of what is heard.
"""

from __future__ import annotations

__all__ = ()
