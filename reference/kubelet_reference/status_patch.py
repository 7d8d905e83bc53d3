"""The strategic merge patch that turns a pod's stored status into a new one, as a real kubelet sends it.

It holds what differs and nothing else. Conditions merge by `type` and addresses by `ip`; every other list
(the container statuses) is replaced whole; null deletes a field.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

import msgspec
from lightkube.models.core_v1 import PodStatus

_MERGE_KEYS = {"conditions": "type", "podIPs": "ip", "hostIPs": "ip"}
"""The lists of a PodStatus whose elements are merged, with the field that identifies one."""


def status_patch(uid: str, old: PodStatus, new: PodStatus) -> dict[str, object] | None:
    """The patch from `old` to `new`, None if nothing differs; the UID in it is a precondition (STATUS-01)."""
    changes = dict(_changes(old, new))
    if not changes:
        return None
    return {"metadata": {"uid": uid}, "status": dict(sorted(changes.items()))}


def _changes(old: PodStatus, new: PodStatus) -> Iterator[tuple[str, object]]:
    for name in new.__struct_fields__:
        before, after = getattr(old, name), getattr(new, name)
        if before == after:
            continue
        if after is not None and name in _MERGE_KEYS:
            yield from _list_changes(name, _elements(before), _elements(after))
        else:
            yield name, msgspec.to_builtins(after)


def _elements(value: object) -> list[dict[str, object]]:
    return cast("list[dict[str, object]] | None", msgspec.to_builtins(value)) or []


def _list_changes(
    name: str, old: list[dict[str, object]], new: list[dict[str, object]]
) -> Iterator[tuple[str, object]]:
    """The elements that differ; where the list was not empty, the order of the new one goes before them.

    The order of conditions alone is no difference.
    """
    key = _MERGE_KEYS[name]
    before = {element[key]: element for element in old}
    after = [element[key] for element in new]
    changed = [
        change for element in new if (change := _element_change(name, before.get(element[key]), element))
    ]
    gone: list[dict[str, object]] = [
        {"$patch": "delete", key: value} for value in before if value not in after
    ]
    if not (changed or gone) and name == "conditions":
        return
    if old:
        yield f"$setElementOrder/{name}", [{key: value} for value in after]
    if changed or gone:
        yield name, [*changed, *gone]


def _element_change(
    name: str, old: dict[str, object] | None, new: dict[str, object]
) -> dict[str, object] | None:
    """A new element whole; of a known one what differs, with its key; None if nothing does."""
    if old is None:
        # The API's conditions always have this field, if only as null.
        return {"lastProbeTime": None, **new} if name == "conditions" else new
    if old == new:
        return None
    changes: dict[str, object] = {field: None for field in old if field not in new}
    changes |= {field: value for field, value in new.items() if old.get(field) != value}
    return {**changes, _MERGE_KEYS[name]: new[_MERGE_KEYS[name]]} if changes else None
