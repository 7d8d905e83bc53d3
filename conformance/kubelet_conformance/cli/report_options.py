"""The options of commands that report on a record in every form."""

import click

from kubelet_conformance.cli.options import OneOf
from kubelet_conformance.reports.forms import FORMS

_WRITTEN = (
    "terminal and html to read, json for programs, junit for CI, markdown and badge for pages, perfetto for "
    "times."
)
FORM = click.option(
    "--format",
    "form",
    type=OneOf(FORMS),
    default="terminal",
    show_default=True,
    help=f"How the report is written: {_WRITTEN}",
)
REPORTS = click.option(
    "--report",
    "reports",
    metavar="FORMAT=FILE",
    multiple=True,
    help="Write one more report, in one of these formats, to FILE; may be repeated.",
)
