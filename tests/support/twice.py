"""One trace twice, right and wrong: a contract must keep the one and break the other."""

import inspect
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, Protocol

from trace_builder import TraceBuilder

from kubelet_conformance.contract.verdicts import Verdict

Tell = Callable[..., None]
BEGUN = ("s", "web", "sandbox", "c1", "c2")


class Teller(Protocol):
    """Writes a trace, right or with the one thing wrong that breaks the contract."""

    def __call__(self, s: TraceBuilder, *, right: bool) -> None:
        """Write it."""


def assert_verdict(
    s: TraceBuilder, contract_id: str, *, right: bool, if_right: Verdict = Verdict.KEPT
) -> None:
    """The trace keeps the contract if it is right, and breaks it if not."""
    outcome = s.judge(contract_id)
    expected = if_right if right else Verdict.BROKEN

    assert outcome.verdict is expected, (contract_id, right, outcome.reason, outcome.evidence)


def assert_detects(contract_id: str, tell: Teller, *, kubernetes: str | None = "1.32") -> None:
    """The right trace keeps the contract, the wrong one breaks it."""
    for right in (True, False):
        s = TraceBuilder(kubernetes)
        tell(s, right=right)
        assert_verdict(s, contract_id, right=right)


def detects(
    *contract_ids: str,
    kubernetes: str | None = "1.32",
    begin: Callable[[], TraceBuilder | Sequence[Any]] | None = None,
    if_right: Verdict = Verdict.KEPT,
    **pairs: tuple[Any, Any],
) -> Callable[[Tell], Tell]:
    """Make a test of a function that writes a trace `s`, `right` or not; see `assert_detects`.

    `begin` gives the trace, alone or followed by `web`, `sandbox`, `c1` and `c2`, if there are any; the
    test names those that it needs. Each of `pairs` is a parameter of the test: what it is in the trace that
    keeps the contract, and what it is in the one that breaks it. A right trace may also not exercise the
    contract: then `if_right` says so.
    """

    def made(tell: Tell) -> Tell:
        parameters = inspect.signature(tell).parameters

        @wraps(tell)
        def test(**arguments: Any) -> None:
            for right in (True, False):
                first = begin() if begin else TraceBuilder(kubernetes)
                begun = (first,) if isinstance(first, TraceBuilder) else first
                chosen = {name: kept if right else broken for name, (kept, broken) in pairs.items()}
                known = dict(zip(BEGUN, begun, strict=False)) | chosen | {"right": right} | arguments
                tell(**{name: known[name] for name in parameters})
                for contract_id in contract_ids:
                    assert_verdict(begun[0], contract_id, right=right, if_right=if_right)

        given = [each for each in parameters.values() if each.name not in {*BEGUN, *pairs, "right"}]
        test.__signature__ = inspect.Signature(given)  # type: ignore[attr-defined]
        return test

    return made
