"""What a source's new word on a pod is, compared with its last one (decision table 27.10).

Rows are tried from the top, the first that fits decides, and each says why.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeAlias

Json: TypeAlias = dict[str, Any]
Change: TypeAlias = Literal["added", "removed", "deleted", "updated", "reconciled", "nothing"]


class Word(NamedTuple):
    """A manifest: what of it means something, whether it is on its way out, and its status."""

    meaning: Json
    deleting: bool
    status: Json


@dataclass(frozen=True, slots=True)
class ChangeRow:
    """Where `when` holds, of the old word and the new one, it is such a change; None is no word."""

    row: str
    when: Callable[[Word | None, Word | None], bool]
    change: Change
    why: str


def _means_the_same(old: Word | None, new: Word | None) -> bool:
    """Spec, labels, annotations and deletion are as they were."""
    return old is not None and new is not None and old.meaning == new.meaning


def _is_on_its_way_out(_: Word | None, new: Word | None) -> bool:
    """The new manifest has a deletionTimestamp."""
    return new is not None and new.deleting


CHANGES: tuple[ChangeRow, ...] = (
    ChangeRow("M1", lambda old, new: old is None and new is None, "nothing", "the source has never had it"),
    ChangeRow("M2", lambda _, new: new is None, "removed", "the source has it no more"),
    ChangeRow("M3", lambda old, _: old is None, "added", "the source did not have it"),
    ChangeRow("M4", lambda old, new: old == new, "nothing", "it was sent again"),
    ChangeRow("M5", _means_the_same, "reconciled", "nothing but its status is new"),
    ChangeRow("M6", _is_on_its_way_out, "deleted", "it is to go, whatever else is new"),
    ChangeRow("M7", lambda _, new: new is not None, "updated", "it means something else"),
)


def change_row(old: Word | None, new: Word | None) -> ChangeRow:
    """The row that decides."""
    return next(row for row in CHANGES if row.when(old, new))


def word(pod: Json) -> Word:
    """What a manifest says; annotations of the kubelet's own mean nothing (CONFIG-05)."""
    meta: Json = pod.get("metadata") or {}
    annotations: dict[str, str] = meta.get("annotations") or {}
    deletion = (meta.get("deletionTimestamp"), meta.get("deletionGracePeriodSeconds"))
    meaning = {
        "spec": pod.get("spec"),
        "labels": meta.get("labels") or {},
        "deletion": deletion,
        "annotations": {
            key: v for key, v in annotations.items() if not key.startswith("kubernetes.io/config.")
        },
    }
    return Word(meaning, bool(deletion[0]), pod.get("status") or {})
