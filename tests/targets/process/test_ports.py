"""Runs that go on at the same time give their kubelets different ports."""

import os
from itertools import islice

import pytest

from kubelet_conformance.targets.process.machine.ports import free_ports, ports_of_a_block


def test_no_two_runs_have_a_block_in_common(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second finds the block that it would begin with taken, though no kubelet listens there yet."""

    def same(size: int) -> bytes:
        return bytes(size)

    monkeypatch.setattr(os, "urandom", same)
    first, second = (set(islice(ports_of_a_block(), 2000)) for _ in range(2))

    assert len(first) == len(second) > 3 * 64
    assert not first & second


def test_ports_are_not_given_again_soon() -> None:
    """A kubelet that was given a port may not listen there yet."""
    given = [port for _ in range(100) for port in free_ports()]

    assert len(set(given)) == len(given)
