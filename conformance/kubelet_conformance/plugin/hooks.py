"""Pytest's side of a run: which tests are scenarios, how one is played, and how the run ends."""

import inspect
from collections.abc import Awaitable, Callable, Generator, Iterable
from fnmatch import fnmatchcase
from functools import partial
from typing import Any, NoReturn

import click
import pytest

from kubelet_conformance.contract.applicability import USUAL_VERSION
from kubelet_conformance.contract.catalogue import UnknownContract, row
from kubelet_conformance.node import scenario_of
from kubelet_conformance.plugin.arguments import PLAYED
from kubelet_conformance.plugin.fixtures import is_scenario
from kubelet_conformance.plugin.live.live_run import LiveRun, LiveScenario
from kubelet_conformance.plugin.naming import Named, in_order, named
from kubelet_conformance.plugin.options import Options
from kubelet_conformance.plugin.play import TraceNotWrittenError, packed, unpacked
from kubelet_conformance.plugin.session import Session
from kubelet_conformance.reports.output import complain
from kubelet_conformance.reports.progress import Steps
from kubelet_conformance.reports.safe import nearest
from kubelet_conformance.reports.terminal import summary
from kubelet_conformance.run_record.conclusion import Exit, gravest
from kubelet_conformance.run_record.model import LeftOut
from kubelet_conformance.run_record.played_run import Played
from kubelet_conformance.run_record.temporary_folder import TemporaryFolder
from kubelet_conformance.run_record.worker_pool import Ahead, ProcessDiedError, processors
from kubelet_conformance.targets.choice import TargetError
from kubelet_conformance.targets.kubelet_target.choosing import then_kubernetes
from kubelet_conformance.trace.format.errors import BadInputError

_FUNCTION = pytest.StashKey[Callable[..., Awaitable[None]]]()
_PLAYED = pytest.StashKey["Played | str"]()
_WORTH_PROCESSES = 50
"""So many scenarios take longer than it takes to make processes for them."""
_JUDGED_ENDS = frozenset({pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED})


