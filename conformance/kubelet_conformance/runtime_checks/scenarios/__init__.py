"""The runtime scenarios: one module a subject, found by walking this package in name order."""

import pkgutil
from functools import cache
from importlib import import_module

from kubelet_conformance.runtime_checks.scenario import RuntimeScenario

__all__ = ("every_runtime_scenario",)


@cache
def every_runtime_scenario() -> tuple[RuntimeScenario, ...]:
    """All runtime scenarios, module by module and in the order of each file."""
    modules = (import_module(each.name) for each in pkgutil.iter_modules(__path__, f"{__name__}."))
    return tuple(
        value for module in modules for value in vars(module).values() if isinstance(value, RuntimeScenario)
    )
