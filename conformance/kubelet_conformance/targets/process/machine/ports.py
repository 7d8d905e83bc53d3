"""Ports of loopback for kubelets, from a block that no other run on this machine has."""

import os
import socket
from collections.abc import Iterator
from itertools import cycle, islice

_FIRST, _LAST = 20_000, 32_768
"""Above what services have, below what connections are given: one of these may come before the kubelet."""
_BLOCK = 512
_TAKEN: list[socket.socket] = []
"""Holds a name without a file for each block of ours, which others see as taken until this process ends."""


def free_ports() -> tuple[int, int, int]:
    """Three ports that are free at this moment, and were given lately to no other kubelet.

    Where all blocks are taken, or Linux is not there to name them, runs at the same time may want the same.
    """
    first, second, third = islice(filter(_is_free, islice(_PORTS, _BLOCK)), 3)
    return first, second, third


def ports_of_a_block() -> Iterator[int]:
    """The ports of a block that nobody else has, again and again."""
    blocks = [range(first, first + _BLOCK) for first in range(_FIRST, _LAST - _BLOCK, _BLOCK)]
    at = int.from_bytes(os.urandom(2), "big") % len(blocks)
    in_turn = blocks[at:] + blocks[:at]
    yield from cycle(next((each for each in in_turn if _take(each)), in_turn[0]))


_PORTS = ports_of_a_block()


def _take(block: range) -> bool:
    """Take the block, if nobody has it."""
    name = socket.socket(socket.AF_UNIX)
    try:
        name.bind(f"\0kubelet-conformance-ports-{block.start}")
    except OSError:
        name.close()
        return False
    _TAKEN.append(name)
    return True


def _is_free(port: int) -> bool:
    with socket.socket() as trial:
        try:
            trial.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
