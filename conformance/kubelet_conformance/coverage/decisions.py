"""The decision tables of the suite and of the reference, as a page of the guide."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from typing import cast

from kubelet_conformance.coverage.tables import table
from kubelet_conformance.targets.decisions import reference_tables

TITLES: Mapping[str, str] = {
    "27.1": "Is another sandbox needed?",
    "27.2": "What is done in a new sandbox?",
    "27.3": "What becomes of an app container?",
    "27.4": "Which init container is next?",
    "27.5": "How do sidecars and init containers go on?",
    "27.6": "How does a pod worker go from state to state?",
    "27.7": "Which phase has a pod?",
    "27.8": "Which status has a container?",
    "27.9": "How long does a container have to stop?",
    "27.10": "What kind of change is it?",
    "27.11": "Is an image pulled?",
    "27.12": "What does a probe's worker do at a tick?",
}
"""What each table of the catalogue's section 27 decides."""
_SUITE: Mapping[str, tuple[str, ...]] = {
    "27.1": ("sandboxes.REPLACEMENTS",),
    "27.2": ("tables.pod.SUCCESSORS",),
    "27.3": ("tables.container.APPS",),
    "27.4": ("tables.container.INITS",),
    "27.6": ("tables.pod.STAGES",),
    "27.7": ("tables.status.COUNTS", "tables.status.PHASES"),
    "27.8": ("tables.status.STATES",),
    "27.9": ("tables.stop.STOPS",),
    "27.10": ("tables.pod.CHANGES",),
    "27.11": ("tables.container.IMAGES",),
    "27.12": ("tables.container.TICKS",),
}
_PAGE = """# Decision tables

What a kubelet decides without looking anywhere else is written as tables, one condition
a row; the first row that holds decides. The reference decides by its own, and the suite
judges by its own, so that a mistake in one is no mistake in the other. Each row is a test
case of its own.
"""


def suite_tables() -> Mapping[str, Sequence[tuple[str, Sequence[object]]]]:
    """The suite's tables by their number in the catalogue: each with its place, and its rows."""
    return {number: [(place, _rows(place)) for place in places] for number, places in _SUITE.items()}


def _rows(place: str) -> Sequence[object]:
    module, _, name = place.rpartition(".")
    found = getattr(import_module(f"kubelet_conformance.contracts.{module}"), name)
    return list(cast("Iterable[object]", found.values() if isinstance(found, dict) else found))


def decisions_page() -> str:
    """The page: for each decision the rows of the reference and those of the suite."""
    return "\n".join([_PAGE, *_sections()])


def _sections() -> Iterator[str]:
    reference, suite = reference_tables(), suite_tables()
    for number, title in TITLES.items():
        if number in reference or number in suite:
            yield f"## {title}\n"
            for whose, tables in (("The reference", reference), ("The suite", suite)):
                for place, rows in tables.get(number, ()):
                    yield f"{whose}, `{place}`:\n\n{table(rows)}"
