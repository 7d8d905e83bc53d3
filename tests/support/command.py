"""The command line as a user meets it, in this process or in one of its own."""

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from kubelet_conformance.cli import main


@dataclass(frozen=True)
class Ended:
    """How a command ended and what it wrote."""

    code: int
    out: str
    err: str


def in_process(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> Ended:
    """Run the command here."""
    capsys.readouterr()
    code = main([str(each) for each in arguments])
    captured = capsys.readouterr()
    return Ended(code, captured.out, captured.err)


def in_subprocess(*arguments: str | Path, **environment: str) -> Ended:
    """Run the real command, as `python -m` does."""
    done = subprocess.run(
        [sys.executable, "-m", "kubelet_conformance", *map(str, arguments)],
        capture_output=True,
        check=False,
        env=os.environ | environment,
        timeout=120,
    )
    return Ended(done.returncode, done.stdout.decode(), done.stderr.decode())
