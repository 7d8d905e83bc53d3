"""What is wrong with a manifest: which field, what was expected there and what stood there."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from typing import cast

import msgspec
import yaml

_SHOWN_LENGTH = 60


@dataclass(frozen=True, slots=True)
class FieldError:
    """One finding: the path of the field ("" is the manifest as a whole) and what is wrong with it."""

    field: str
    message: str

    def __str__(self) -> str:
        return f"{self.field}: {self.message}" if self.field else self.message


class ManifestError(Exception):
    """A manifest is refused, for one reason or several."""

    def __init__(self, errors: Iterable[FieldError]) -> None:
        self.errors = tuple(errors)
        super().__init__("; ".join(map(str, self.errors)))


def not_yaml(error: Exception) -> ManifestError:
    """A text is not YAML; where it goes wrong, if the error says so."""
    text = " ".join(str(error).split())
    if isinstance(error, yaml.MarkedYAMLError):
        at = error.problem_mark
        where = f"line {at.line + 1}, column {at.column + 1}: " if at else ""
        text = f"{where}{error.problem or error.context}"
    return ManifestError([FieldError("", f"not YAML: {text}")])


class FieldPath(msgspec.Struct, frozen=True):
    """Where in a manifest a reader is; what it finds wrong joins `errors`."""

    errors: list[FieldError]
    path: str = ""

    def field(self, name: str) -> FieldPath:
        """A field of the object here."""
        return FieldPath(self.errors, f"{self.path}.{name}" if self.path else name)

    def item(self, index: int) -> FieldPath:
        """An item of the list here."""
        return FieldPath(self.errors, f"{self.path}[{index}]")

    def unknown(self, name: str, known: Iterable[str]) -> None:
        """Note a field of the object here that there is not."""
        close = get_close_matches(name, known, n=1)
        self.field(name).wrong(f"unknown field, did you mean {close[0]}?" if close else "unknown field")

    def wrong(self, message: str) -> None:
        """Note what is wrong here."""
        self.errors.append(FieldError(self.path, message))

    def expected(self, what: str, got: object) -> None:
        """Note what was expected here and what stands here instead."""
        self.wrong(f"expected {what}, got {shown(got)}")


def shown(value: object) -> str:
    """A value as an error names it: scalars as JSON, shortened; of containers only the kind."""
    match value:
        case dict():
            return "an object" if value else "an empty object"
        case list():
            return "a list" if cast("list[object]", value) else "an empty list"
        case None | bool() | int() | float() | str():
            text = msgspec.json.encode(value).decode()
            return text if len(text) <= _SHOWN_LENGTH else f"{text[:_SHOWN_LENGTH]}…"
        case _:
            return f"a {type(value).__name__}"
