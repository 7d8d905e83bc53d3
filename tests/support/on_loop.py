"""Tests that are coroutines, each run on a loop of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, ParamSpec

P = ParamSpec("P")


def on_loop(test: Callable[P, Coroutine[Any, Any, None]]) -> Callable[P, None]:
    """Let a test be a coroutine."""

    @wraps(test)
    def run(*arguments: P.args, **fixtures: P.kwargs) -> None:
        asyncio.run(test(*arguments, **fixtures))

    return run
