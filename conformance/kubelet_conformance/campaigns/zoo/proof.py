"""Proves that a contract can be kept and can be broken: one that nothing breaks says nothing."""

from kubelet_conformance.campaigns.declared import declared_witnesses
from kubelet_conformance.campaigns.zoo.hunt import hunt, reference_verdict
from kubelet_conformance.contract.verdicts import Verdict
from kubelet_conformance.scenarios import every_scenario
from kubelet_conformance.targets.bugs import declared_bugs


def lacks(contract: str) -> tuple[str, ...]:
    """What is missing of the proof, in words: nothing, if a scenario exercises it and a bug breaks it.

    Each scenario that declares it must exercise it on the reference, which keeps it. Each bug that declares
    to break it must break it.
    """
    scenarios, bugs = declared_witnesses().get(contract, []), declared_bugs().get(contract, [])
    found = [] if scenarios else [f'no scenario declares it: write one with @witness("{contract}")']
    for name in scenarios:
        verdict = reference_verdict(name, contract) if name in every_scenario() else Verdict.KEPT
        if verdict is not Verdict.KEPT:
            found.append(f"{verdict.words} on the reference kubelet in {name}")
    if not bugs:
        found.append(f'no bug breaks it, perhaps nothing can: write one with @bug(..., breaks="{contract}")')
    idle = [bug for bug in bugs if contract not in hunt(bug).caught_by]
    return (*found, *(f"{bug} does not break it: its judge may be unable to" for bug in idle))
