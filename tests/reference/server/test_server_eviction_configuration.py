"""The configuration of evictions and of the garbage collection of images: read, and refused by field."""

from pathlib import Path

import pytest

from kubelet_reference.server.configuration import Configuration
from kubelet_reference.server.errors import BadInputError
from kubelet_reference.server.loading import load
from kubelet_reference.server.run import Wanted, settings_of
from kubelet_reference.util.settings import Settings
from kubelet_reference.util.versions import Behaviour

NEWEST = Behaviour.of()


def loaded(folder: Path, text: str) -> Configuration:
    """The configuration of a file with this text."""
    file = folder / "k.yaml"
    head = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"
    file.write_text(head + text, encoding="utf-8")
    return load(str(file), {}, NEWEST)


def settings(folder: Path, text: str) -> Settings:
    """What the core is configured with."""
    return settings_of(Wanted(loaded(folder, text), NEWEST, "n", "/r"))


def test_every_field_arrives(tmp_path: Path) -> None:
    """Each field reaches the core; 0% and 100% stand for no threshold, and 0 s for the usual time."""
    text = """
imageGCHighThresholdPercent: 70
imageGCLowThresholdPercent: 0
imageMinimumGCAge: 1m
evictionHard: {memory.available: 1Gi, nodefs.available: 7.5%, nodefs.inodesFree: 0%, pid.available: 100%}
evictionSoft: {imagefs.available: "500"}
evictionSoftGracePeriod: {imagefs.available: 1m30s, imagefs.inodesFree: 1s}
evictionMaxPodGracePeriod: -1
evictionPressureTransitionPeriod: 0s
"""
    found = settings(tmp_path, text)

    assert (found.image_gc_high_threshold, found.image_gc_low_threshold) == (70, 0)
    assert found.image_minimum_gc_age == 60
    assert found.eviction_hard == {"memory.available": "1Gi", "nodefs.available": "7.5%"}
    assert found.eviction_soft == {"imagefs.available": "500"}
    assert found.eviction_soft_grace_period == {"imagefs.available": 90, "imagefs.inodesFree": 1}
    assert found.eviction_max_pod_grace_period == -1
    assert found.eviction_pressure_transition_period == 300


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (
            "evictionHard: null\n",
            {
                "memory.available": "100Mi",
                "nodefs.available": "10%",
                "nodefs.inodesFree": "5%",
                "imagefs.available": "15%",
                "imagefs.inodesFree": "5%",
            },
        ),
        ("evictionHard: {}\n", {}),
        ("evictionHard: {memory.available: 0%}\n", {}),
        ("evictionHard: {memory.available: 1Gi}\n", {"memory.available": "1Gi"}),
    ],
)
def test_thresholds_replace_the_usual_ones(tmp_path: Path, text: str, found: dict[str, str]) -> None:
    """Where nothing is said the kubelet's defaults hold; where something is, they are all gone (EVICT-01)."""
    assert settings(tmp_path, text).eviction_hard == found


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "evictionHard: {memory: 1Gi}",
            (
                "evictionHard.memory: unknown signal; known are imagefs.available, imagefs.inodesFree, "
                "memory.available, nodefs.available, nodefs.inodesFree, pid.available"
            ),
        ),
        (
            "evictionSoft: {containerfs.available: 5%}",
            (
                "evictionSoft.containerfs.available: follows from nodefs and imagefs, as in the kubelet: "
                "leave it out"
            ),
        ),
        *(
            (
                f"evictionHard: {{pid.available: {value}}}",
                (
                    "evictionHard.pid.available: expected a quantity above 0 such as 100Mi, or a share such "
                    f"as 10%, got {shown}"
                ),
            )
            for value, shown in [
                ("5", "5"),
                ("101%", '"101%"'),
                ("-5%", '"-5%"'),
                ("'0'", '"0"'),
                ("'%'", '"%"'),
            ]
        ),
        ("evictionHard: [5%]", "evictionHard: expected an object, got a list"),
        (
            "evictionSoft: {memory.available: 1Gi}",
            "evictionSoft.memory.available: has no grace period: add one to evictionSoftGracePeriod",
        ),
        (
            "evictionSoftGracePeriod: {memory.available: 0s}",
            ('evictionSoftGracePeriod.memory.available: expected a duration above 0 such as 1m30s, got "0s"'),
        ),
        (
            "evictionSoftGracePeriod: {memory.available: soon}",
            (
                "evictionSoftGracePeriod.memory.available: expected a duration above 0 such as 1m30s, "
                'got "soon"'
            ),
        ),
        (
            "evictionMaxPodGracePeriod: 5s",
            'evictionMaxPodGracePeriod: expected a whole number of at least -2147483648, got "5s"',
        ),
        (
            "evictionMinimumReclaim: {memory.available: 1Gi}",
            "evictionMinimumReclaim: a kubelet has this field, kubelet-reference does not: leave it out",
        ),
        (
            "imageGCHighThresholdPercent: 80",
            ("imageGCLowThresholdPercent: must be less than imageGCHighThresholdPercent, got 80 and 80"),
        ),
    ],
)
def test_mistake_about_evictions_is_named(tmp_path: Path, text: str, said: str) -> None:
    """The field and the signal are named, what was expected, and what stands there."""
    with pytest.raises(BadInputError) as caught:
        loaded(tmp_path, f"{text}\n")

    assert str(caught.value) == f"{tmp_path}/k.yaml: {said}"
