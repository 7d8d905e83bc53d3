"""Situations that several contracts speak of, as patterns and predicates."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kubelet_conformance.contract.words import Pattern, deleted, pod_set, pod_unset

if TYPE_CHECKING:
    from kubelet_conformance.trace.moment import Moment

__all__ = ("TERMINATION_ASKED", "to_run")


def _is_being_deleted(m: Moment) -> bool:
    return m.manifest is not None and m.manifest.metadata.deletion_timestamp is not None


TERMINATION_ASKED: Pattern = (
    pod_set().where(_is_being_deleted, "it is being deleted").either(pod_unset(), deleted())
)
"""The pod is to go: deletionTimestamp, removal from its source, or a forced deletion."""


def to_run(m: Moment) -> bool:
    """The moment's pod was born in the trace, is wanted, and nobody asked it to go."""
    pod = m.pod
    return pod is not None and pod.born and pod.wanted and pod.termination is None and not pod.finished
