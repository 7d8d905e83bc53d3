"""The subresource `resize` of the fake API server: resources may change there, and nothing else."""

import pytest
from api_world import ApiWorld, pod, refused

SIZE = {"requests": {"cpu": "1"}, "limits": {"cpu": "2"}}


def test_resources_change_and_nothing_else_does() -> None:
    """Containers are named; what is not named of their resources stays."""
    world = ApiWorld()
    world.create("pods", pod(container={"resources": SIZE}))
    made = world.resize("web", {"app": {"requests": {"cpu": "1500m"}}})

    assert made["spec"]["containers"][0]["resources"] == {
        "requests": {"cpu": "1500m"},
        "limits": {"cpu": "2"},
    }
    assert made["spec"]["containers"][0]["image"] == "img:1"


def test_resources_change_nowhere_else() -> None:
    """An update of the pod itself that changes them is refused."""
    world = ApiWorld()
    world.create("pods", pod(container={"resources": SIZE}))
    change = {"spec": {"containers": [{"name": "app", "resources": {"requests": {"cpu": "1500m"}}}]}}

    assert "resources" in str(refused(world.patch, "pods", "web", change))


@pytest.mark.parametrize("mirror", [True, False])
def test_what_a_resize_is_not_for(*, mirror: bool) -> None:
    """Neither images nor anything of a mirror change by it."""
    world = ApiWorld()
    made = pod()
    if mirror:
        made["metadata"]["annotations"] = {"kubernetes.io/config.mirror": "x"}
    world.create("pods", made)
    change = {"spec": {"containers": [{"name": "app", "image": "img:2"}]}}

    error = refused(world.patch, "pods", "web", change, "default", "resize")

    assert ("static pods" if mirror else "only cpu and memory") in str(error)
