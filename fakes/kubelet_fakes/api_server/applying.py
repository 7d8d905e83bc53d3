"""Server-side apply: a configuration is merged in, and what its manager no longer applies is taken away.

Fields are owned by those who applied them; other changes are not recorded as anybody's.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kubelet_fakes.api.errors import ApiStatusError, bad_request
from kubelet_fakes.api.merging import merged
from kubelet_fakes.api.objects import EMPTY, FrozenDict, frozen
from kubelet_fakes.api.resources import plain
from kubelet_fakes.api_server.owned_fields import (
    Steps,
    conflicts,
    fields_of,
    minus,
    path_of,
    tree_of,
    without,
)

_IDENTITY = frozenset({"name", "namespace", "uid", "resourceVersion", "creationTimestamp", "generation"})
"""Metadata that nobody owns."""
_CONFLICT = 409

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Configuration:
    """What a manager applies to an object, or to a part of it."""

    body: Json
    manager: str
    api_version: str
    subresource: str
    time: str
    force: bool = False

    def __post_init__(self) -> None:
        """Refuse what cannot be applied; raises `ApiStatusError` 400."""
        if not self.manager:
            raise bad_request("fieldManager is required for an apply patch")
        if (self.body.get("metadata") or EMPTY).get("managedFields"):
            raise bad_request("metadata.managedFields must be nil")

    def onto(self, old: FrozenDict) -> FrozenDict:
        """The object with the configuration; raises `ApiStatusError` 409 for fields of other managers."""
        entries: list[Json] = list((old.get("metadata") or EMPTY).get("managedFields") or ())
        mine = next((each for each in entries if self._is_mine(each)), None)
        others = [each for each in entries if each is not mine]
        owned = self._owned()
        fields = fields_of(owned)
        clashes = [tuple(conflicts(fields, _fields(each), owned, old)) for each in others]
        if any(clashes) and not self.force:
            raise _conflict(others, clashes)
        lost = map(tree_of, clashes)
        others = [
            {**each, "fieldsV1": minus(_fields(each), less)} for each, less in zip(others, lost, strict=True)
        ]
        others = [each for each in others if each["fieldsV1"]]
        gone = minus(_fields(mine), fields, *map(_fields, others)) if mine else {}
        base = frozen(without(old, gone)) if gone else old
        new: FrozenDict = merged(base, self.body)
        entry = mine if mine and _fields(mine) == fields else self._entry(fields)
        metadata = {**(new.get("metadata") or EMPTY), "managedFields": [*others, entry]}
        applied: FrozenDict = frozen({**new, "metadata": metadata})
        return applied

    def _owned(self) -> Json:
        whole: Json = self.body.get("metadata") or {}
        metadata = {key: value for key, value in whole.items() if key not in _IDENTITY}
        rest = {
            key: value for key, value in self.body.items() if key not in {"apiVersion", "kind", "metadata"}
        }
        return {**rest, "metadata": metadata} if metadata else rest

    def _is_mine(self, entry: Mapping[str, Any]) -> bool:
        about = entry.get("manager"), entry.get("operation"), entry.get("subresource", "")
        return about == (self.manager, "Apply", self.subresource)

    def _entry(self, fields: Json) -> Json:
        entry = {"manager": self.manager, "operation": "Apply", "apiVersion": self.api_version}
        below = {"subresource": self.subresource} if self.subresource else {}
        return {**entry, "time": self.time, "fieldsType": "FieldsV1", "fieldsV1": fields, **below}


def _conflict(managers: list[Json], clashes: list[tuple[Steps, ...]]) -> ApiStatusError:
    """What each of the managers would lose."""
    causes = [
        {
            "reason": "FieldManagerConflict",
            "message": f'conflict with "{each["manager"]}"',
            "field": path_of(steps),
        }
        for each, lost in zip(managers, clashes, strict=True)
        for steps in lost
    ]
    count = f"{len(causes)} conflict{'s' if len(causes) > 1 else ''}"
    fields = ", ".join(f"{each['message']}: {each['field']}" for each in causes)
    return ApiStatusError(_CONFLICT, "Conflict", f"Apply failed with {count}: {fields}", {"causes": causes})


def configuration(body: Mapping[str, Any], query: Mapping[str, str], **about: str) -> Configuration:
    """What a request applies; raises `ApiStatusError` 400 for what cannot be applied."""
    force = query.get("force") in {"true", "1"}
    return Configuration(plain(body), query.get("fieldManager", ""), force=force, **about)


def _fields(entry: Mapping[str, Any]) -> Json:
    found: Json = entry.get("fieldsV1") or {}
    return found
