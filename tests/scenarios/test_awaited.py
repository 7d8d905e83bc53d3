"""What scenarios wait for in the name of a contract is judged by that contract."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import kubelet_conformance
from kubelet_conformance.contracts import every_contract

SCENARIOS = Path(kubelet_conformance.__file__).parent / "scenarios"
CONTRACT = re.compile(r"[A-Z]+-\d+")


def named_by(call: ast.Call) -> Iterator[str]:
    """The contracts that a call names as judges of what it waits for."""
    is_expectation = isinstance(call.func, ast.Attribute) and call.func.attr == "expect"
    named = [each.value for each in call.keywords if each.arg == "contract"]
    for value in (*named, *(call.args[2:] if is_expectation else ())):
        if isinstance(value, ast.Constant) and CONTRACT.fullmatch(str(value.value)):
            yield str(value.value)


def test_contracts_named_by_waits_judge_them() -> None:
    """A name whose contract has no clause for waits would be lost in silence."""
    calls = (
        node
        for path in SCENARIOS.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Call)
    )
    named = {contract for call in calls for contract in named_by(call)}
    rules = every_contract()

    assert len(named) > 20
    assert [each for each in named if not any("expect" in one.on.keys for one in rules[each].clauses)] == []
