"""Whether an image is used, pulled or refused, row by row, and what an image's name says."""

import pytest
from runtime_world import a_container, a_pod

from kubelet_reference.api import pods
from kubelet_reference.images import image_pull_rules as table
from kubelet_reference.images.image_names import pull_policy, registry_of, with_default_tag
from kubelet_reference.images.image_pull_rules import ImageFacts, ImageStep, Presence, image_decision

DIGEST = f"sha256:{64 * 'a'}"

# fmt: off
ROWS = [
    # policy,         presence,            backing off, step
    ("Always",        Presence.NOT_ASKED,  False,       ImageStep.PULL),
    ("Always",        Presence.NOT_ASKED,  True,        ImageStep.BACK_OFF),
    ("Always",        Presence.PRESENT,    False,       ImageStep.PULL),
    ("Always",        Presence.FAILED,     False,       ImageStep.INSPECT_ERROR),
    ("IfNotPresent",  Presence.PRESENT,    False,       ImageStep.USE),
    ("IfNotPresent",  Presence.PRESENT,    True,        ImageStep.USE),
    ("IfNotPresent",  Presence.ABSENT,     False,       ImageStep.PULL),
    ("IfNotPresent",  Presence.ABSENT,     True,        ImageStep.BACK_OFF),
    ("IfNotPresent",  Presence.FAILED,     False,       ImageStep.INSPECT_ERROR),
    ("Never",         Presence.PRESENT,    False,       ImageStep.USE),
    ("Never",         Presence.ABSENT,     False,       ImageStep.NEVER_PULL),
    ("Never",         Presence.ABSENT,     True,        ImageStep.NEVER_PULL),
    ("Never",         Presence.FAILED,     False,       ImageStep.INSPECT_ERROR),
]
UNPROVEN = [
    # policy,         presence,            backing off, step
    ("IfNotPresent",  Presence.PRESENT,    False,       ImageStep.PULL),
    ("IfNotPresent",  Presence.PRESENT,    True,        ImageStep.BACK_OFF),
    ("Never",         Presence.PRESENT,    False,       ImageStep.NEVER_PULL),
]
NAMES = [
    # image,               with a tag,             by default,     registry,    repository
    ("busybox",            "busybox:latest",       "Always",       "docker.io", "library/busybox"),
    ("busybox:latest",     "busybox:latest",       "Always",       "docker.io", "library/busybox"),
    ("busybox:1.36",       "busybox:1.36",         "IfNotPresent", "docker.io", "library/busybox"),
    ("team/app",           "team/app:latest",      "Always",       "docker.io", "team/app"),
    ("quay.io/team/app:2", "quay.io/team/app:2",   "IfNotPresent", "quay.io",   "team/app"),
    ("host:5000/app",      "host:5000/app:latest", "Always",       "host:5000", "app"),
    (f"app@{DIGEST}",      f"app@{DIGEST}",        "IfNotPresent", "docker.io", "library/app"),
]
# fmt: on


@pytest.mark.parametrize(("policy", "presence", "backing_off", "step"), ROWS)
def test_decision(policy: str, presence: Presence, *, backing_off: bool, step: ImageStep) -> None:
    """Policy, presence and back-off decide (IMAGE-02, IMAGE-06, IMAGE-07)."""
    assert image_decision(ImageFacts(policy, presence, backing_off, proven=True)) is step


@pytest.mark.parametrize(("policy", "presence", "backing_off", "step"), UNPROVEN)
def test_image_that_is_not_for_this_pod(
    policy: str, presence: Presence, step: ImageStep, *, backing_off: bool
) -> None:
    """An image that the pod has yet to show its right to is as good as absent (IMAGE-21)."""
    assert image_decision(ImageFacts(policy, presence, backing_off, proven=False)) is step


def test_every_row_decides_something() -> None:
    """No row of the table is hidden behind those above it."""
    facts = [
        ImageFacts(policy, presence, backing_off, proven=True) for policy, presence, backing_off, _ in ROWS
    ]
    deciding = {table.ROWS.row(each).name for each in facts}

    assert deciding == {row.name for row in table.ROWS}


@pytest.mark.parametrize(("image", "tagged", "policy", "registry", "repository"), NAMES)
def test_names(image: str, tagged: str, policy: str, registry: str, repository: str) -> None:
    """A name without a tag means latest, and is pulled each time (IMAGE-04, IMAGE-19)."""
    one = pods.containers(a_pod(a_container(image=image, imagePullPolicy=None)))[0]

    assert with_default_tag(image) == tagged
    assert pull_policy(one) == policy
    assert registry_of(image) == (registry, repository)


@pytest.mark.parametrize("image", [":::", "", "UPPER", "a b", "app@sha256:short", "-app"])
def test_no_name(image: str) -> None:
    """What is no name is refused (IMAGE-05)."""
    with pytest.raises(ValueError, match="invalid reference format"):
        with_default_tag(image)
