"""The pytest plugin: plays scenarios (`async def test_...(node)`), judges their traces, reports."""

import pytest

from kubelet_conformance.plugin.hooks import Scenarios as _Scenarios
from kubelet_conformance.plugin.options import add_options as _add_options


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add our options."""
    _add_options(parser)


def pytest_configure(config: pytest.Config) -> None:
    """Watch this run for scenarios."""
    config.pluginmanager.register(_Scenarios(config), "kubelet-conformance-scenarios")


@pytest.fixture
def node() -> None:
    """The node that a scenario plays on; it is made on the scenario's own loop, when the scenario runs."""
