"""Decision tables by the question that they answer; those of the reference kubelet, and which rows decide."""

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from importlib import import_module

from kubelet_reference.pod_workers import worker_table
from kubelet_reference.util.decision_table import taken

_TABLES: Mapping[str, tuple[str, ...]] = {
    "Is another sandbox needed?": ("kuberuntime.actions.sandbox_changed.SANDBOXES",),
    "What is done in a new sandbox?": ("kuberuntime.actions.pod_actions.NEW_SANDBOX",),
    "What becomes of an app container?": (
        "api.restart_policy.RESTARTS",
        "kuberuntime.actions.pod_actions.RUNNING",
    ),
    "Which init container is next?": ("kuberuntime.actions.init_containers.INIT_ROWS",),
    "How do sidecars and init containers go on?": ("kuberuntime.actions.sidecars.SIDECAR_ROWS",),
    "How does a pod worker go from state to state?": ("pod_workers.worker_table.ROWS",),
    "Which phase has a pod?": ("status.phase.PHASES",),
    "Which status has a container?": (
        "status.container_statuses.STATES",
        "status.container_statuses.REFUSALS",
    ),
    "How long does a container have to stop?": ("kuberuntime.container.stop_timeout.TIMEOUTS",),
    "What kind of change is it?": ("config.changes.CHANGES",),
    "Is an image pulled?": ("images.image_pull_rules.ROWS",),
    "What does a probe's worker do at a tick?": (
        "prober.worker.WITHOUT_INSTANCE",
        "prober.worker.WITH_INSTANCE",
    ),
}
"""The tables of each decision, by the question that it answers."""


def reference_tables() -> dict[str, list[tuple[str, list[Hashable]]]]:
    """For each question that the reference decides by tables: the place of each table, and its rows."""
    return tables_in("kubelet_reference", _TABLES)


def tables_in(
    package: str, places: Mapping[str, Sequence[str]]
) -> dict[str, list[tuple[str, list[Hashable]]]]:
    """The rows of the tables that stand at these places of a package, such as "status.phase.PHASES"."""
    return {
        question: [(place, _rows(f"{package}.{place}")) for place in those]
        for question, those in places.items()
    }


def rows_taken() -> Counter[Hashable]:
    """How often each row has decided in this process, in kubelets of the reference."""
    return taken


def name_of_row(row: Hashable) -> str:
    """The row's name in its table; of a pod worker's row where it starts, and what it takes."""
    if isinstance(row, worker_table.Row):
        return f"{row.state}, {row.event}{f' [{row.guard}]' if row.guard else ''}"
    return str(getattr(row, "name", "?"))


def _rows(place: str) -> list[Hashable]:
    module, _, name = place.rpartition(".")
    rows: Iterable[Hashable] = getattr(import_module(module), name)
    return list(rows)
