"""The decision tables of the reference, for the guide to show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module

_TABLES: Mapping[str, tuple[str, ...]] = {
    "27.1": ("kuberuntime.actions.sandbox_changed.SANDBOXES",),
    "27.2": ("kuberuntime.actions.pod_actions.NEW_SANDBOX",),
    "27.3": ("api.restart_policy.RESTARTS", "kuberuntime.actions.pod_actions.RUNNING"),
    "27.4": ("kuberuntime.actions.init_containers.INIT_ROWS",),
    "27.5": ("kuberuntime.actions.sidecars.SIDECAR_ROWS",),
    "27.6": ("pod_workers.worker_table.ROWS",),
    "27.7": ("status.phase.PHASES",),
    "27.8": ("status.container_statuses.STATES", "status.container_statuses.REFUSALS"),
    "27.9": ("kuberuntime.container.stop_timeout.BASES", "kuberuntime.container.stop_timeout.TIMEOUTS"),
    "27.10": ("config.changes.CHANGES",),
    "27.11": ("images.image_pull_rules.ROWS",),
    "27.12": ("prober.worker.WITHOUT_INSTANCE", "prober.worker.WITH_INSTANCE"),
}
"""Where each table of the catalogue's section 27 stands."""


def reference_tables() -> Mapping[str, Sequence[tuple[str, Sequence[object]]]]:
    """The tables by their number in the catalogue: each with its place, and its rows."""
    # The only door to the reference, opened by name.
    return {number: [(place, _rows(place)) for place in places] for number, places in _TABLES.items()}


def _rows(place: str) -> Sequence[object]:
    module, _, name = place.rpartition(".")
    rows: Sequence[object] = getattr(import_module(f"kubelet_reference.{module}"), name)
    return rows
