"""The command `run` as a user meets it, save that its process is this one."""

import os
from pathlib import Path
from typing import Protocol

import pytest
from command import Ended

from kubelet_conformance.cli import main, pytest_process

KEPT = ("SANDBOX-02", "--scenario", "sandbox.killed_sandbox_is_replaced")
"""A run of one scenario that keeps what it is judged by."""
BUG = "bug:K8S-9649"
"""A kubelet that kills a container whose readiness probe fails."""
BUGGY = ("PROBE-10", "--scenario", "probes.failing_readiness_never_kills", "--kubelet", BUG)
"""A run of one scenario that breaks what it is judged by."""


class Runs(Protocol):
    """Runs the command."""

    def __call__(self, *arguments: str | Path) -> Ended:
        """Run it with these arguments."""
        ...


def runs_of(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Runs:
    """The command with its exec turned into a call."""

    def execv(_: str, arguments: list[str]) -> None:
        raise SystemExit(pytest_process.main(arguments[arguments.index("-m") + 2 :]))

    def run(*arguments: str | Path) -> Ended:
        capsys.readouterr()
        try:
            code = main(["run", *map(str, arguments)])
        except SystemExit as ended:
            code = int(str(ended.code))
        captured = capsys.readouterr()
        return Ended(code, captured.out, captured.err)

    monkeypatch.setattr(os, "execv", execv)
    return run
