"""Tests that are coroutines."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, ParamSpec

from kubelet_fakes.clock import run

P = ParamSpec("P")
Test = Callable[..., Coroutine[Any, Any, None]]


def on_loop(test: Callable[P, Coroutine[Any, Any, None]]) -> Callable[P, None]:
    """Run the test on an event loop of its own."""

    @wraps(test)
    def run_it(*arguments: P.args, **fixtures: P.kwargs) -> None:
        asyncio.run(test(*arguments, **fixtures))

    return run_it


def in_virtual_time(test: Callable[P, Coroutine[Any, Any, None]]) -> Callable[P, None]:
    """Run the test on an event loop whose time is virtual."""

    @wraps(test)
    def run_it(*arguments: P.args, **fixtures: P.kwargs) -> None:
        run(test(*arguments, **fixtures))

    return run_it


def run_by(helper: Callable[..., None], **options: Any) -> Callable[[Test], Callable[..., None]]:
    """Let `helper` run the test: it gives the first argument, and pytest gives the others."""

    def made(test: Test) -> Callable[..., None]:
        @wraps(test)
        def run_it(*arguments: Any, **fixtures: Any) -> None:
            def begin(first: object) -> object:
                return test(first, *arguments, **fixtures)

            helper(begin, **options)

        signature = inspect.signature(test)
        run_it.__signature__ = signature.replace(  # type: ignore[attr-defined]
            parameters=list(signature.parameters.values())[1:], return_annotation=None
        )
        return run_it

    return made
