"""Defers Python's garbage collection in functions that create many objects and drop them all at the end."""

import gc
from collections.abc import Generator
from contextlib import contextmanager

_COLLECT_AFTER_OBJECTS = 50_000


@contextmanager
def deferred_gc() -> Generator[None]:
    """Collect cycles rarely and at the end of the function, and never among objects that existed before.

    Use it as a decorator: objects of the function are freed at its end, those in cycles included.
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
