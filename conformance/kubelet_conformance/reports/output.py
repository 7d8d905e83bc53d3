"""Where output goes: reports to standard output or a file, messages to standard error."""

import contextlib
import io
import os
import sys
import traceback
from collections.abc import Callable
from pathlib import Path

import click
from rich.console import Console

from kubelet_conformance.contract.definition import BrokenModuleError
from kubelet_conformance.reports.safe import safe
from kubelet_conformance.run_record.conclusion import Exit
from kubelet_conformance.run_record.files import as_json, try_to_write, write_whole

_MESSAGE_CHARS_MAX = 2000


def complain(text: str, *, plain: bool = False, note: bool = False) -> None:
    """A message on standard error, without what a terminal would obey.

    A `note` reports something that may recover by itself. Where the text has several lines, those after the
    first are indented, so that none of them looks like a message of its own.
    """
    lines = text.splitlines() if plain else _indented(f"{'note' if note else 'error'}: {text}")
    with contextlib.suppress(OSError, ValueError):
        for line in lines:
            click.echo(safe(line, _MESSAGE_CHARS_MAX), err=True)


def _indented(text: str) -> list[str]:
    first, *more = text.split("\n")
    return [first, *(f"  {line.strip()}" for line in more)]


def drawn(draw: Callable[[Console], None], *, to_file: bool) -> str:
    """What is drawn on a console, with the colours and the width that standard output has."""
    is_terminal = not to_file and sys.stdout is not None and sys.stdout.isatty()
    text = io.StringIO()
    console = Console(
        file=text,
        force_terminal=True if is_terminal else False if to_file else None,
        color_system="auto",
        markup=False,
        highlight=False,
        emoji=False,
    )
    draw(console)
    return text.getvalue()


def report_internal_error(error: BaseException, *, debug: bool) -> Exit:
    """A mistake of our own: what to report, and a traceback only where one is wanted; the exit code."""
    if debug:
        complain("".join(traceback.format_exception(error)), plain=True)
    if isinstance(error, BrokenModuleError):
        complain(str(error))
        return Exit.INTERNAL_ERROR
    notes = "; ".join(getattr(error, "__notes__", ()))
    what = f"{type(error).__name__}: {error}" + (f" ({notes})" if notes else "")
    complain(
        f"internal error, {what}; this is a mistake in kubelet-conformance: "
        "please report it with the trace and with what --debug prints"
    )
    return Exit.INTERNAL_ERROR


def check_writable(output: str | None, *inputs: str, what: str = "the report") -> None:
    """Refuse a file for the report, or for `what` else, that cannot be one: before the work, not after it."""
    if output is None:
        return
    path = Path(output)
    if path.is_dir():
        raise click.ClickException(f"{output}: is a folder; name a file for {what}")
    if not path.parent.is_dir():
        raise click.ClickException(f"{output}: its folder does not exist; make it first")
    if path.is_file() or not path.exists():  # a pipe or a device is written to as it is
        _check_folder(output)
    for each in inputs:
        with contextlib.suppress(OSError):
            if path.samefile(each):
                raise click.ClickException(f"{output}: is an input too; name another file for {what}")


def _check_folder(output: str) -> None:
    """Refuse a file in a folder that takes no new file, such as one of a disk that is read-only or full."""
    try:
        try_to_write(Path(output).parent)
    except OSError as error:
        raise click.ClickException(
            f"{output}: cannot be written: {error.strerror or error}; name a file in another folder"
        ) from None


def deliver(text: str, output: str | None, *, prints: bool = True) -> None:
    """Print the report, or write it to a file, whole or not at all; if that fails, print it if it `prints`.

    A reader of standard output that has gone away, such as `head`, is no fault.
    """
    if output is None:
        print_now(text)
        return
    try:
        write_whole(Path(output), text)
    except OSError as error:
        if prints:
            print_now(text)
        instead = "; the report went to standard output" if prints else ""
        reason = error.strerror or str(error)
        raise click.ClickException(f"{output}: cannot be written: {reason}{instead}") from None


def deliver_as(
    form: str, output: str | None, value: Callable[[], object], draw: Callable[[Console], None]
) -> None:
    """Deliver a report for programs where the form is `json`, else one to read."""
    deliver(as_json(value()) if form == "json" else drawn(draw, to_file=output is not None), output)


def print_now(text: str) -> bool:
    """Print at once; false if nobody reads standard output any more."""
    stream = sys.stdout
    try:
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
        stream.write(text)
        stream.flush()
    except BrokenPipeError:
        _silence()
        return False
    except (OSError, AttributeError) as error:
        _silence()
        reason = getattr(error, "strerror", None) or "it is closed"
        raise click.ClickException(f"standard output: cannot be written: {reason}") from None
    return True


def _silence() -> None:
    """Let what is still buffered go nowhere, or Python would complain of it at its own end."""
    with contextlib.suppress(OSError, AttributeError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
