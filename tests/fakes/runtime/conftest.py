"""A test of the fakes that is a coroutine runs on virtual time; `node` is a fake runtime of its own."""

import inspect

import pytest
from cri_node import Node

from kubelet_fakes.clock import run


@pytest.fixture(name="node")
def fresh_node() -> Node:
    """A fake runtime in memory, with everything that happens to it."""
    return Node()


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a coroutine to its end on a virtual loop of its own."""
    test = pyfuncitem.obj
    if not inspect.iscoroutinefunction(test):
        return None
    names = inspect.signature(test).parameters
    run(test(**{name: pyfuncitem.funcargs[name] for name in names}))
    return True
