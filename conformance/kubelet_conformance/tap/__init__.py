"""The tap: stands between a kubelet and a runtime, copies their bytes, and reports the calls in them.

`relay` copies bytes between two unix sockets and hands each piece on as a `chunks.Chunk`; `decoder` makes
`observed` calls of the pieces, at once or later, in this process or behind `pipeline` in another.
"""

__all__ = ()
