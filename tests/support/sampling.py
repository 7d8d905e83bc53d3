"""What a test is parametrized with, where there is more than every run of the tests has time for."""

from collections.abc import Iterable

import pytest
from recording import shipped

from kubelet_fixtures import traces


def sampled(values: Iterable[object], one_in: int) -> list[pytest.ParameterSet]:
    """One of so many, the first among them, for every run of the tests; the others for the campaigns."""
    return [
        pytest.param(each, marks=[pytest.mark.campaign] if number % one_in else [])
        for number, each in enumerate(values)
    ]


def of_recorded_traces(one_in: int = 1) -> pytest.MarkDecorator:
    """The test is run for each recorded trace as its `path`, by folder and name; see `sampled`."""
    return pytest.mark.parametrize(
        "path", sampled(shipped(traces()), one_in), ids=lambda path: f"{path.parent.name}/{path.stem}"
    )
