"""The page of a record: everything in one file, as the template lays it out."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib import resources

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from kubelet_conformance.contract.checking import REPORTED
from kubelet_conformance.contract.verdicts import Verdict
from kubelet_conformance.reports.html.contracts import contract_views
from kubelet_conformance.reports.html.facts import conclusion, facts, troubles
from kubelet_conformance.reports.html.scenarios import Pictures, scenario_views, stem_of
from kubelet_conformance.reports.safe import in_shell, safe
from kubelet_conformance.reports.trace_text.causes import groups_of
from kubelet_conformance.run_record.model import ContractResult, Run
from kubelet_conformance.run_record.record import Record

_TEXT_CHARS = 20_000
_NONE: Mapping[str, Sequence[str]] = {}
_ALWAYS = Verdict.KEPT, Verdict.BROKEN
"""The verdicts that the table of areas shows even where no contract has them."""


def page(
    record: Record, beside: str = "", bugs: Mapping[str, Sequence[str]] = _NONE, processes: int = 1
) -> str:
    """The whole page.

    Args:
        record: what it shows.
        beside: the folder of the pages that show one timeline each, if there are any.
        bugs: the ids of the seeded bugs that break each contract.
        processes: in how many processes it is drawn.
    """
    run = record.run
    groups = groups_of(run.having(Verdict.BROKEN), run)
    pictures = Pictures(record, groups)
    contracts = contract_views(record, groups)
    scenarios = scenario_views(record, pictures, contracts, processes)
    first = next((each.breaks[0].proof for each in contracts[:1] if each.breaks), None)
    shown = next((each for each in run.traces if first is not None and each.path == first.trace), None)
    return render(
        "page.html.j2",
        title=conclusion(run)[1],
        suite=run.suite,
        run=run,
        beside=beside,
        conclusion=conclusion(run),
        facts=facts(run),
        troubles=troubles(run),
        verdicts=REPORTED,
        shown_verdicts=verdicts_shown([run]),
        areas=run.by_area(),
        bugs=bugs,
        levels=levels_of(each.result for each in contracts),
        contracts=contracts,
        groups=groups,
        of_record=f" --record {in_shell(record.name)}" if record.name else "",
        scenarios=scenarios,
        hero=None if shown is None else pictures.view(shown, first),
    )


def render(template: str, **parts: object) -> str:
    """A page of this folder's template with these parts, of which texts are escaped."""
    return _environment().get_template(template).render(file=_file, **parts)


def verdicts_shown(runs: Sequence[Run]) -> list[Verdict]:
    """The verdicts that a table shows: what some contract has, and some always."""
    return [each for each in REPORTED if each in _ALWAYS or any(run.totals.get(each) for run in runs)]


def levels_of(contracts: Iterable[ContractResult]) -> list[str]:
    """The levels that these contracts have, the strictest first."""
    return sorted({each.level for each in contracts}, key=("MUST", "SHOULD", "MAY").index)


def timeline_pages(record: Record, back: str) -> Iterator[tuple[str, str]]:
    """Names and texts of pages that show one whole timeline each; `back` is the page that they belong to."""
    run = record.run
    pictures = Pictures(record, groups_of(run.having(Verdict.BROKEN), run))
    for trace in run.traces:
        view = pictures.whole(trace.path)
        if view is not None:
            name, shown = safe(trace.scenario or trace.path), record.shown(trace.path)
            parts = {"title": name, "trace": trace, "shown": shown, "view": view, "back": back}
            text = render("whole_timeline.html.j2", **parts)
            yield f"{stem_of(trace)}.html", text


@cache
def _environment() -> Environment:
    return Environment(
        loader=PackageLoader(__name__.rpartition(".")[0], "."),
        autoescape=True,
        finalize=_printable,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _printable(value: object) -> object:
    """Texts without characters that do not print; markup of our own as it is."""
    return safe(value, _TEXT_CHARS) if isinstance(value, str) and not isinstance(value, Markup) else value


def _file(name: str) -> Markup:
    """The content of a file beside this module, as it is: it is our own."""
    return Markup(resources.files(__package__ or "").joinpath(name).read_text("utf-8"))  # noqa: S704
