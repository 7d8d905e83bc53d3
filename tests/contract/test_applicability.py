"""What each release is held to: frozen lists, and gates that are on where nobody sets them."""

from pathlib import Path

import pytest

from kubelet_conformance.contract import applicability as module
from kubelet_conformance.contract.applicability import (
    is_on,
    is_required,
    parse_version,
    releases,
    requirements,
)
from kubelet_conformance.contract.checking import Result
from kubelet_conformance.contract.verdicts import Outcome, Verdict
from kubelet_conformance.contracts import every_contract
from kubelet_conformance.run_record.results import contract_result


def fails_for(*versions: str) -> bool:
    """Whether SANDBOX-04, a MUST, makes a run fail that is broken in traces of these versions."""
    result = Result(every_contract()["SANDBOX-04"])
    for version in versions:
        result.add(Outcome(Verdict.BROKEN, breaks=1), version)
    return contract_result(result).fails(strict=False, require_exercised=False)


def test_requirements_are_contracts_that_apply() -> None:
    """Every release from 1.24 to 1.36 is held to a list of contracts, each of which holds for it."""
    assert releases() == tuple(f"1.{minor}" for minor in range(24, 37))
    for release in releases():
        listed = requirements(release) or frozenset()
        version = parse_version(release)
        wrong = [
            each
            for each in listed
            if each not in every_contract() or every_contract()[each].versions.why_not(version)
        ]
        assert not wrong, release
        assert len(listed) > 300


def test_newer_rules_are_mentioned_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """A broken contract that is not on a release's list does not fail a run of that release."""
    frozen = {"1.26": frozenset[str](), "1.32": frozenset({"SANDBOX-04"})}
    monkeypatch.setattr(module, "requirements", frozen.get)

    assert not fails_for("1.26")
    assert fails_for("1.32")
    assert fails_for("1.26", "1.32")
    assert fails_for("unknown")


def test_without_a_list_everything_counts() -> None:
    """A release whose requirements are not frozen is held to all there is."""
    assert requirements("1.99") is None
    assert is_required("SANDBOX-04", "1.99")


@pytest.mark.parametrize(
    ("gate", "given", "version", "on"),
    [
        ("SidecarContainers", {}, "1.29", True),
        ("SidecarContainers", {}, "1.28", False),
        ("SidecarContainers", {"SidecarContainers": True}, "1.28", True),
        ("SidecarContainers", {"SidecarContainers": False}, "1.32", False),
        ("EventedPLEG", {}, "1.36", False),
    ],
)
def test_gates(gate: str, given: dict[str, bool], version: str, *, on: bool) -> None:
    """A gate is what it was set to, else what it is by default in that version."""
    assert is_on(gate, given, parse_version(version)) is on
    assert is_on(gate, {}, None) is False


def test_a_frozen_list_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The list of a release is written once and never again."""
    import freeze  # noqa: PLC0415 - a script

    monkeypatch.setattr(freeze, "FOLDER", tmp_path)

    assert freeze.main(["1.32"]) == 0
    assert "SANDBOX-04" in (tmp_path / "1.32.txt").read_text(encoding="utf-8").splitlines()
    assert freeze.main(["1.32"]) == 2
