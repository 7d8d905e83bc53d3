"""Scenarios: short stories that provoke what the contracts are about."""

from __future__ import annotations

import pkgutil
from collections.abc import Awaitable, Callable
from functools import cache
from importlib import import_module

__all__ = ("every_scenario",)


@cache
def every_scenario() -> dict[str, Callable[..., Awaitable[None]]]:
    """All scenarios by name (`sandbox.killed_sandbox_is_replaced`), in the order of modules."""
    found: dict[str, Callable[..., Awaitable[None]]] = {}
    for module in pkgutil.iter_modules(__path__):
        area = module.name.removeprefix("test_")
        for name, value in vars(import_module(f"{__name__}.{module.name}")).items():
            if name.startswith("test_"):
                found[f"{area}.{name.removeprefix('test_')}"] = value
    return found
