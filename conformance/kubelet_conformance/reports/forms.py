"""The forms that the report of a record can take."""

from collections.abc import Callable, Mapping

import msgspec

from kubelet_conformance.reports.formats.badge import as_badge
from kubelet_conformance.reports.formats.junit import as_junit
from kubelet_conformance.reports.formats.markdown import as_markdown
from kubelet_conformance.reports.formats.perfetto import as_perfetto
from kubelet_conformance.reports.output import drawn
from kubelet_conformance.reports.terminal import TerminalReport
from kubelet_conformance.run_record.files import as_json
from kubelet_conformance.run_record.record import Record


def _as_run_json(record: Record) -> str:
    return as_json(msgspec.to_builtins(record.run))


def _as_html(record: Record) -> str:
    # Late: only this form needs the templates.
    from kubelet_conformance.reports.html import page  # noqa: PLC0415

    return page(record)


_RENDERED: Mapping[str, Callable[[Record], str]] = {
    "markdown": as_markdown,
    "html": _as_html,
    "junit": as_junit,
    "json": _as_run_json,
    "badge": as_badge,
    "perfetto": as_perfetto,
}
"""The forms that are files; a new one needs a line here and nothing else."""
FORMS = ("terminal", *_RENDERED)


def in_form(form: str, record: Record, *, to_file: bool, debug: bool = False, verbose: bool = False) -> str:
    """The report as text; in colours only where it goes to a terminal, with tracebacks only to `debug`."""
    if form == "terminal":
        return drawn(
            lambda console: TerminalReport(record, console, debug=debug, verbose=verbose).print(),
            to_file=to_file,
        )
    return _RENDERED[form](record)
