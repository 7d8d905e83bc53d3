"""Where the reports of a record go: one to standard output or a file, others to files of their own."""

from collections.abc import Iterable
from dataclasses import dataclass

import click

from kubelet_conformance.reports.forms import FORMS, in_form
from kubelet_conformance.reports.output import check_writable, complain, deliver
from kubelet_conformance.run_record.conclusion import Exit, gravest
from kubelet_conformance.run_record.record import Record
from kubelet_conformance.trace.format.errors import BadInputError


@dataclass(frozen=True, slots=True)
class Delivery:
    """The reports that were asked for.

    Attributes:
        form: that of the report for standard output, or for the file `output`.
        files: further reports, each as FORMAT=FILE.
        debug: whether tracebacks of the suite itself are shown.
        verbose: whether a report for people names what it else only counts.
    """

    form: str = "terminal"
    output: str | None = None
    files: tuple[str, ...] = ()
    debug: bool = False
    verbose: bool = False

    def check(self, *inputs: str) -> None:
        """Refuse forms that there are not and files that cannot be written, before the work."""
        check_writable(self.output, *inputs)
        for _, file in self._files():
            check_writable(file, *inputs)

    def _files(self) -> Iterable[tuple[str, str]]:
        for each in self.files:
            form, _, file = each.partition("=")
            if form not in FORMS or not file:
                raise BadInputError(
                    f"--report {each}: write FORMAT=FILE, with a format of {', '.join(FORMS)}"
                )
            yield form, file

    def deliver(self, record: Record) -> Exit:
        """Deliver all; a report that cannot be written goes to standard output, or is complained of."""
        return gravest(self.deliver_first(record), self.deliver_files(record))

    def deliver_first(self, record: Record) -> Exit:
        """Print the report, or write it to its file; printed if that cannot be written."""
        text = self._text(self.form, record, to_file=self.output is not None)
        return _delivered(text, self.output)

    def deliver_files(self, record: Record) -> Exit:
        """Write the further reports."""
        ended = Exit.OK
        for form, file in self._files():
            text = self._text(form, record, to_file=True)
            ended = gravest(ended, _delivered(text, file, prints=False))
        return ended

    def _text(self, form: str, record: Record, *, to_file: bool) -> str:
        return in_form(form, record, to_file=to_file, debug=self.debug, verbose=self.verbose)


def _delivered(text: str, output: str | None, *, prints: bool = True) -> Exit:
    try:
        deliver(text, output, prints=prints)
    except click.ClickException as error:
        complain(error.format_message())
        return Exit.BAD_INPUT
    return Exit.OK
