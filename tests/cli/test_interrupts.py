"""Ctrl-C ends a run at whatever moment it comes."""

import subprocess
import sys

import pytest

_LOST = """
import signal, sys, types
from kubelet_conformance.cli import pytest_process

class Swallows:
    def __del__(self):
        signal.raise_signal(signal.SIGINT)

def swallow(once=[1]):
    if once:
        once.pop()
        Swallows()

plugin = types.ModuleType("swallows")
plugin.pytest_itemcollected = lambda: swallow()
sys.modules["swallows"] = plugin
sys.exit(pytest_process.main(["-p", "swallows"]))
"""
_BLOCKED = """
import os, signal, sys
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
os.kill(os.getpid(), signal.SIGINT)
os.execv(sys.executable, [sys.executable, "-m", "kubelet_conformance.cli.pytest_process"])
"""


@pytest.mark.slow
@pytest.mark.parametrize("program", [_LOST, _BLOCKED], ids=["where Python ignores it", "while Python starts"])
def test_interrupt_is_never_lost(program: str) -> None:
    """It ends the run with 130 and without a traceback."""
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=100, check=False
    )

    assert (ended.returncode, ended.stdout, ended.stderr) == (130, "", "error: interrupted\n")
