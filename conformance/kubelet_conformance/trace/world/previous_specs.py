"""Earlier specs of a pod: a sync that began before a change of the spec still uses the old one."""

from collections import deque

from kubelet_conformance.trace.format.manifests import ContainerSpec, PodSpec
from kubelet_conformance.trace.world.moment import Moment
from kubelet_conformance.trace.world.views import Pod

_KEPT = 4


class _Former:
    def __init__(self) -> None:
        self.specs: deque[PodSpec] = deque(maxlen=_KEPT)


def spec_is_sent(moment: Moment) -> None:
    """The pod is sent anew, perhaps with another spec than the one known so far."""
    pod, manifest = moment.pod, moment.manifest
    if pod is not None and pod.spec is not None and manifest is not None and pod.spec != manifest.spec:
        pod.note(_Former).specs.append(pod.spec)


def former_container(pod: Pod, name: str) -> ContainerSpec | None:
    """The spec that an init or app container had before the last change of its pod's spec."""
    found = former_containers(pod, name)
    return found[-1] if found else None


def former_containers(pod: Pod, name: str) -> list[ContainerSpec | None]:
    """The specs that it had before the last few changes, oldest first; None where a spec has none of it."""
    specs = pod.note(_Former).specs
    return [spec.entries.get(name, ("", None))[1] for spec in specs]
