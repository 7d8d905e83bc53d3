"""Tests that are coroutines."""

import asyncio
import inspect
from collections.abc import Callable, Coroutine, Sequence
from functools import wraps
from typing import Any, ParamSpec

from kubelet_fakes.clock import run

P = ParamSpec("P")
KEYWORD_ONLY = inspect.Parameter.KEYWORD_ONLY
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


def run_by(
    helper: Callable[..., None], *first: Any, takes: Sequence[str] = (), **options: Any
) -> Callable[[Test], Callable[..., None]]:
    """Let `helper` run the test: it gives the first argument, and pytest gives the others.

    `takes` names parameters that the helper gets as options of these names; the test need not have them.
    """

    def made(test: Test) -> Callable[..., None]:
        own = list(inspect.signature(test).parameters.values())[1:]
        names = {each.name for each in own}
        others = [inspect.Parameter(name, KEYWORD_ONLY) for name in takes if name not in names]

        @wraps(test)
        def run_it(*arguments: Any, **fixtures: Any) -> None:
            given = {name: fixture for name, fixture in fixtures.items() if name in names}
            chosen = {name: fixtures[name] for name in takes}

            def begin(value: object) -> object:
                return test(value, *arguments, **given)

            helper(begin, *first, **options, **chosen)

        run_it.__signature__ = inspect.Signature(own + others)  # type: ignore[attr-defined]
        return run_it

    return made
