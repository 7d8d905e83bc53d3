"""The decision tables of the reference and of the suite, and which rows of them decide in a run."""

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping
from functools import cache

from kubelet_conformance.contracts.tables.table import taken
from kubelet_conformance.targets.in_process.decision_tables import (
    name_of_row,
    reference_tables,
    rows_taken,
    tables_in,
)

_SUITE: Mapping[str, tuple[str, ...]] = {
    "Is another sandbox needed?": ("facts.sandbox.REPLACEMENTS",),
    "What becomes of an app container?": ("tables.container.APPS",),
    "Which init container is next?": ("tables.container.INITS",),
    "Which phase has a pod?": ("tables.status.COUNTS", "tables.status.PHASES"),
    "Which status has a container?": ("tables.status.STATES",),
    "How long does a container have to stop?": ("tables.stop.STOPS",),
    "What kind of change is it?": ("tables.pod.CHANGES",),
    "Is an image pulled?": ("tables.container.IMAGES",),
}


def suite_tables() -> dict[str, list[tuple[str, list[Hashable]]]]:
    """For each question that the suite judges by tables: the place of each table, and its rows."""
    return tables_in("kubelet_conformance.contracts", _SUITE)


@cache
def decision_rows() -> Mapping[str, Hashable]:
    """Every row of every table, by a name such as "reference status.phase.PHASES: P4"."""
    return dict(_named())


def _named() -> Iterator[tuple[str, Hashable]]:
    for whose, tables in (("reference", reference_tables()), ("suite", suite_tables())):
        for place, rows in (each for found in tables.values() for each in found):
            for row in rows:
                yield f"{whose} {place}: {name_of_row(row)}", row


def forget_decisions() -> None:
    """Count anew from here on."""
    taken.clear()
    rows_taken().clear()


def decisions() -> Counter[str]:
    """How often each row has decided since then, in this process."""
    counted = taken + rows_taken()
    return Counter({name: counted[row] for name, row in decision_rows().items() if row in counted})
