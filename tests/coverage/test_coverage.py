"""What contracts rest on, and how it is reported; tests/scenarios looks at what is gathered by playing."""

from dataclasses import replace

from catalogue_pages import broken_by, strongest

from kubelet_conformance.campaigns.coverage import Coverage, Gathered, Witness
from kubelet_conformance.campaigns.coverage.report import coverage_report
from kubelet_conformance.contracts import every_contract
from kubelet_conformance.reports.catalogue import entries
from kubelet_conformance.targets.bugs import declared_bugs


def covered(contract: str, *, bugs: tuple[str, ...] = (), **activations: int) -> Gathered:
    """A contract with these witnesses and bugs."""
    [entry] = [each for each in entries(every_contract()) if each.row.id == contract]
    witnesses = tuple(Witness(name, count) for name, count in activations.items())
    return Gathered(entry, witnesses, sum(activations.values()), bugs)


def test_gaps_are_named() -> None:
    """A contract may lack a witness, one that exercises it, or a bug; one that is left out lacks nothing."""
    whole = covered("SANDBOX-01", bugs=("K8S-1",), one=3)

    assert whole.gaps == ()
    assert replace(whole, bugs=()).gaps == ("no bug",)
    assert covered("SANDBOX-01", bugs=("K8S-1",)).gaps == ("no witness",)
    assert covered("SANDBOX-01", bugs=("K8S-1",), one=3, idle=0).gaps == ("not exercised by idle",)
    assert covered("LOOP-02").gaps == ()


def test_strongest_bug_breaks_the_contract_and_little_else() -> None:
    """Of the bugs of each contract one is named that breaks it, and no other one breaks fewer contracts."""
    bugs = declared_bugs()
    named = {contract: strongest(each) for contract, each in bugs.items()}

    assert named.keys() == every_contract().keys()
    assert [contract for contract, bug in named.items() if contract not in broken_by(bug)] == []
    assert all(len(broken_by(named[each])) <= len(broken_by(bug)) for each in bugs for bug in bugs[each])
    assert strongest(()) == ""


def test_report_for_programs() -> None:
    """The report counts fates and gaps, and gives each witness with how often it exercises the contract."""
    report = coverage_report(Coverage([covered("SANDBOX-01", one=3), covered("LOOP-02")], {"a: b": 0}))

    assert report["totals"] == {
        "contracts": 2,
        "implemented": 1,
        "planned": 0,
        "excluded": 1,
        "with_gaps": 1,
    }
    assert report["contracts"][0]["witnesses"] == {"one": 3}
    assert report["contracts"][0]["gaps"] == ["no bug"]
    assert report["decisions"] == {"a: b": 0}
