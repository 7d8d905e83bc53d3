"""The hash of a container's definition."""

import pytest
from lightkube.models.core_v1 import Container, EnvVar

from kubelet_reference.kuberuntime.actions.container_hash import container_hash
from kubelet_reference.util.versions import Behaviour

NEW, OLD = Behaviour.of(), Behaviour.of("1.26")


@pytest.mark.parametrize(
    ("name", "image", "expected"), [("c1", "img:1", "e4aac79f"), ("dbg", "img:2", "1fa56ea")]
)
def test_is_that_of_a_real_kubelet(name: str, image: str, expected: str) -> None:
    """The hash is the one that a kubelet of 1.32 wrote into its annotation (RESTART-08)."""
    assert container_hash(Container(name=name, image=image), NEW) == expected


def test_scope() -> None:
    """From 1.31 on only name and image count, before that the whole definition (RESTART-08)."""
    plain, more = (
        Container(name="c1", image="img:1"),
        Container(name="c1", image="img:1", env=[EnvVar(name="A")]),
    )

    assert container_hash(plain, NEW) == container_hash(more, NEW)
    assert container_hash(plain, OLD) != container_hash(more, OLD)
