"""One record, with the entities it is about, as judges see it."""

from collections.abc import Sequence
from typing import Any, TypeVar, cast

import msgspec

from kubelet_conformance.trace.format.header import Header
from kubelet_conformance.trace.format.manifests import Manifest, PodStatus
from kubelet_conformance.trace.format.records import Call, Record, Reply
from kubelet_conformance.trace.world.readings import ReportedContainer, ReportedSandbox
from kubelet_conformance.trace.world.views import Container, Exit, Node, Pod, Sandbox
from kubelet_conformance.trace.world.world import World

T = TypeVar("T")


class Moment(msgspec.Struct, eq=False):
    """A record in its context. The views hold the past; what is new is in the record.

    `keys` are the words by which judges subscribe to it, such as `call:StopContainer` or `fact:exited`.
    """

    world: World
    node: Node
    record: Record
    seq: int
    t: float
    keys: tuple[str, ...]
    call: Call = cast("Call", None)
    """The call that begins or ends here; only calls and replies have one."""
    reply: Reply = cast("Reply", None)
    """The reply that this record is; only replies have one."""
    pod: Pod | None = None
    sandbox: Sandbox | None = None
    container: Container | None = None
    manifest: Manifest | None = None
    """The new manifest (`pod` records with op set)."""
    status: PodStatus | None = None
    """The new status (`status` records)."""
    exit: Exit | None = None
    """The exit this record reports for the first time (`fact:exited`)."""
    replaced: Pod | None = None
    """The static pod whose manifest this record replaces by another pod."""
    containers_reported: Sequence[ReportedContainer] = ()
    """What the runtime newly reports of containers (`reported:container`)."""
    sandboxes_reported: Sequence[ReportedSandbox] = ()
    """What the runtime newly reports of sandboxes (`reported:sandbox`)."""

    memo: Any = None
    """Values about this moment that judges share."""

    @property
    def header(self) -> Header:
        """The trace's header."""
        return self.world.header

    @property
    def kubernetes(self) -> tuple[int, int] | None:
        """The Kubernetes version judged for, such as (1, 32); None where unknown."""
        return self.world.kubernetes

    def request(self, kind: type[T]) -> T:
        """The request of the call that begins or ends here."""
        body = self.call.request
        found: T = body.parsed if body.parsed_as is kind else body.view(kind)
        return found

    def response(self, kind: type[T]) -> T:
        """The response that ends the call here without an error."""
        body = self.reply.response
        if body is None:
            raise TypeError(f"the {self.call.rpc} at seq {self.seq} failed")
        found: T = body.parsed if body.parsed_as is kind else body.view(kind)
        return found
