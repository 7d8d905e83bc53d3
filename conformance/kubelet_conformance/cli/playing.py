"""The process of `run`: pytest with our plugin and without its own output; ends with our exit codes.

It is a process of its own, since pytest rewrites the asserts of those modules only that it imports first.
"""

from __future__ import annotations

import sys

import pytest

__all__ = ("SCENARIOS", "main")

SCENARIOS = "kubelet_conformance.scenarios"
_ARGUMENTS = (
    *("-p", "kubelet_conformance.plugin", "--pyargs", SCENARIOS),
    # What is printed is our report alone, and the user's own pytest configuration is left alone.
    *("-p", "no:terminal", "-p", "no:cacheprovider", "-p", "no:asyncio", "-c", "/dev/null", "--rootdir=."),
)
_EXITS = {
    pytest.ExitCode.INTERRUPTED: 130,
    pytest.ExitCode.INTERNAL_ERROR: 4,
    pytest.ExitCode.USAGE_ERROR: 2,
    pytest.ExitCode.NO_TESTS_COLLECTED: 3,
}
"""Exit codes of pytest's own; those of the plugin pass through."""


def main(arguments: list[str]) -> int:
    """Play; the exit code of the run."""
    ended = pytest.main([*_ARGUMENTS, *arguments])
    return _EXITS.get(ended, int(ended)) if isinstance(ended, pytest.ExitCode) else int(ended)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
