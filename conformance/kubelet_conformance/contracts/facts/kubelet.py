"""The kubelet at a moment: whether it runs, sees its runtime, and can be reached by its sources.

A kubelet is not at fault for being late where one of these says no.
"""

from kubelet_conformance.contract import Moment
from kubelet_conformance.trace.world.kubelet_view import kubelet_view


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
