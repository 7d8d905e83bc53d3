"""Real kubelets keep every contract, and each contract is put to the test where a trace can show it.

`real_kubelets.toml` names, for each recorded history, contracts that it must put to the test: those that it
was recorded for and others that it shows well. Together the lists hold every contract that any shipped
trace exercises, so that none can fall silent unnoticed.
"""

import tomllib
from functools import cache
from pathlib import Path

import pytest
from judging import outcomes

from kubelet_conformance.contract.verdicts import Outcome, Verdict
from kubelet_conformance.contracts import every_contract
from kubelet_fixtures import traces

TRACES = [f"{path.parent.name}/{path.stem}" for path in sorted(traces().glob("*/*.jsonl"))]


@cache
def judged(trace: str) -> dict[str, Outcome]:
    """What all contracts say of one shipped trace."""
    return outcomes(trace, (traces() / f"{trace}.jsonl").read_bytes())


@cache
def table() -> dict[str, dict[str, list[str]]]:
    """For each history the contracts it must exercise: of every version, or of one."""
    return tomllib.loads(Path(__file__).with_name("real_kubelets.toml").read_text(encoding="utf-8"))


def expected(trace: str) -> set[str]:
    """The contracts that this trace must exercise."""
    version, _, history = trace.removeprefix("kubernetes-").partition("/")
    rows = (table()["any_pod"], table().get(history, {}))
    return {key for row in rows for of in ("all", version) for key in row.get(of, ())}


@pytest.mark.parametrize("trace", TRACES)
def test_a_real_kubelet_keeps_every_contract(trace: str) -> None:
    """No contract is broken by what a real kubelet did, and no judge fails."""
    faults = {
        key: [f"seq {evidence.seq}: {evidence.text}" for evidence in one.evidence] or one.reason
        for key, one in judged(trace).items()
        if one.verdict in {Verdict.BROKEN, Verdict.ERROR}
    }

    assert faults == {}


@pytest.mark.parametrize("trace", TRACES)
def test_a_trace_exercises_what_it_shows(trace: str) -> None:
    """Every contract named for this history is put to the test by it."""
    exercised = {key for key, one in judged(trace).items() if one.activations}

    assert expected(trace) - exercised == set()


def test_every_contract_that_real_kubelets_exercise_is_named() -> None:
    """The table holds all that any trace exercises, and nothing that is no contract."""
    exercised = {key for trace in TRACES for key, one in judged(trace).items() if one.activations}
    named = {key for row in table().values() for keys in row.values() for key in keys}

    assert exercised - named == set()
    assert named - every_contract().keys() == set()


def test_every_history_of_the_table_was_recorded() -> None:
    """A row is a recorded history, in the versions it names."""
    histories = {trace.partition("/")[2] for trace in TRACES}
    unknown = [
        f"{version}/{history}"
        for history, row in table().items()
        for version in row
        if history != "any_pod" and version != "all" and f"kubernetes-{version}/{history}" not in TRACES
    ]

    assert table().keys() - histories == {"any_pod"}
    assert unknown == []


def test_the_shipped_traces_are_the_sixty() -> None:
    """29 histories of Kubernetes 1.26 and 31 of 1.32."""
    assert [sum(version in trace for trace in TRACES) for version in ("-1.26/", "-1.32/")] == [29, 31]
