"""The runtime scenarios: one module a subject, found by walking this package in name order."""

import pkgutil
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from importlib import import_module

from kubelet_conformance.contract.extensions import extensions
from kubelet_conformance.contracts import every_contract
from kubelet_conformance.runtime_checks.scenario import RuntimeScenario

__all__ = ("every_runtime_scenario",)


@cache
def every_runtime_scenario() -> tuple[RuntimeScenario, ...]:
    """All runtime scenarios, module by module and in the order of each file.

    Those of other packages come last; their names begin with that of the entry point.
    """
    found = [*_made_in(__name__)]
    for brought in extensions("runtime_scenarios"):
        every_contract()  # They may exercise contracts of their package.
        found += [replace(each, name=f"{brought.name}.{each.name}") for each in _made_in(brought.module)]
    return tuple(found)


def _made_in(package: str) -> Iterator[RuntimeScenario]:
    """Those of a module, or of a package's modules."""
    first = import_module(package)
    path = getattr(first, "__path__", ())
    below = (import_module(each.name) for each in pkgutil.iter_modules(path, f"{package}."))
    for module in (first, *below):
        yield from (each for each in vars(module).values() if isinstance(each, RuntimeScenario))
