"""The process of `run`: pytest with our plugin and without its own output; ends with our exit codes.

It is a process of its own, since pytest rewrites the asserts of those modules only that it imports first.
"""

from __future__ import annotations

import atexit
import os
import signal
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

_INTERRUPTED = 130

try:
    # `run` has blocked it until here: before, Python would end with a traceback.
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    import pytest

    from kubelet_conformance.cli.interrupts import terminable
    from kubelet_conformance.contract.extensions import extensions
    from kubelet_conformance.reports.output import complain, report_internal_error
    from kubelet_conformance.run_record.conclusion import Exit
except KeyboardInterrupt:
    sys.stderr.write("error: interrupted\n")
    sys.exit(_INTERRUPTED)

if TYPE_CHECKING:
    from sys import UnraisableHookArgs

SCENARIOS = "kubelet_conformance.scenarios"
_ARGUMENTS = (
    *("-p", "kubelet_conformance.plugin", "--pyargs", SCENARIOS),
    # What is printed is our report alone, and progress can be seen while scenarios are played.
    *("-p", "no:terminal", "-p", "no:cacheprovider", "--capture=no"),
    # The user's own pytest is left alone: its configuration, conftest files and plugins.
    *("-c", os.devnull, "--rootdir=.", "--noconftest", "--disable-plugin-autoload"),
    # Scenarios have no threads, and looking for what ends unnoticed takes a second.
    *("-p", "no:unraisableexception", "-p", "no:threadexception"),
)
_THE_USERS_OWN = ("PYTEST_ADDOPTS", "PYTEST_PLUGINS")
_EXITS = {
    "OK": Exit.OK,
    "TESTS_FAILED": Exit.INTERNAL_ERROR,
    "INTERRUPTED": Exit.INTERRUPTED,
    "INTERNAL_ERROR": Exit.INTERNAL_ERROR,
    "USAGE_ERROR": Exit.BAD_INPUT,
    "NO_TESTS_COLLECTED": Exit.INCONCLUSIVE,
}
"""What pytest's own exit codes mean where the plugin came to no conclusion."""


class _Ending:
    """Takes down how the run ended; pytest's exit codes and ours have numbers in common.

    Ctrl-C that comes while Python cannot raise it, as in a callback of the garbage collector or of an import,
    ends the run before the next module or scenario.
    """

    def __init__(self, *, debug: bool) -> None:
        self._debug = debug
        self._is_interrupted = False
        self.concluded: Exit | None = None

    def unraisable(self, args: UnraisableHookArgs) -> None:
        """Keep an interrupt that is ignored otherwise; in place of `sys.unraisablehook`."""
        if issubclass(args.exc_type, KeyboardInterrupt):
            self._is_interrupted = True
        else:
            sys.__unraisablehook__(args)

    def pytest_collectstart(self) -> None:
        """End here if the run was interrupted, and so before each scenario."""
        if self._is_interrupted:
            raise KeyboardInterrupt

    pytest_runtest_logstart = pytest_collectstart

    def pytest_keyboard_interrupt(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        """Say what ended it: Ctrl-C, or a scenario's module that cannot be imported."""
        if excinfo.type is KeyboardInterrupt:
            complain("interrupted")
        elif excinfo.errisinstance(KeyboardInterrupt):
            self.concluded = report_internal_error(excinfo.value, debug=self._debug)

    def pytest_internalerror(self, excinfo: pytest.ExceptionInfo[BaseException]) -> bool:
        """Report an internal error as every command does, in place of pytest."""
        self.concluded = report_internal_error(excinfo.value, debug=self._debug)
        return True

    def pytest_unconfigure(self, config: pytest.Config) -> None:
        """Ask the plugin for its conclusion."""
        plugin = config.pluginmanager.get_plugin("kubelet-conformance-scenarios")
        self.concluded = self.concluded or getattr(plugin, "ended", None)


def main(arguments: list[str]) -> int:
    """Play; the exit code of the run."""
    for name in _THE_USERS_OWN:
        os.environ.pop(name, None)
    ending = _Ending(debug="--kc-debug" in arguments)
    unraisable, sys.unraisablehook = sys.unraisablehook, ending.unraisable
    try:
        with terminable():
            ended = pytest.main(
                [*_ARGUMENTS, *(each.module for each in extensions("scenarios")), *arguments],
                plugins=[ending],
            )
    except KeyboardInterrupt:
        complain("interrupted")
        return Exit.INTERRUPTED
    finally:
        sys.unraisablehook = unraisable
    if ending.concluded is not None:
        return ending.concluded
    return _EXITS[pytest.ExitCode(ended).name]


def _leave(code: list[int]) -> None:
    """End at once, as the last of what is done at the exit.

    gRPC's threads may still run when an interrupted run ends, and fail where Python takes itself apart.
    """
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(code[0])


if __name__ == "__main__":
    ended: list[int] = []
    # What is registered first is called last.
    atexit.register(_leave, ended)
    ended.append(main(sys.argv[1:]))
