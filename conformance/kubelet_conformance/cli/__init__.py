"""The command `kubelet-conformance`: whatever happens ends with a documented exit code and no traceback."""

from collections.abc import Sequence

__all__ = ("main",)

_INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command with these arguments, or those of the process; the exit code."""
    try:
        # Late, so that Ctrl-C while the program still loads is met here too.
        from kubelet_conformance.cli.group import run  # noqa: PLC0415

        return run(arguments)
    except KeyboardInterrupt:
        return _INTERRUPTED
