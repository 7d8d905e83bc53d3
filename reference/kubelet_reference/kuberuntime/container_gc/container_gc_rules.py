"""Which dead containers are removed by a garbage collection, and in which order."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from cri_api.v1 import api_pb2 as cri

from kubelet_reference.api import names
from kubelet_reference.api.records import NANOSECONDS
from kubelet_reference.util.settings import Settings


@dataclass(frozen=True, slots=True)
class Limits:
    """How many dead containers may stay.

    Attributes:
        per_container: of each container of a desired pod; negative is any number.
        in_all: of all pods together; negative is any number (GC-03).
        minimum_age: seconds that a container may stay in any case.
        now: the time of day, nanoseconds since the epoch.
    """

    per_container: int
    in_all: int
    minimum_age: float
    now: int

    def is_old(self, container: cri.Container) -> bool:
        """Whether the container is old enough to go."""
        return self.now - container.created_at >= self.minimum_age * NANOSECONDS


def limits_of(settings: Settings, now: int) -> Limits:
    """The limits that an operator has set."""
    return Limits(
        settings.maximum_dead_containers_per_container,
        settings.maximum_dead_containers,
        settings.minimum_container_ttl,
        now,
    )


def collectable_containers(
    containers: Iterable[cri.Container],
    may_go_entirely: Callable[[str], bool],
    limits: Limits,
) -> list[cri.Container]:
    """The containers to remove, in order: none that runs (GC-09), but those never started too (GC-08).

    Of each container of a pod the newest dead instances stay, unless the pod may go entirely. Where too many
    stay in all, each container keeps its fair share, one at least, and then the oldest of all go.
    """
    units: dict[tuple[str, str], list[cri.Container]] = {}
    for one in sorted(containers, key=_created_at):
        unit = one.labels.get(names.POD_UID, ""), one.labels.get(names.CONTAINER_NAME, "")
        if all(unit) and one.state != cri.CONTAINER_RUNNING and limits.is_old(one):
            units.setdefault(unit, []).append(one)
    found: list[cri.Container] = []
    for (uid, _), dead in units.items():
        kept = 0 if may_go_entirely(uid) else limits.per_container
        if kept >= 0:
            found += _oldest(dead, kept)
    return found + _too_many([dead for dead in units.values() if dead], limits.in_all)


def _too_many(units: list[list[cri.Container]], most: int) -> list[cri.Container]:
    """What has to go of containers that would stay, so that no more than `most` do (GC-03)."""
    if most < 0 or sum(map(len, units)) <= most:
        return []
    share = max(1, most // len(units))
    found = [one for dead in units for one in _oldest(dead, share)]
    left = sorted((one for dead in units for one in dead), key=_created_at)
    return found + _oldest(left, most)


def _oldest(records: list[cri.Container], kept: int) -> list[cri.Container]:
    """Take all but the `kept` last out of the list; what was taken."""
    taken = records[: -kept or None]
    del records[: len(taken)]
    return taken


def _created_at(container: cri.Container) -> int:
    return container.created_at
