"""Differences that are known and explained, read from a TOML file of `[[difference]]` entries."""

import tomllib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kubelet_conformance.scenarios import every_scenario
from kubelet_conformance.trace.format.errors import BadInputError
from kubelet_conformance.trace.format.json_values import items_of

_CAUSES = ("baseline", "upstream bug", "version", "timing")
_FORM = (
    "an entry is [[difference]] with scenario, cause and reason, sometimes = true if it comes and goes, and"
    ' kubernetes = ["1.36"] if it is one of these versions alone'
)


class KnownError(BadInputError):
    """A file of known differences that cannot be used; the message says what was expected."""


@dataclass(frozen=True, slots=True)
class Known:
    """One entry.

    Attributes:
        scenario: in which two kubelets part.
        cause: `baseline`, `upstream bug`, `version` or `timing`.
        reason: why, for a person to read.
        sometimes: it depends on timing, and is never stale.
        kubernetes: the versions that differ; of all, where none is named.
    """

    scenario: str
    cause: str
    reason: str
    sometimes: bool = False
    kubernetes: Sequence[str] = ()

    def is_of(self, versions: Collection[str]) -> bool:
        """The entry speaks of one of these Kubernetes versions."""
        return not self.kubernetes or not set(self.kubernetes).isdisjoint(versions)


def read_known(path: str) -> list[Known]:
    """The entries of a file; raises KnownError where it cannot be used."""
    try:
        document = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise KnownError(f"{path}: cannot be read: {error}; {_FORM}") from None
    rows = items_of(document, "difference")
    if not rows or set(document) != {"difference"}:
        raise KnownError(f"{path}: holds no [[difference]] entries alone; {_FORM}")
    return [_entry(path, row) for row in rows]


def _entry(path: str, row: Mapping[str, Any]) -> Known:
    try:
        entry = Known(**row)
    except TypeError:
        raise KnownError(f"{path}: an entry has the fields {', '.join(row)}; {_FORM}") from None
    if entry.scenario not in every_scenario():
        raise KnownError(f"{path}: there is no scenario {entry.scenario}; remove the entry")
    if entry.cause not in _CAUSES or not entry.reason:
        raise KnownError(f"{path}: {entry.scenario}: cause is one of {', '.join(_CAUSES)}; {_FORM}")
    if isinstance(entry.kubernetes, str):
        raise KnownError(f"{path}: {entry.scenario}: kubernetes is a list of versions; {_FORM}")
    return entry
