"""Containers and sandboxes of which a status tells what was so before: no sync can have looked since.

What a probe has found is written at once, into the status that the last sync has made.
"""

from __future__ import annotations

from kubelet_conformance.contracts.reads import Reads, being_read
from kubelet_conformance.contracts.timing import REACTION
from kubelet_conformance.contracts.written import Entry, tells_of_its_sandbox_only
from kubelet_conformance.trace.looking import LATE_SECONDS
from kubelet_conformance.trace.moment import Moment
from kubelet_conformance.trace.under_way import since_when_at_work
from kubelet_conformance.trace.views import Pod


def is_unseen(m: Moment, entry: Entry, t: float) -> bool:
    """No sync can have looked since `t`: the kubelet was down or blind, or the pod's worker busy ever since.

    A result of a probe that is told meanwhile changes `ready` or `started` in the status before, no state.
    """
    is_same = entry.before is not None and entry.before.state == entry.status.state
    return tells_of_its_sandbox_only(m) or may_be_old(m, t, is_same=is_same)


def may_be_old(m: Moment, t: float, *, is_same: bool) -> bool:
    """The same, of something else in the status: `is_same` where that says of it what the one before said."""
    if _was_down(m, t) or _was_blind(m, t):
        return True
    return is_same and m.pod is not None and _at_work_since(m, m.pod) <= t + REACTION


def _at_work_since(m: Moment, pod: Pod) -> float:
    """Since when the pod's worker has been busy, or was until just now; now, if it had nothing to do."""
    since = since_when_at_work(pod, m.t)
    if since < m.t:
        return since
    called = [m.world.called.get(one.id) for one in pod.calls_open.values() if one.rpc == "RemoveContainer"]
    makes_room = any(one is not None and one.kind != "app" for one in called)
    return pod.at_work_t if makes_room or m.t - pod.worked_t <= REACTION else m.t


def _was_blind(m: Moment, t: float) -> bool:
    """The look that could tell the kubelet what was at `t` is not answered, or only was just now.

    Nor can a worker that waits to be told of an image look at anything else.
    """
    reads = m.node.note(Reads)
    if reads.bad_t > t and m.t - reads.bad_t <= REACTION:
        return True
    return any(m.t - one.t > LATE_SECONDS for one in being_read(m))


def _was_down(m: Moment, t: float) -> bool:
    """The kubelet that writes did not see what was at `t`."""
    relisted = m.node.relisted_t
    return relisted is None or relisted + REACTION > m.t or (m.node.down_t is not None and m.node.down_t > t)
