"""Whether a container is stopped for its new definition."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kubelet_conformance.trace.bodies import Annotation

if TYPE_CHECKING:
    from kubelet_conformance.trace.bodies import ContainerConfig
    from kubelet_conformance.trace.moment import Moment
    from kubelet_conformance.trace.views import Container

__all__ = ("changed", "take_in_stop", "was_changed")


def changed(container: Container, config: ContainerConfig | None = None) -> bool:
    """Its definition is another one by now: the wanted image, or the hash of what is asked for."""
    old, spec = container.config, container.spec
    if old is None:
        return False
    if config is not None:
        return old.annotations.get(Annotation.HASH) != config.annotations.get(Annotation.HASH)
    made_of = old.image.user_specified_image
    return bool(spec and spec.image and made_of and spec.image != made_of)


class _Stop:
    """Whether its definition was another one when the container was stopped."""

    def __init__(self) -> None:
        self.changed = False


def take_in_stop(m: Moment) -> None:
    """Keep what `was_changed` tells up to date: for `remember(on=call("StopContainer"))`."""
    container = m.container
    if container is not None and changed(container):
        container.note(_Stop).changed = True


def was_changed(container: Container) -> bool:
    """It was stopped for another definition, though it may be wanted as it was by now."""
    return container.note(_Stop).changed
