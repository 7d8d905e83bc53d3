"""The decision tables of the reference, for the guide to show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module

_TABLES: Mapping[str, tuple[str, ...]] = {
    "27.1": ("sandbox_changed.SANDBOXES",),
    "27.2": ("new_sandbox.NEW_SANDBOX",),
    "27.3": ("restart_policy.RESTARTS", "running_containers.RUNNING"),
    "27.4": ("init_progress.INIT_ROWS",),
    "27.5": ("sidecar_progress.SIDECAR_ROWS",),
    "27.6": ("worker_states.ROWS",),
    "27.7": ("phase.PHASES",),
    "27.8": ("status_rows.STATES", "status_rows.REFUSALS"),
    "27.9": ("stop_timeout.BASES", "stop_timeout.TIMEOUTS"),
    "27.10": ("config.changes.CHANGES",),
    "27.11": ("image_decision.ROWS",),
    "27.12": ("probe_worker.WITHOUT_INSTANCE", "probe_worker.WITH_INSTANCE"),
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
