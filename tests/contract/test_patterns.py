"""The patterns: what they match, and what they refuse."""

import pytest

from kubelet_conformance.contract.patterns import call, happened


def test_and_or_cannot_slip_in() -> None:
    """Python's `and`, `or` and `if` on a pattern raise instead of dropping one side."""
    with pytest.raises(TypeError, match="truth value"):
        bool(call("A"))


def test_either_has_the_keys_of_all() -> None:
    """`either` waits for what any of its patterns waits for."""
    joined = call("A").where(lambda _: False).either(happened("exited"))

    assert joined.keys == {"call:A", "runtime:exited"}
