"""The scenarios that declare to exercise each contract."""

from collections import defaultdict
from functools import cache

from kubelet_conformance.node import scenario_of
from kubelet_conformance.runtime_checks.scenarios import every_runtime_scenario
from kubelet_conformance.scenarios import every_scenario


@cache
def declared_witnesses() -> dict[str, list[str]]:
    """The names of the scenarios that declare to exercise a contract, by its id; read only."""
    found: dict[str, list[str]] = defaultdict(list)
    for name, function in every_scenario().items():
        for contract in scenario_of(function).witnesses:
            found[contract].append(name)
    for direct in every_runtime_scenario():
        for contract in direct.contracts:
            found[contract].append(direct.title)
    return found
