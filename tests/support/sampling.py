"""What a test is parametrized with, where there is more than every run of the tests has time for."""

from collections.abc import Iterable

import pytest


def sampled(values: Iterable[object], one_in: int) -> list[pytest.ParameterSet]:
    """One of so many, the first among them, for every run of the tests; the others for the campaigns."""
    return [
        pytest.param(each, marks=[pytest.mark.campaign] if number % one_in else [])
        for number, each in enumerate(values)
    ]
