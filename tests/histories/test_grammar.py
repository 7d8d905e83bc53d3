"""The fields of pods that histories have: all that there are, but for those with a reason against them."""

import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from lightkube.models.core_v1 import Container, PodSpec

from kubelet_conformance.campaigns.histories.pod_strategies import pods

PAGE = Path(__file__).parents[2] / "docs" / "histories.md"


def fields_of(owner: str) -> dict[str, bool]:
    """The fields in the table of the guide, and whether they are said to be generated."""
    table = PAGE.read_text("utf-8").partition(f"| of a {owner} |")[2].partition("\n\n")[0]
    rows = [row.split("|") for row in table.splitlines()[2:]]
    named = [(name, row[2].strip() == "generated") for row in rows for name in re.findall(r"`(\w+)`", row[1])]
    assert len(dict(named)) == len(named), "a field has two rows"
    return dict(named)


@pytest.mark.parametrize(("owner", "model"), [("pod", PodSpec), ("container", Container)])
def test_every_field_is_accounted_for(owner: str, model: type) -> None:
    """A field that Kubernetes adds has to be generated, or to get a reason why it is not."""
    assert fields_of(owner).keys() == set(vars(model)["__annotations__"])


def test_what_is_said_to_be_generated_is() -> None:
    """No more and no less than the guide says comes up in the pods of histories."""
    of_pods: set[str] = set()
    of_containers: set[str] = set()

    @settings(
        max_examples=400,
        derandomize=True,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
    @given(pods())
    def draw(manifest: dict[str, dict[str, list[dict[str, object]]]]) -> None:
        spec = manifest["spec"]
        of_pods.update(spec)
        for each in (*spec["containers"], *spec.get("initContainers", ())):
            of_containers.update(each)

    draw()

    for owner, drawn in (("pod", of_pods), ("container", of_containers)):
        assert drawn == {name for name, generated in fields_of(owner).items() if generated}
