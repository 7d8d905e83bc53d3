"""Python's garbage collector where much is made, and all of it goes at the end."""

from __future__ import annotations

import gc
from collections.abc import Generator
from contextlib import contextmanager

_COLLECT_AFTER_OBJECTS = 50_000


@contextmanager
def seldom_collected() -> Generator[None]:
    """Let Python look for cycles seldom, at the end, and never among what is there already.

    Use it as a decorator: what a function holds is gone at its end, and what is left in cycles goes with it.
    Within another such function it changes nothing.
    """
    before = gc.get_threshold()
    if before[0] == _COLLECT_AFTER_OBJECTS:
        yield
        return
    gc.freeze()
    gc.set_threshold(_COLLECT_AFTER_OBJECTS, *before[1:])
    try:
        yield
    finally:
        gc.collect()
        gc.set_threshold(*before)
        gc.unfreeze()
