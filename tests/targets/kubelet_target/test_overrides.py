"""Feature gates and configuration under which a user lets a kubelet play everything."""

from pathlib import Path

import pytest

from kubelet_conformance.targets.choice import Choice, UnknownTargetError
from kubelet_conformance.targets.kubelet_target.choosing import kubelet_process
from kubelet_conformance.targets.kubelet_target.overrides import enabled_gates, overrides_of


def test_gates_are_laid_over_the_file(tmp_path: Path) -> None:
    """Both options may be given, and gates several times."""
    config = tmp_path / "config.yaml"
    config.write_text("cgroupDriver: systemd\nfeatureGates: {A: true, B: true}\n", encoding="utf-8")

    assert overrides_of(("B=false,C=True", "AllBeta=true"), str(config)) == {
        "cgroupDriver": "systemd",
        "featureGates": {"A": True, "B": False, "C": True, "AllBeta": True},
    }
    assert overrides_of((), str(config))["featureGates"] == {"A": True, "B": True}


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        (Choice("reference-process", gates=("AllBeta",)), "--gates: 'AllBeta' is none: write AllBeta=true"),
        (Choice("reference-process", config="/nowhere"), "--config: /nowhere: cannot be read: No such file"),
        (
            Choice(gates=("AllBeta=true",)),
            "are for a kubelet in a process of its own: choose it with",
        ),
    ],
)
def test_what_cannot_be_set_is_refused(choice: Choice, message: str) -> None:
    """The message says what is wrong and what to do."""
    with pytest.raises(UnknownTargetError, match=message):
        kubelet_process(choice)


def test_a_kubelet_says_which_gates_are_on() -> None:
    """Its metrics name each gate with its stage."""
    metrics = (
        "# TYPE kubernetes_feature_enabled gauge\n"
        'kubernetes_feature_enabled{name="A",stage="BETA"} 1\n'
        'kubernetes_feature_enabled{name="B",stage=""} 0\n'
        "other 1\n"
    )

    assert enabled_gates(metrics) == {"A": True, "B": False}
