"""Every clause of every contract is able to fail: a bug of the zoo breaks it, or a trace of this folder."""

import tomllib
from pathlib import Path
from typing import Any

import pytest
from trace_builder import BROKEN_CLAUSES

from kubelet_conformance.contracts import every_contract

HERE = Path(__file__).parent
BY_BUGS = HERE.parent / "zoo/broken_clauses.toml"
"""The clauses that each bug breaks on its witnesses; the tests of the zoo compare it with what they see."""
ONLY_KEPT = frozenset(
    {
        ("CLEANUP-02", "lives-on"),
        ("CONFIG-12", "kept"),
        ("CONFIG-13", "runs-on"),
        ("CRI-06", ""),
        ("CRI-15", ""),
        ("CRI-32", "found"),
        ("CRI-43", "answered"),
        ("EVICT-07", "left-alone"),
        ("IMAGE-21", "asked"),
        ("INIT-20", ""),
        ("PLEG-02", "changed"),
        ("PROBE-10", "lives"),
        ("PROBE-26", "lives"),
        ("RESTARTKUBELET-01", "lives-on"),
        ("RESTARTKUBELET-05", "stays"),
        ("RESTARTKUBELET-17", "lives-on"),
        ("RESTARTKUBELET-19", "goes-on"),
        ("RESTARTKUBELET-12", "done"),
        ("RESTARTKUBELET-14", "done"),
        ("TERM-20", "stays"),
        ("WORK-04", "gone"),
        ("WORK-14", "stays"),
        ("WORK-23", "stays"),
        ("WORK-28", "never"),
        ("WORK-29", "stays"),
    }
)
"""Clauses that only count how often a rule was kept; another clause of the rule is broken."""


@pytest.fixture
def whole_folder(request: pytest.FixtureRequest) -> list[Any]:
    """Every test of this folder; skips where only a part was asked for."""
    here = [item for item in request.session.items if HERE in item.path.parents]
    if {item.path for item in here} != set(HERE.rglob("test_*.py")) or request.config.option.keyword:
        pytest.skip("only a part of the contract tests was asked for")
    return [item for item in here if item.path != Path(__file__)]


def test_every_clause_is_broken_somewhere(whole_folder: list[Any]) -> None:
    """No clause is unable to fail; what no bug breaks is broken by a test here, each run until all are."""
    rows: dict[str, list[str]] = tomllib.loads(BY_BUGS.read_text(encoding="utf-8"))
    by_bugs = {(contract, clause) for row in rows.values() for contract, _, clause in map(_parted, row)}
    clauses = {
        (contract.id, clause.name) for contract in every_contract().values() for clause in contract.clauses
    }
    lacking = clauses - by_bugs - ONLY_KEPT
    for item in whole_folder:
        if lacking <= BROKEN_CLAUSES:
            break
        item.function(**(item.callspec.params if hasattr(item, "callspec") else {}))

    assert by_bugs <= clauses
    assert not sorted(lacking - BROKEN_CLAUSES)
    assert not sorted(ONLY_KEPT & (by_bugs | BROKEN_CLAUSES))


def _parted(row: str) -> tuple[str, str, str]:
    return row.partition(" ")
