"""Runs with other names for their traces."""

from collections.abc import Callable, Iterable
from itertools import chain, count
from pathlib import Path
from typing import TypeVar

from msgspec.structs import replace

from kubelet_conformance.run_record.model import ContractResult, Proof, Run, ScenarioResult, TimedOut

S = TypeVar("S", Proof, ScenarioResult, TimedOut)


def relative_to(folder: Path) -> Callable[[str], str]:
    """Names a file below a folder relative to it, and leaves every other name as it is."""

    def renamed(path: str) -> str:
        return Path(path).relative_to(folder).as_posix() if Path(path).is_relative_to(folder) else path

    return renamed


def with_traces(run: Run, renamed: Callable[[str], str]) -> Run:
    """The run with its traces renamed wherever they are named."""
    return replace(
        run,
        traces=tuple(replace(each, path=renamed(each.path)) for each in run.traces),
        scenarios=_in_trace(run.scenarios, renamed),
        contracts=tuple(proofs_in(each, renamed) for each in run.contracts),
        waits=_in_trace(run.waits, renamed),
    )


def proofs_in(contract: ContractResult, renamed: Callable[[str], str]) -> ContractResult:
    """The verdict with the traces of its breaks renamed."""
    return (
        replace(contract, evidence=_in_trace(contract.evidence, renamed)) if contract.evidence else contract
    )


def _in_trace(each: Iterable[S], renamed: Callable[[str], str]) -> tuple[S, ...]:
    return tuple(replace(one, trace=renamed(one.trace)) for one in each)


def free_name(name: str, is_taken: Callable[[str], bool]) -> str:
    """The name, with a number if it is taken, such as `node-2`."""
    names = chain([name], (f"{name}-{number}" for number in count(2)))
    return next(each for each in names if not is_taken(each))
