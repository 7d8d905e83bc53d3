"""Scenarios: short tests on a node that provoke the situations which the contracts are about."""

import pkgutil
from collections.abc import Awaitable, Callable
from functools import cache
from importlib import import_module

from kubelet_conformance.contract.extensions import extensions

__all__ = ("every_scenario", "prefix_of")


@cache
def every_scenario() -> dict[str, Callable[..., Awaitable[None]]]:
    """All scenarios by name (`sandbox.killed_sandbox_is_replaced`), in the order of their modules' names.

    In which folder a module is says nothing of its scenarios' names. Those of other packages come last; their
    names begin with that of the entry point.
    """
    found = _scenarios_of(__name__, "")
    for each in extensions("scenarios"):
        found |= _scenarios_of(each.module, f"{each.name}.")
    return found


def prefix_of(module: str) -> str | None:
    """What the names of a module's scenarios begin with; None for a module of no installed package."""
    prefixes = {__name__: "", **{each.module: f"{each.name}." for each in extensions("scenarios")}}
    return next((prefixes[each] for each in prefixes if f"{module}.".startswith(f"{each}.")), None)


def _scenarios_of(package: str, prefix: str) -> dict[str, Callable[..., Awaitable[None]]]:
    found: dict[str, Callable[..., Awaitable[None]]] = {}
    path = getattr(import_module(package), "__path__", None)
    modules = (
        [each.name for each in pkgutil.walk_packages(path, f"{package}.") if not each.ispkg]
        if path
        else [package]
    )
    for module in sorted(modules, key=lambda name: name.rpartition(".")[2]):
        area = module.rpartition(".")[2].removeprefix("test_")
        for name, value in vars(import_module(module)).items():
            if name.startswith("test_"):
                found[f"{prefix}{area}.{name.removeprefix('test_')}"] = value
    return found
