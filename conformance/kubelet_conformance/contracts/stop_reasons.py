"""Whether a container is stopped for its new definition."""

from __future__ import annotations

from kubelet_conformance.contract.frame import observer
from kubelet_conformance.contract.words import Pattern, call
from kubelet_conformance.trace.bodies import ContainerConfig
from kubelet_conformance.trace.images import made_of
from kubelet_conformance.trace.moment import Moment
from kubelet_conformance.trace.views import Container
from kubelet_conformance.trace.written_keys import Annotation


def changed(container: Container, config: ContainerConfig | None = None) -> bool:
    """Its definition is another one by now: the wanted image, or the hash of what is asked for."""
    old, spec = container.config, container.spec
    if old is None:
        return False
    if config is not None:
        return old.annotations.get(Annotation.HASH) != config.annotations.get(Annotation.HASH)
    image = made_of(container)
    return bool(spec and spec.image and image and spec.image != image)


def stop_to_remake(container: Container) -> Pattern:
    """It has ended by itself, and is stopped for its new definition or its probe by a sync that did not know.

    That sync makes it again whatever its code (computePodActions).
    """

    def fits(m: Moment) -> bool:
        spec = container.spec
        probed = spec is not None and bool(spec.liveness_probe or spec.startup_probe)
        return m.container is container and (probed or changed(container))

    return call("StopContainer").where(fits)


class _Stop:
    """Whether its definition was another one when the container was stopped, or its pod was to go."""

    def __init__(self) -> None:
        self.changed = self.going = False


@observer(on=call("StopContainer"))
def take_in_stop(m: Moment) -> None:
    """Keep what `was_changed` tells up to date, and `was_going`."""
    container, pod = m.container, m.pod
    if container is not None and changed(container):
        container.note(_Stop).changed = True
    if container is not None and pod is not None and pod.termination is not None:
        container.note(_Stop).going = True


def was_changed(container: Container) -> bool:
    """It was stopped for another definition, though it may be wanted as it was by now."""
    return container.note(_Stop).changed


def was_going(container: Container) -> bool:
    """It was stopped as its pod was to go: the file of a static one went, and may be back by now."""
    return container.note(_Stop).going
