"""The published results of probes, and the queue on which changes of them reach the sync loop."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from kubelet_reference.results import ProbeKind, ProbeOutcome


@dataclass(frozen=True, slots=True)
class ProbeUpdate:
    """The published result of one probe of a container of the pod `uid` has changed (LOOP-12)."""

    kind: ProbeKind
    uid: str
    container_id: str
    outcome: ProbeOutcome


class ResultCache:
    """The results of one kind of probe by container id, so that no instance inherits another's (PROBE-26)."""

    def __init__(self, kind: ProbeKind, updates: asyncio.Queue[ProbeUpdate]) -> None:
        self._kind = kind
        self._updates = updates
        self._results: dict[str, ProbeOutcome] = {}

    def get(self, container_id: str) -> ProbeOutcome | None:
        """The published result, None before the first and after the last."""
        return self._results.get(container_id)

    def set(self, container_id: str, outcome: ProbeOutcome, uid: str) -> None:
        """Publish a result; only one that differs from the last is news."""
        if self._results.get(container_id) is outcome:
            return
        self._results[container_id] = outcome
        self._updates.put_nowait(ProbeUpdate(self._kind, uid, container_id, outcome))

    def remove(self, container_id: str) -> None:
        """Forget a container."""
        self._results.pop(container_id, None)
