"""LOOP: the kubelet's process goes on, whatever it is given.

LOOP: a kubelet that ends by itself, or that panics.
"""

from kubelet_conformance.contract import Moment
from kubelet_conformance.contract.definition import KEPT, Findings, broken, contract
from kubelet_conformance.contract.patterns import kubelet
from kubelet_conformance.contracts.facts.pod import END
from kubelet_conformance.trace.format.records import Kubelet


@contract("LOOP-22", on=kubelet("ended").either(END))
def kubelet_survives(m: Moment) -> Findings:
    """A kubelet survives every pod and every answer of the runtime: its process does not end by itself."""
    record = m.record
    if isinstance(record, Kubelet):
        how = f"signal {record.signal}" if record.signal else f"code {record.code}"
        return broken(f"the kubelet ends by itself with {how}")
    return KEPT if m.node.lives else None


@kubelet_survives.clause("panics", on=kubelet("panicked").either(END))
def kubelet_does_not_panic(m: Moment) -> Findings:
    """A kubelet does not panic, though it may recover from that and only log it."""
    record = m.record
    if isinstance(record, Kubelet):
        return broken("\n  ".join(["the kubelet logs a panic:", *record.log]))
    return KEPT if m.node.lives else None
