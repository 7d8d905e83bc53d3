"""Whether a pod needs a new sandbox (upstream: `PodSandboxChanged`).

`SANDBOXES` is tried from the top, and the first row that fits decides. The newest sandbox is judged, by the
time it was made (SANDBOX-03).
"""

from dataclasses import dataclass

import msgspec
from lightkube.models.core_v1 import Pod

from kubelet_reference.api import pods
from kubelet_reference.api.records import PodRecords, SandboxRecord
from kubelet_reference.util.decision_table import Row, Table


class SandboxChange(msgspec.Struct, frozen=True):
    """Whether a new sandbox is needed, its attempt number, and the id of the one that is there.

    `old_id` is "" where there is none, or where only the network mode differs (SANDBOX-09).
    """

    changed: bool
    attempt: int
    old_id: str


class Sandboxes(msgspec.Struct, frozen=True):
    """The sandboxes of a pod, newest first, and what the pod wants of them."""

    known: tuple[SandboxRecord, ...]
    wants_host_network: bool

    @property
    def newest(self) -> SandboxRecord:
        """The one made last."""
        return self.known[0]

    @property
    def several_ready(self) -> bool:
        """More than one is ready, so that none can be trusted to be the pod's."""
        return sum(sandbox.ready for sandbox in self.known) > 1

    @property
    def has_no_address(self) -> bool:
        """The runtime reports the newest one's own network, and no IP in it."""
        return not self.newest.host_network and self.newest.ips is not None and not self.newest.ips


@dataclass(frozen=True, slots=True)
class SandboxRow(Row[Sandboxes, bool]):
    """Where `when` holds, the pod needs a new sandbox (`then`), or does not.

    `reports_old` says whether the old one's id is reported.
    """

    reports_old: bool = True


SANDBOXES = Table[Sandboxes, SandboxRow](
    SandboxRow("none", lambda s: not s.known, then=True, reports_old=False),
    SandboxRow("several ready", lambda s: s.several_ready, then=True),
    SandboxRow("not ready", lambda s: not s.newest.ready, then=True),
    SandboxRow(
        "other network", lambda s: s.newest.host_network != s.wants_host_network, then=True, reports_old=False
    ),
    SandboxRow("no address", lambda s: s.has_no_address, then=True),
    SandboxRow("good", lambda _: True, then=False),
)


def sandbox_changed(pod: Pod, records: PodRecords) -> SandboxChange:
    """Whether the pod needs a new sandbox (SANDBOX-02); the first has attempt 0, each later one 1 more."""
    found = Sandboxes(records.sandboxes, pods.host_network(pod))
    row = SANDBOXES.row(found)
    if not found.known:
        return SandboxChange(row.then, 0, "")
    attempt = found.newest.attempt + row.then
    return SandboxChange(row.then, attempt, found.newest.id if row.reports_old else "")
