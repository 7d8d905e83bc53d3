"""The kubelet at a moment: whether it runs, sees its runtime, and can be reached by its sources.

A kubelet is not at fault for being late where one of these says no.
"""

from msgspec import field

from kubelet_conformance.contract import Moment, Note
from kubelet_conformance.contract.applicability import Version
from kubelet_conformance.contract.definition import observer
from kubelet_conformance.contract.patterns import kubelet
from kubelet_conformance.contracts.facts.timing import REACTION, STATUS_BATCH
from kubelet_conformance.trace.world.kubelet_view import kubelet_view


class _Starts(Note):
    """The starts of kubelets of two versions that take turns: the record of each, and its version."""

    known: list[tuple[int, Version]] = field(default_factory=list[tuple[int, Version]])


@observer(on=kubelet("started"))
def _(m: Moment) -> None:
    if m.kubernetes is not None and m.world.releases:
        m.node.note(_Starts).known.append((m.seq, m.kubernetes))


def version_at(m: Moment, seq: int) -> Version | None:
    """The version of the kubelet that ran at that record, where kubelets of two versions take turns."""
    return next((version for at, version in reversed(m.node.note(_Starts).known) if at < seq), None)


def is_of_another_version(m: Moment) -> bool:
    """The kubelet that runs has taken the place of one of another version."""
    return m.world.is_renewed


def sees_its_runtime(m: Moment) -> bool:
    """The kubelet is up, has listed what runs, and its listings succeed."""
    node = m.node
    return node.kubelet_up and node.relisted_t is not None and not node.listing_failed


def sees_a_ready_runtime(m: Moment) -> bool:
    """As `sees_its_runtime`, and the runtime says that it is ready."""
    return sees_its_runtime(m) and m.node.runtime_ready


def is_informed(m: Moment) -> bool:
    """As `sees_its_runtime`, and updates are handled: the API server answers, the runtime is not down."""
    return sees_its_runtime(m) and not kubelet_view(m).is_cut_off(m.t)


def api_is_away(m: Moment) -> bool:
    """The API server cannot be reached."""
    return kubelet_view(m).api_away_t is not None


def final_phase_is_written(m: Moment) -> float:
    """Within how many seconds the final phase is written of a pod that is refused now.

    A kubelet that starts holds it back until housekeeping has synced all pods, and its first batch writes it.
    """
    started_t = m.node.started_t
    return REACTION + (0.0 if started_t is None else max(0.0, started_t + STATUS_BATCH - m.t))