class Scenarios:
    """Our hooks of one pytest run. Without a scenario among the tests they do nothing.

    `folder` is where the workers of xdist have to write their traces, if they have. `ended` is how
    the run ended, if it came to verdicts.
    """

    def __init__(self, config: pytest.Config, folder: TemporaryFolder | None) -> None:
        self._config = config
        self._folder = folder
        self._session: Session | None = None
        self._named: dict[str, Named] = {}
        self._progress: Steps | None = None
        self._ahead: Ahead[Played] | None = None
        self._ours_failed = 0
        self.ended: Exit | None = None

    def session(self) -> Session:
        """The session, begun with the first scenario; ends the run for what cannot be chosen."""
        if self._session is None:
            given: dict[str, Any] = getattr(self._config, "workerinput", {})
            try:
                self._session = Session(
                    Options.of(self._config),
                    given.get("kc_folder") or (None if self._folder is None else self._folder.name),
                    reports=not self._is_worker(),
                )
            except BadInputError as error:
                self._refuse(str(error))
        return self._session

    def _refuse(self, message: str) -> NoReturn:
        """End the run for wrong usage."""
        if self._has_terminal():
            raise pytest.UsageError(message)
        self._stop(message, Exit.BAD_INPUT)

    def _stop(self, message: str, ended: Exit) -> NoReturn:
        """End the run at once, with this message and without a report."""
        complain(message)
        self.ended = ended
        pytest.exit(message)

    def _has_terminal(self) -> bool:
        """Whether pytest prints its own output; it does not in `run`."""
        return self._config.pluginmanager.hasplugin("terminalreporter")

    def _is_worker(self) -> bool:
        """Whether this is a process of xdist's that plays for another."""
        return hasattr(self._config, "workerinput")

    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """Keep the scenarios that witness what is asked for, on a version they are meant for."""
        items[:] = in_order(items)
        scenarios = [item for item in items if is_scenario(item)]
        if not scenarios:
            return
        self._named = named(scenarios)
        for item in scenarios:
            # Taken now: pytest-asyncio's auto mode puts a wrapper in its place before the call.
            item.stash[_FUNCTION] = item.obj
        options = self.session().options
        self._refuse_unknown(options.scenarios)
        self._refuse_unknown_contracts(scenarios)
        wanted = {contract.id for contract in self.session().contracts} if options.ids else None
        dropped = [item for item in scenarios if self._is_idle(item, options, wanted)]
        if dropped:
            config.hook.pytest_deselected(items=dropped)
            items[:] = [item for item in items if item not in dropped]
        if options.shard is not None:
            self._share_out(items, *options.shard)

    def _share_out(self, items: list[pytest.Item], part: int, parts: int) -> None:
        """Keep every N-th scenario; other tests are left alone."""
        scenarios = [item for item in items if is_scenario(item)]
        if parts > len(scenarios):
            self._refuse(
                f"--shard {part}/{parts}: {len(scenarios)} scenarios make no {parts} parts; "
                f"give N as {len(scenarios)} at most"
            )
        of_others = [item for number, item in enumerate(scenarios) if number % parts != part - 1]
        self._config.hook.pytest_deselected(items=of_others)
        items[:] = [item for item in items if item not in of_others]

    def _refuse_unknown(self, patterns: tuple[str, ...]) -> None:
        names = [each.name for each in self._named.values()]
        for pattern in patterns:
            if not any(_fits(name, pattern) for name in names):
                shown = "`kubelet-conformance list --scenarios` shows them all"
                self._refuse(f"there is no scenario {pattern}{nearest(pattern, names)}; {shown}")

    def _refuse_unknown_contracts(self, scenarios: Iterable[pytest.Function]) -> None:
        """A scenario that is to exercise what is not in the catalogue is a mistake."""
        for item in scenarios:
            for each in scenario_of(item.obj).witnesses:
                try:
                    row(each)
                except UnknownContract as error:
                    self._refuse(f"{item.nodeid}: {error}")

    def _is_idle(self, item: pytest.Function, options: Options, wanted: set[str] | None) -> bool:
        declared = scenario_of(item.obj)
        kubernetes = options.choice.kubernetes
        if kubernetes and not declared.is_meant_for(kubernetes):
            return True
        then = then_kubernetes(options.choice)
        if then and not declared.is_meant_for_both(then):
            return True
        if options.scenarios:
            return not any(_fits(self._named[item.nodeid].name, pattern) for pattern in options.scenarios)
        return wanted is not None and not wanted & set(declared.witnesses)

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:  # noqa: ANN401 - a type of pytest-xdist
        """Let the workers of xdist write their traces where the controller reads them."""
        if self.session().live is not None:
            self._refuse("a runtime takes one kubelet: play on a real one without -n")
        node.workerinput["kc_folder"] = str(self.session().folder)

    @pytest.hookimpl(tryfirst=True)
    def pytest_pyfunc_call(self, pyfuncitem: pytest.Function) -> bool | None:
        """Play a scenario; it fails if its trace breaks a contract or if a wait times out."""
        function = pyfuncitem.stash.get(_FUNCTION, None)
        if function is None:
            return None
        this = self._named[pyfuncitem.nodeid]
        taken = inspect.signature(function).parameters
        arguments = {name: value for name, value in pyfuncitem.funcargs.items() if name in taken}
        live = self.session().live
        try:
            if live is not None:
                played = self._live(live, this.name, arguments)
            else:
                if self._progress is not None:
                    self._progress.begin(this.name)
                if self._ahead is not None:
                    played = self._taken(self._ahead, pyfuncitem.nodeid)
                else:
                    played = self.session().play(function, this, arguments)
        except TraceNotWrittenError as error:
            writer = self.session().writer
            over = ""
            if writer is not None and writer.grows:
                over = f"; `kubelet-conformance report {writer.folder}` shows what is over"
            self._stop(f"{error}{over}", Exit.BAD_INPUT)
        pyfuncitem.stash[_PLAYED] = packed(played) if self._is_worker() else played
        if self.session().ends_run(played):
            pyfuncitem.session.shouldfail = "--fail-fast"
        failure = self.session().failure(played)
        if failure:
            pytest.fail(failure, pytrace=False)
        return True

    def _taken(self, ahead: Ahead[Played], key: str) -> Played:
        """The result of a scenario that another process plays; ends the run if a process has died."""
        try:
            return ahead.take(key)
        except ProcessDiedError as error:
            self._stop(f"{error}; play again, with less beside it if memory was short", Exit.INTERNAL_ERROR)

    def _live(self, live: LiveRun, name: str, arguments: dict[str, Any]) -> Played:
        """What came of a scenario on a real runtime; the test is skipped if it is not applicable."""
        try:
            played = live.play(name, arguments, self._progress)
        except TargetError as error:
            self._refuse(str(error))
        if played is None:
            pytest.skip("not played")
        if isinstance(played, LeftOut):
            pytest.skip(f"not applicable: {played.reason}")
        return played

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Put the verdicts of a scenario into its report, which crosses from a worker to the controller."""
        report = yield
        if call.when == "call" and _PLAYED in item.stash:
            setattr(report, PLAYED, item.stash[_PLAYED])
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Take the verdicts of a scenario out of its report, in whichever process it was played."""
        played: Played | str | None = getattr(report, PLAYED, None)
        if played is None:
            self._tell(report)
            return
        self._ours_failed += report.failed
        if not self._is_worker():
            self.session().take(unpacked(played) if isinstance(played, str) else played)

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Say so if nothing is left to play, and begin to show progress."""
        if self._session is not None:
            self._session.exercised = {
                self._named[item.nodeid].name: scenario_of(item.stash[_FUNCTION]).witnesses
                for item in filter(is_scenario, session.items)
            }
        if self._session is not None and self._session.live is not None:
            self._prepare(self._session.live, session.items)
        if self._session is not None and session.items and not self._is_worker():
            self._begin_record(self._session)
        if self._session is None or self._has_terminal() or self._is_worker():
            return
        live, options = self._session.live, self._session.options
        count = sum(map(is_scenario, session.items))
        if not count:
            asked = " ".join(options.ids or options.scenarios)
            version = options.choice.kubernetes or USUAL_VERSION
            complain(f"no scenario puts {asked} to the test as Kubernetes {version}")
        self._progress = Steps(count if live is None else len(live.plan.to_play), "scenarios played")
        if live is not None and live.plan.to_play:
            self._progress.announce(live.plan.estimate)
        if live is None and count >= _WORTH_PROCESSES and processors() > 1:
            self._play_ahead(self._session, filter(is_scenario, session.items))

    def _begin_record(self, ours: Session) -> None:
        """Say in the record what is going to be played, and refuse what the reports cannot be."""
        try:
            ours.options.delivery.check()
            ours.begin()
        except (BadInputError, click.ClickException) as error:
            self._refuse(str(error))

    def _play_ahead(self, ours: Session, items: Iterable[pytest.Function]) -> None:
        """Play all in several processes, unless one takes what is not known before its turn."""
        ahead: dict[str, Callable[[], Played]] = {}
        for item in items:
            arguments = _arguments(item)
            if arguments is None:
                return
            ahead[item.nodeid] = partial(
                ours.play, item.stash[_FUNCTION], self._named[item.nodeid], arguments
            )
        self._ahead = Ahead(lambda key: ahead[key](), ahead, processors())

    def _prepare(self, live: LiveRun, items: list[pytest.Item]) -> None:
        """Plan all scenarios and connect to the runtime."""
        scenarios = [item for item in items if is_scenario(item)]
        planned = [
            LiveScenario(self._named[item.nodeid], item.stash[_FUNCTION], _arguments(item))
            for item in scenarios
        ]
        progress = None if self._has_terminal() else Steps(len(planned), "scenarios tried")
        try:
            live.prepare(planned, self.session().folder, _ignore if progress is None else progress.begin)
        except BadInputError as error:
            self._refuse(str(error))
        finally:
            if progress is not None:
                progress.clear()

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Report a module that cannot be imported."""
        self._tell(report)

    def _tell(self, report: pytest.TestReport | pytest.CollectReport) -> None:
        """Without pytest's own output, report what fails beside scenarios."""
        if report.failed and not self._has_terminal():
            lines = report.longreprtext.splitlines()
            shown = lines if self._config.getoption("kc_debug") else lines[-1:]
            complain("\n".join([f"{report.nodeid}:", *shown]), plain=True)

    def pytest_keyboard_interrupt(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        """Ctrl-C or SIGTERM ends the run: what was played is reported."""
        if excinfo.type is not KeyboardInterrupt or self._session is None:
            return
        if self._ahead is not None:
            self._ahead.close()
        self._session.interrupt()

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """The exit status is that of the verdicts; the report goes out, unless pytest prints it later."""
        if self._progress is not None:
            self._progress.clear()
        if self._is_worker() or not self._has_verdicts():
            return
        ours = self.session()
        if session.exitstatus not in _JUDGED_ENDS and not ours.interrupted:
            return
        written = self._written(ours)
        others = Exit.OK
        if session.testsfailed > self._ours_failed:
            others = Exit.FAILED if self._has_terminal() else Exit.INTERNAL_ERROR
        self.ended = gravest(Exit(ours.finish().run.exit_code), written, others)
        session.exitstatus = int(self.ended)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print the report below pytest's own output."""
        if self._has_verdicts() and self.session().options.delivery.output is None:
            terminalreporter.ensure_newline()
            self.session().options.delivery.deliver_first(self.session().finish())

    def _has_verdicts(self) -> bool:
        session = self._session
        if session is None or session.played:
            return session is not None
        return session.live is not None and not session.interrupted

    def _written(self, ours: Session) -> Exit:
        """Write the record, the baseline and the reports, save what goes below pytest's own output.

        Returns how that went.
        """
        record, delivery, kept = ours.finish(), ours.options.delivery, Exit.OK
        if ours.writer is not None and ours.writer.problem:
            complain(ours.writer.problem)
        try:
            ours.write_baseline()
        except OSError as error:
            complain(f"{ours.options.write_baseline}: cannot be written: {error.strerror or error}")
            kept = Exit.BAD_INPUT
        if not self._has_terminal() or delivery.output is not None:
            kept = gravest(kept, delivery.deliver_first(record))
        if not self._has_terminal() and delivery.output is not None:
            complain(" ".join(summary(record.run)), plain=True)
        return gravest(kept, delivery.deliver_files(record, ours.writer))

    def pytest_unconfigure(self) -> None:
        """Clean up."""
        if self._ahead is not None:
            self._ahead.close()
        if self._session is not None:
            self._session.close()
        if self._folder is not None:
            self._folder.cleanup()


def _arguments(item: pytest.Function) -> dict[str, Any] | None:
    """What a scenario takes beside its node, where that is known before its turn: parameters, no fixtures."""
    params: dict[str, Any] = item.callspec.params if hasattr(item, "callspec") else {}
    taken = set(inspect.signature(item.stash[_FUNCTION]).parameters) - {"node"}
    return {name: params[name] for name in taken} if taken <= params.keys() else None


def _ignore(_: str) -> None:
    """Pytest's own output shows progress."""


def _fits(name: str, pattern: str) -> bool:
    return name == pattern or fnmatchcase(name, pattern)
