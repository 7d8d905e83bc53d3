"""Questions about a pod."""

import pytest
from decisions_bench import a_pod
from lightkube.models.core_v1 import Pod
from lightkube.models.meta_v1 import ObjectMeta

from kubelet_reference.api import pods
from kubelet_reference.api.restart_policy import restarts_on_failure


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("c1", "spec.containers{c1}"),
        ("i1", "spec.initContainers{i1}"),
        ("dbg", "spec.ephemeralContainers{dbg}"),
        ("other", ""),
    ],
)
def test_field_path(name: str, expected: str) -> None:
    """A container is named by the list it stands in (EVENTS-03)."""
    pod = a_pod(inits=("i1",), ephemeral=("dbg",))

    assert pods.field_path(pod, name) == expected
    assert (pods.container(pod, name) is not None) == bool(expected)


def test_where_it_comes_from() -> None:
    """A pod without an annotation is the API server's; a mirror is no static pod (STATIC-03, STATIC-11)."""
    bare, static, mirror = Pod(metadata=ObjectMeta(name="web")), a_pod(source="file"), a_pod(mirror="hash")

    assert [pods.is_static(pod) for pod in (bare, static, mirror)] == [False, True, False]
    assert [pods.is_mirror(pod) for pod in (bare, static, mirror)] == [False, False, True]


def test_names() -> None:
    """A pod has two names: namespace first for people, last for the kubelet."""
    assert (pods.key(a_pod()), pods.full_name(a_pod())) == ("default/web", "web_default")


def test_what_is_left_out() -> None:
    """A pod without a spec has the defaults: grace 2 s, policy Always, no containers, no host network."""
    bare = Pod()

    assert pods.grace_seconds(bare) == 2
    assert pods.grace_seconds(a_pod(spec={"terminationGracePeriodSeconds": 0})) == 0
    assert pods.restart_policy(bare) == "Always"
    assert pods.all_containers(bare) == ()
    assert (pods.host_network(bare), pods.deletion_asked(bare), pods.phase(bare)) == (False, False, "")


def test_deletion() -> None:
    """A deletion is known by its time stamp, and carries its own grace period."""
    assert pods.deletion_asked(a_pod(deleting=True))
    assert pods.deletion_grace_seconds(a_pod(deleting=True)) == 30
    assert pods.deletion_grace_seconds(a_pod()) is None


def test_sidecars() -> None:
    """A sidecar is an init container with restartPolicy Always (SIDECAR-01)."""
    assert pods.has_sidecars(a_pod(inits=("i1", "sc")))
    assert not pods.has_sidecars(a_pod(inits=("i1",)))


@pytest.mark.parametrize(("policy", "expected"), [("Always", True), ("OnFailure", True), ("Never", False)])
def test_restarts_on_failure(policy: str, expected: bool) -> None:  # noqa: FBT001 - a case
    """Every policy but Never starts a failed container again."""
    assert restarts_on_failure(a_pod(policy=policy)) is expected
