"""CRI, what a container may use: changed at once, as a whole or not at all."""

from __future__ import annotations

from kubelet_conformance.contract import Container, Moment
from kubelet_conformance.contract.frame import KEPT, Findings, broken, contract, observer
from kubelet_conformance.contract.words import call, done, failed
from kubelet_conformance.contracts.runtime_calls import refusal
from kubelet_conformance.contracts.runtime_expected import as_expected, expected
from kubelet_conformance.trace.bodies import (
    ContainerStatusReply,
    LinuxResources,
    UpdateContainerResourcesRequest,
)


class _Limits:
    """What a container may use, as told and as asked for since."""

    def __init__(self) -> None:
        self.told: dict[str, int] = {}
        self.owed: dict[str, int] = {}
        """What the next status has to say, of what updates named."""
        self.seq = 0
        self.under_way = 0


def _given(linux: LinuxResources) -> dict[str, int]:
    values = {name: getattr(linux, name) for name in LinuxResources.__struct_fields__}
    return {name: value for name, value in values.items() if value}


@contract("CRI-28", on=done("ContainerStatus"))
def update_is_seen_at_once(m: Moment, container: Container) -> Findings:
    """After UpdateContainerResources a status that tells resources has the new values.

    After one that failed it has the old ones, every one.
    """
    status = m.response(ContainerStatusReply).status
    linux = status.resources.linux if status and status.resources else None
    if linux is None:
        return None
    limits = container.note(_Limits)
    if limits.under_way or m.call.seq < limits.seq:
        return None
    limits.told = _given(linux)
    for name, value in limits.owed.items():
        if limits.told.get(name, 0) != value:
            said = limits.told.get(name, "not told")
            return broken(f"{name} of {container.name} has to be {value} and is {said}", limits.seq)
    return KEPT if limits.owed else None


@observer(on=call("UpdateContainerResources"))
def _(m: Moment) -> None:
    if m.container is not None:
        m.container.note(_Limits).under_way += 1


@observer(on=done("UpdateContainerResources").either(failed("UpdateContainerResources")))
def _(m: Moment, container: Container) -> None:
    limits, asked = container.note(_Limits), _given(m.request(UpdateContainerResourcesRequest).linux)
    limits.under_way -= 1
    limits.seq = m.seq
    if m.reply.error is None:
        limits.owed |= asked
    elif refusal(m) is None:
        limits.owed, limits.told = {}, {}
    else:
        limits.owed |= {name: limits.told[name] for name in asked if name in limits.told}


update_is_seen_at_once.clause("seen", on=expected("CRI-28"))(as_expected)
