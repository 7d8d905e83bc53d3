"""CRI: behaviour that no call shows by itself: a scenario that calls a runtime writes what it expected of it.

Only a trace without desired pods can say so: where a kubelet calls, an `expect` is about the kubelet.
"""

from kubelet_conformance.contract import Contract, Moment, Pattern
from kubelet_conformance.contract.definition import KEPT, Findings, broken, contract
from kubelet_conformance.contract.patterns import expects
from kubelet_conformance.trace.format.records import Expect


def expected(contract_id: str) -> Pattern:
    """The record states what this contract expects of the runtime."""
    return expects(contract_id).where(lambda m: m.header.channels.pods == "none")


def as_expected(_: Moment, expect: Expect) -> Findings:
    """What is called did as the scenario expects."""
    return KEPT if expect.met else broken(f"it is not so that {expect.awaited}")


def _as_awaited(_: Moment, expect: Expect) -> Findings:
    """What a scenario waits for in the name of this contract comes."""
    return KEPT if expect.met else broken(f"it did not come: {expect.awaited}")


def judges_waits(rule: Contract) -> None:
    """Add the clause "awaited" to a contract of kubelets: what a scenario waits for in its name comes."""
    rule.clause("awaited", on=expects(rule.id))(_as_awaited)


def judges_expectations(rule: Contract) -> None:
    """Add the clause "seen" to a contract of runtimes: what a scenario expects of one in its name is so."""
    rule.clause("seen", on=expected(rule.id))(as_expected)


@contract("CRI-32", on=expected("CRI-32"))
def work_goes_on_without_its_caller(m: Moment, expect: Expect) -> Findings:
    """The runtime completes a call that its caller has cancelled, and the call can be made again."""
    return as_expected(m, expect)


@contract("CRI-33", on=expected("CRI-33"))
def calls_for_other_pods_do_not_wait(m: Moment, expect: Expect) -> Findings:
    """A call that takes long for one pod holds up no call for another."""
    return as_expected(m, expect)
