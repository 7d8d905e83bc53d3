"""When sandboxes and containers run, as the records of a trace show."""

from dataclasses import dataclass, field
from typing import NamedTuple

from kubelet_conformance.reports.timeline.model import Life
from kubelet_conformance.trace.format.bodies import RunPodSandboxReply, RunPodSandboxRequest
from kubelet_conformance.trace.format.records import Reply, RuntimeEvent
from kubelet_conformance.trace.world.moment import Moment

_ENDING = frozenset({"StopContainer", "RemoveContainer", "StopPodSandbox", "RemovePodSandbox"})


class RunChange(NamedTuple):
    """A sandbox or a container, by its id, runs from now on, or no longer."""

    id: str
    attempt: int | None
    """Its attempt where it runs from now on; None where it does no longer."""


def run_change(moment: Moment) -> RunChange | None:
    """What runs from this record on, or no longer, if anything does."""
    record, subject = moment.record, moment.container or moment.sandbox
    rpc = record.call.rpc if isinstance(record, Reply) and record.error is None else ""
    if rpc == "RunPodSandbox":
        attempt = moment.request(RunPodSandboxRequest).config.metadata.attempt
        return RunChange(moment.response(RunPodSandboxReply).pod_sandbox_id, attempt)
    if rpc == "StartContainer" and subject is not None:
        return RunChange(subject.id, subject.attempt)
    ends = rpc in _ENDING or moment.exit is not None or isinstance(record, RuntimeEvent)
    return RunChange(subject.id, None) if ends and subject is not None else None


@dataclass(slots=True)
class Lives:
    """The spans in which something lasts, and those that are not over, by what they are of."""

    found: list[Life]
    _open: dict[str, Life] = field(default_factory=dict[str, Life])

    def begin(self, key: str, lane: int, label: str, where: tuple[float, int]) -> None:
        """Something begins to last."""
        life = self._open[key] = Life(lane, label, where)
        self.found.append(life)

    def end(self, key: str, where: tuple[float, int]) -> None:
        """It lasts no longer, if it did."""
        life = self._open.pop(key, None)
        if life is not None:
            life.end = where
