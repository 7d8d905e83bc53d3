"""Pytest's side of a run: which tests are scenarios, how one is played, and how the run ends."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

import click
import pytest

from kubelet_conformance.node import scenario_of
from kubelet_conformance.plugin.options import Options, OptionsError
from kubelet_conformance.plugin.play import packed, unpacked
from kubelet_conformance.plugin.session import Session
from kubelet_conformance.reports.forms import in_form
from kubelet_conformance.reports.output import complain, deliver
from kubelet_conformance.reports.progress import Steps
from kubelet_conformance.reports.run import Exit

if TYPE_CHECKING:
    from kubelet_conformance.reports.played import Played

__all__ = ("Scenarios", "is_scenario")

_PLAYED = "kubelet_conformance_played"
_JUDGED_ENDS = frozenset({pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED})


def is_scenario(item: pytest.Item) -> bool:
    """Whether a test is a scenario: a coroutine that takes our `node`."""
    return (
        isinstance(item, pytest.Function)
        and "node" in item.fixturenames
        and inspect.iscoroutinefunction(item.obj)
    )


class Scenarios:
    """Our hooks of one pytest run. Without a scenario among the tests they do nothing."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._session: Session | None = None
        self._progress: Steps | None = None
        self._other_failed = False

    def session(self) -> Session:
        """The session, begun with the first scenario; a UsageError for what cannot be chosen."""
        if self._session is None:
            given: dict[str, Any] = getattr(self._config, "workerinput", {})
            try:
                self._session = Session(Options.of(self._config), given.get("kc_folder"))
            except OptionsError as error:
                raise pytest.UsageError(str(error)) from None
        return self._session

    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """Keep the scenarios that witness what is asked for, on a version they are meant for."""
        if not any(map(is_scenario, items)):
            return
        options = self.session().options
        wanted = {contract.id for contract in self.session().contracts} if options.ids else None
        version = tuple(int(part) for part in options.choice.kubernetes.split("."))
        dropped = [item for item in items if is_scenario(item) and _is_idle(item, wanted, version)]
        if dropped:
            config.hook.pytest_deselected(items=dropped)
            items[:] = [item for item in items if item not in dropped]

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:  # noqa: ANN401 - a type of pytest-xdist
        """Let the workers of xdist write their traces where the controller reads them."""
        node.workerinput["kc_folder"] = str(self.session().folder)

    @pytest.hookimpl(tryfirst=True)
    def pytest_pyfunc_call(self, pyfuncitem: pytest.Function) -> bool | None:
        """Play a scenario; it fails if its trace breaks a contract or if it waits in vain."""
        if not is_scenario(pyfuncitem):
            return None
        if self._progress is not None:
            self._progress.begin(_name(pyfuncitem))
        played = self.session().play(pyfuncitem.obj, _name(pyfuncitem))
        pyfuncitem.user_properties.append((_PLAYED, packed(played)))
        told = _told(played)
        if told:
            pytest.fail(told, pytrace=False)
        return True

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Take the verdicts of a scenario out of its report, in whichever process it was played."""
        ours = [value for name, value in report.user_properties if name == _PLAYED]
        if report.failed and not ours:
            self._other_failed = True
        if report.when != "call" or self._is_worker():
            return
        for value in ours:
            self.session().add(unpacked(str(value)))
        report.user_properties[:] = [each for each in report.user_properties if each[0] != _PLAYED]

    def _is_worker(self) -> bool:
        return hasattr(self._config, "workerinput")

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Say so if nothing is left to play, and begin to tell of progress."""
        scenarios = [item for item in session.items if is_scenario(item)]
        if self._session is None or self._has_terminal():
            return
        if not scenarios and self._session.options.ids:
            complain(f"no scenario puts {' '.join(self._session.options.ids)} to the test")
        self._progress = Steps(len(scenarios), "scenarios played")

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Without pytest's own output, a module that cannot be imported is told here."""
        if report.failed and not self._has_terminal():
            complain(f"{report.nodeid}: {report.longreprtext}", plain=True)

    def _has_terminal(self) -> bool:
        """Whether pytest prints its own output."""
        return self._config.pluginmanager.hasplugin("terminalreporter")

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """The exit status is that of the verdicts; without pytest's own output the report goes out here."""
        if self._progress is not None:
            self._progress.clear()
        if self._session is None or self._is_worker() or session.exitstatus not in _JUDGED_ENDS:
            return
        ended = self._session.run().conclusion()
        if not (self._other_failed and ended is Exit.OK):
            session.exitstatus = int(ended)
        if not self._has_terminal():
            self._report(self._session)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print the report below pytest's own output, or write it where it is wanted."""
        if self._session is not None:
            terminalreporter.ensure_newline()
            self._report(self._session)

    @staticmethod
    def _report(session: Session) -> None:
        if not session.played:
            return
        run, options = session.run(), session.options
        session.record(run.report())
        try:
            deliver(in_form(options.form, run, to_file=bool(options.output)), options.output)
        except click.ClickException as error:
            complain(error.format_message())

    def pytest_unconfigure(self) -> None:
        """Clean up."""
        if self._session is not None:
            self._session.close()


def _is_idle(item: pytest.Item, wanted: set[str] | None, version: tuple[int, ...]) -> bool:
    declared = scenario_of(getattr(item, "obj", None))
    too_new = declared.kubernetes is not None and declared.kubernetes > version
    return too_new or (wanted is not None and not wanted & set(declared.witnesses))


def _name(item: pytest.Function) -> str:
    module = str(getattr(item.module, "__name__", "")).rpartition(".")[2].removeprefix("test_")
    return f"{module}.{item.name.removeprefix('test_')}"


def _told(played: Played) -> str:
    broken = f"broken: {' '.join(played.broken)}" if played.broken else ""
    return "\n".join(part for part in (broken, played.vain, played.failed) if part)
