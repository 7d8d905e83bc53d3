"""Scenarios: short tests on a node that provoke the situations which the contracts are about."""

import pkgutil
from collections.abc import Awaitable, Callable
from functools import cache
from importlib import import_module

__all__ = ("every_scenario",)


@cache
def every_scenario() -> dict[str, Callable[..., Awaitable[None]]]:
    """All scenarios by name (`sandbox.killed_sandbox_is_replaced`), in the order of their modules' names.

    In which folder a module is says nothing of its scenarios' names.
    """
    found: dict[str, Callable[..., Awaitable[None]]] = {}
    modules = [each.name for each in pkgutil.walk_packages(__path__, f"{__name__}.") if not each.ispkg]
    for module in sorted(modules, key=lambda name: name.rpartition(".")[2]):
        area = module.rpartition(".test_")[2]
        for name, value in vars(import_module(module)).items():
            if name.startswith("test_"):
                found[f"{area}.{name.removeprefix('test_')}"] = value
    return found
