"""The pytest plugin: plays scenarios (`async def test_...(node)`), judges their traces, reports.

Pytest finds it by itself. It imports what it needs when a test is a scenario, or one of its options is given.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from kubelet_conformance.plugin.arguments import PLAYED as _PLAYED
from kubelet_conformance.plugin.arguments import add_options as _add_options
from kubelet_conformance.plugin.arguments import are_given as _are_given
from kubelet_conformance.plugin.fixtures import fake_api, fake_runtime, fake_world, judge, node, virtual_clock
from kubelet_conformance.plugin.fixtures import is_scenario as _is_scenario

if TYPE_CHECKING:
    # Late: it takes longer than pytest itself.
    from kubelet_conformance.plugin.hooks import Scenarios
    from kubelet_conformance.run_record.temporary_folder import TemporaryFolder

__all__ = ("fake_api", "fake_runtime", "fake_world", "judge", "node", "virtual_clock")

_SCENARIOS = "kubelet-conformance-scenarios"
_FOLDER = "kc_folder"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add our options."""
    _add_options(parser)


def pytest_configure(config: pytest.Config) -> None:
    """Watch this run for scenarios, from the start where it is ours: `run`, or one with our options."""
    if config.pluginmanager.is_blocked("terminal") or _are_given(config):
        _scenarios(config, None)
    else:
        config.pluginmanager.register(_Idle(config))


def _scenarios(config: pytest.Config, folder: TemporaryFolder | None) -> Scenarios:
    from kubelet_conformance.plugin.hooks import Scenarios  # noqa: PLC0415 - see above

    made = Scenarios(config, folder)
    config.pluginmanager.register(made, _SCENARIOS)
    return made


class _Idle:
    """Our hooks of a pytest run until it comes to a scenario, here or in a worker of xdist."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._folder: TemporaryFolder | None = None

    def _begin(self) -> Scenarios:
        """Our hooks proper, in place of these."""
        self._config.pluginmanager.unregister(self)
        folder, self._folder = self._folder, None
        return _scenarios(self._config, folder)

    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """Begin if one of the tests is a scenario."""
        if any(map(_is_scenario, items)):
            self._begin().pytest_collection_modifyitems(config, items)

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:  # noqa: ANN401 - a type of pytest-xdist
        """Give the workers of xdist a folder for the traces that they may write."""
        from kubelet_conformance.run_record.temporary_folder import TemporaryFolder  # noqa: PLC0415 - see above

        self._folder = self._folder or TemporaryFolder()
        node.workerinput[_FOLDER] = self._folder.name

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Begin if a worker has played a scenario."""
        if hasattr(report, _PLAYED):
            self._begin().pytest_runtest_logreport(report)

    def pytest_unconfigure(self) -> None:
        """Remove the folder, which is empty."""
        if self._folder is not None:
            self._folder.cleanup()
