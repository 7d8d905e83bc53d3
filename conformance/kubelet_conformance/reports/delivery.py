"""Where the reports of a record go: one to standard output or a file, others to files of their own."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from kubelet_conformance.reports.forms import FORMS, in_form
from kubelet_conformance.reports.output import check_writable, complain, deliver
from kubelet_conformance.reports.safe import in_shell, nearest
from kubelet_conformance.run_record.conclusion import Exit, gravest
from kubelet_conformance.run_record.files import write_whole
from kubelet_conformance.run_record.record import Record
from kubelet_conformance.run_record.writer import RecordWriter
from kubelet_conformance.trace.format.errors import BadInputError

BugsOf = Callable[[], Mapping[str, Sequence[str]]]


@dataclass(frozen=True, slots=True)
class Delivery:
    """The reports that were asked for.

    Attributes:
        form: that of the report for standard output, or for the file `output`.
        files: further reports, each as FORMAT=FILE.
        debug: whether tracebacks of the suite itself are shown.
        verbose: whether a report for people names what it else only counts.
        bugs: returns the ids of the seeded bugs that break each contract, for pages.
        processes: in how many processes pages are drawn; one where there are threads, of which copies of
            this process would have none.
        all_timelines: whether pages beside that of `html` show each timeline whole.
    """

    form: str = "terminal"
    output: str | None = None
    files: tuple[str, ...] = ()
    debug: bool = False
    verbose: bool = False
    all_timelines: bool = False
    bugs: BugsOf = dict
    processes: int = 1

    def check(self, *inputs: str) -> None:
        """Refuse forms that there are not and files that cannot be written, before the work."""
        check_writable(self.output, *inputs)
        for _, file in self._files():
            check_writable(file, *inputs)

    def _files(self) -> Iterable[tuple[str, str]]:
        for each in self.files:
            form, _, file = each.partition("=")
            if form not in FORMS or not file:
                known, near = ", ".join(FORMS), nearest(form, FORMS)
                raise BadInputError(f"--report {each}: write FORMAT=FILE, with a format of {known}{near}")
            yield form, file

    def deliver(self, record: Record, writer: RecordWriter | None = None) -> Exit:
        """Deliver all; a report that cannot be written goes to standard output, or is complained of."""
        return gravest(self.deliver_first(record), self.deliver_files(record, writer))

    def deliver_first(self, record: Record) -> Exit:
        """Print the report, or write it to its file; printed if that cannot be written."""
        return self._delivered(record, self.form, self.output)

    def deliver_files(self, record: Record, writer: RecordWriter | None = None) -> Exit:
        """Write the further reports; for one that cannot be written the record of the `writer` is kept."""
        ended = Exit.OK
        for form, file in self._files():
            ended = gravest(ended, self._delivered(record, form, file, prints=False))
        kept = "" if ended is Exit.OK or writer is None else writer.keep(record.run)
        if kept:
            again = f"`kubelet-conformance report {in_shell(kept)}`"
            complain(f"the record is kept: {again} reports on it once more", note=True)
        return ended

    def _delivered(self, record: Record, form: str, file: str | None, *, prints: bool = True) -> Exit:
        if form == "html":
            return self._page(record, file, prints=prints)
        to_file = file is not None
        text = in_form(form, record, to_file=to_file, debug=self.debug, verbose=self.verbose)
        return _written(text, file, prints=prints)

    def _page(self, record: Record, file: str | None, *, prints: bool) -> Exit:
        """Write the page, and if asked to a folder beside it with a page for each timeline."""
        # Late, as in `forms`: only this form needs the templates.
        from kubelet_conformance.reports.html import page, timeline_pages  # noqa: PLC0415

        if file is None or not self.all_timelines:
            return _written(page(record, "", self.bugs(), self.processes), file, prints=prints)
        folder = Path(file).with_name(f"{Path(file).stem}-timelines")
        ended = _written(page(record, folder.name, self.bugs(), self.processes), file, prints=prints)
        try:
            folder.mkdir(exist_ok=True)
            for name, text in timeline_pages(record, back=Path(file).name):
                write_whole(folder / name, text)
        except OSError as error:
            complain(f"{folder}: cannot be written: {error.strerror or error}")
            return Exit.BAD_INPUT
        return ended


def _written(text: str, output: str | None, *, prints: bool) -> Exit:
    try:
        deliver(text, output, prints=prints)
    except click.ClickException as error:
        complain(error.format_message())
        return Exit.BAD_INPUT
    return Exit.OK
