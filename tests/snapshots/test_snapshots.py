"""The reference does in every scenario what its snapshot says.

Where a change of behaviour is meant, `pytest tests/snapshots --snapshot-update` writes the texts anew and the
difference is there to be reviewed.
"""

import re
from pathlib import Path
from typing import Any

import pytest
from shared_plays import SharedPlays
from syrupy.assertion import SnapshotAssertion
from syrupy.extensions.single_file import SingleFileSnapshotExtension, WriteMode
from syrupy.location import PyTestLocation
from syrupy.types import SnapshotIndex

from kubelet_conformance.campaigns.snapshots.taking import scenarios_for, take, written
from kubelet_conformance.node import scenario_of
from kubelet_conformance.scenarios import every_scenario
from kubelet_conformance.targets.choice import Choice
from kubelet_fixtures import snapshots

CHOICE = Choice()
GUIDE = Path(__file__).resolve().parent.parent.parent / "docs/behaviour.md"


class TextFiles(SingleFileSnapshotExtension):
    """A text a scenario, in a folder an area, where users can read them too."""

    _write_mode = WriteMode.TEXT
    file_extension = "txt"

    @classmethod
    def dirname(cls, *, test_location: PyTestLocation) -> str:
        """The folder of an area, given by the test's parameter."""
        return str(snapshots() / _scenario(test_location).partition(".")[0])

    @classmethod
    def get_snapshot_name(cls, *, test_location: PyTestLocation, index: SnapshotIndex = 0) -> str:
        """The scenario within its area."""
        del index
        return _scenario(test_location).partition(".")[2]


def _scenario(test_location: PyTestLocation) -> str:
    """The scenario that a test is about: its parameter."""
    return test_location.item.name.partition("[")[2].removesuffix("]")


@pytest.fixture
def snapshot(snapshot: SnapshotAssertion) -> SnapshotAssertion:
    """Snapshots as texts of their own."""
    made: Any = snapshot.use_extension(TextFiles)
    assertion: SnapshotAssertion = made
    return assertion


# Texts are named after scenarios, not after this test, which syrupy wonders about when it writes one.
@pytest.mark.filterwarnings(r"ignore:\s*Can not relate snapshot")
@pytest.mark.parametrize("scenario", scenarios_for(CHOICE.kubernetes))
def test_the_reference_behaves_as_reviewed(
    scenario: str, snapshot: SnapshotAssertion, plays: SharedPlays
) -> None:
    """No call, event or status of the reference changes unnoticed."""
    version = scenario_of(every_scenario()[scenario]).nearest()
    trace = plays.of(scenario).trace.read_bytes()

    assert written(scenario, Choice(kubernetes=version), trace).text == snapshot


def test_no_text_is_left_of_a_scenario_that_is_gone() -> None:
    """Each text belongs to a scenario."""
    known = {Path(each.replace(".", "/", 1) + ".txt") for each in scenarios_for(CHOICE.kubernetes)}
    there = {path.relative_to(snapshots()) for path in snapshots().glob("*/*.txt")}

    assert there - known == set(), "remove the text, or rename it with its scenario"


def test_the_text_in_the_guide_is_a_snapshot() -> None:
    """What the user guide shows is what the reference does."""
    [shown] = re.findall(r"^```text\n(.*?)^```$", GUIDE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)

    assert shown == take(shown.partition("\n")[0], CHOICE).text
