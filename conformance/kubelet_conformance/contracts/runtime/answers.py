"""CRI: calls that every runtime answers, and fields that an answer must have."""

from __future__ import annotations

from kubelet_conformance.contract import Moment
from kubelet_conformance.contract.definition import Findings, broken
from kubelet_conformance.contract.patterns import done, failed
from kubelet_conformance.contracts.runtime.calls import (
    refusal,
    status_has_both_conditions,
    version_is_answered_in_full,
)
from kubelet_conformance.contracts.runtime.records import records_are_whole_and_of_what_was_asked
from kubelet_conformance.trace.format.bodies import ContainerStatusReply, PodSandboxStatusReply


def _answered(m: Moment) -> Findings:
    """A running runtime answers these calls."""
    code = refusal(m)
    return broken(f"{m.call.rpc} is answered by {code}") if code else None


for _contract, _rpc in ((version_is_answered_in_full, "Version"), (status_has_both_conditions, "Status")):
    _contract.clause("answered", on=failed(_rpc))(_answered)


@records_are_whole_and_of_what_was_asked.clause("status", on=done("ContainerStatus", "PodSandboxStatus"))
def answer_has_a_status(m: Moment) -> Findings:
    """An answer to ContainerStatus or PodSandboxStatus contains a status."""
    if m.call.rpc == "ContainerStatus":
        status: object = m.response(ContainerStatusReply).status
    else:
        status = m.response(PodSandboxStatusReply).status
    return None if status is not None else broken(f"{m.call.rpc} is answered without a status")
