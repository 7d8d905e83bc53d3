"""The forms a run's report can take."""

from kubelet_conformance.reports.junit import as_junit
from kubelet_conformance.reports.markdown import as_markdown
from kubelet_conformance.reports.output import as_json, drawn
from kubelet_conformance.reports.played_run import PlayedRun
from kubelet_conformance.reports.terminal import RunReport

FORMS = ("terminal", "json", "junit", "markdown")


def in_form(form: str, run: PlayedRun, *, to_file: bool) -> str:
    """The report as text; in colours only where it goes to a terminal."""
    if form == "json":
        return as_json(run.report())
    if form == "junit":
        return as_junit(run)
    if form == "markdown":
        return as_markdown(run)
    return drawn(lambda console: RunReport(run, console).print(), to_file=to_file)
