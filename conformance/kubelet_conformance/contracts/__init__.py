"""The contracts: one module a subject, found by walking this package and its families."""

from __future__ import annotations

import pkgutil
from functools import cache
from importlib import import_module

from kubelet_conformance.contract.catalogue import rows
from kubelet_conformance.contract.definition import Contract

__all__ = ("every_contract",)


@cache
def every_contract() -> dict[str, Contract]:
    """All contracts by id, in the order of the catalogue."""
    found: dict[str, Contract] = {}
    for module in pkgutil.walk_packages(__path__, f"{__name__}."):
        for value in vars(import_module(module.name)).values():
            if isinstance(value, Contract) and value.module == module.name:
                if found.get(value.id, value) is not value:
                    raise ValueError(f"{value.id} is judged in {found[value.id].module} and in {module.name}")
                found[value.id] = value
    return {each: found[each] for each in rows() if each in found}
