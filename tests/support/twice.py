"""One trace twice, right and wrong: a contract must keep the one and break the other."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any, Protocol

from trace_builder import TraceBuilder

from kubelet_conformance.contract.verdicts import Verdict

Tell = Callable[..., None]


class Teller(Protocol):
    """Writes a trace, right or with the one thing wrong that breaks the contract."""

    def __call__(self, s: TraceBuilder, *, right: bool) -> None:
        """Write it."""


def assert_detects(contract_id: str, tell: Teller, *, kubernetes: str | None = "1.32") -> None:
    """The right trace keeps the contract, the wrong one breaks it."""
    for right in (True, False):
        s = TraceBuilder(kubernetes)
        tell(s, right=right)
        outcome = s.judge(contract_id)
        expected = Verdict.KEPT if right else Verdict.BROKEN

        assert outcome.verdict is expected, (contract_id, right, outcome.reason, outcome.evidence)


def detects(contract_id: str, *, kubernetes: str | None = "1.32") -> Callable[[Tell], Tell]:
    """Make a test of a function that writes a trace `s`, `right` or not; see `assert_detects`."""

    def made(tell: Tell) -> Tell:
        @wraps(tell)
        def test(**arguments: Any) -> None:
            assert_detects(
                contract_id, lambda s, right: tell(s, right=right, **arguments), kubernetes=kubernetes
            )

        signature = inspect.signature(tell)
        given = [each for name, each in signature.parameters.items() if name not in {"s", "right"}]
        test.__signature__ = signature.replace(parameters=given)  # type: ignore[attr-defined]
        return test

    return made
