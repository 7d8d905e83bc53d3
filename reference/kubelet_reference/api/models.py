"""Lightkube's models as JSON and back: their own methods do not declare what they take and give."""

from collections.abc import Mapping
from typing import Any, TypeVar

M = TypeVar("M")


def as_json(model: Any) -> dict[str, Any]:  # noqa: ANN401 - the models share no typed base
    """The object as the API writes it."""
    made: dict[str, Any] = model.to_dict()
    return made


def as_model(kind: type[M], stored: Mapping[str, Any]) -> M:
    """An object of the API as one of lightkube's."""
    make: Any = kind
    made: M = make.from_dict(dict(stored))
    return made
