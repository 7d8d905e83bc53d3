"""Pull policies in earlier versions of a pod, which a sync in progress may still follow."""

import math

from kubelet_conformance.contract import Moment, Note, Pod
from kubelet_conformance.contract.definition import observer
from kubelet_conformance.contract.patterns import done, failed, pod_set
from kubelet_conformance.contracts.facts.timing import REACTION
from kubelet_conformance.contracts.sandbox.config import never_updated
from kubelet_conformance.trace.world.kubelet_view import informed_by

_SYNCING = (
    *("RunPodSandbox", "PullImage", "CreateContainer", "StartContainer", "StopContainer"),
    *("PodSandboxStatus", "ContainerStatus"),
)
_VERSIONS = pod_set().either(done(*_SYNCING), failed(*_SYNCING))


class _Former(Note):
    """Pull policies by image in the pod's versions that a sync may still follow, and its last step."""

    policies: set[tuple[str, str]] = set()
    last_t: float = -math.inf


@observer(on=_VERSIONS)
def _take_in(m: Moment, pod: Pod) -> None:
    if pod.spec is None:
        return
    former = pod.note(_Former)
    if m.manifest is not None:
        if not _is_followed(m, former):
            former.policies.clear()
        every = (*(pod.spec.init_containers or ()), *pod.spec.containers)
        former.policies |= {(one.image, one.pull_policy) for one in every}
        former.last_t = m.t
    elif former.policies and m.call.t <= former.last_t + REACTION:
        former.last_t = max(former.last_t, m.t)


def _is_followed(m: Moment, former: _Former) -> bool:
    return m.t <= informed_by(m, former.last_t) + REACTION


def may_follow_a_former_version(m: Moment) -> bool:
    """The pod has changed, and a sync may still follow what it was."""
    pod = m.pod
    if pod is None or never_updated(pod) or pod.changed_t is None:
        return False
    return m.t - pod.changed_t < REACTION or _is_followed(m, pod.note(_Former))


def former_policies(m: Moment, image: str) -> set[str]:
    """The pull policies of an image in those versions of the pod that a sync may still follow.

    That sync goes on from call to call; a call that names no pod may be one that it waits for.
    """
    former = m.pod.note(_Former) if m.pod is not None else None
    if former is None or not _is_followed(m, former):
        return set()
    return {policy for name, policy in former.policies if image in {name, f"{name}:latest"}}
