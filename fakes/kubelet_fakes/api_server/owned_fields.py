"""Who owns which fields of an object: trees of steps, as `metadata.managedFields` has them.

A step is `f:FIELD`, `k:{KEYS}` for an item of a keyed list, or `v:VALUE` for one of a set. A step with
nothing below it is owned whole; `.` below an item is the item itself.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from kubelet_fakes.api.merging import is_set, merge_key
from kubelet_fakes.api.objects import is_array, is_object

Tree = Mapping[str, Any]
Steps = tuple[str, ...]
_ITSELF = "."
_PORT_KEYS = frozenset({"port", "containerPort"})


def fields_of(value: object, field: str = "") -> dict[str, Any]:
    """What is owned by who applies this value."""
    return {
        step: ({_ITSELF: {}} if step.startswith("k:") else {}) | fields_of(below, name)
        for step, (name, below) in _parts(field, value).items()
    }


def minus(tree: Tree, *others: Tree) -> dict[str, Any]:
    """What of a tree is in none of the others."""
    left: dict[str, Any] = {}
    for step, below in tree.items():
        shared = [each[step] for each in others if step in each]
        rest = minus(below, *shared) if shared else below
        if rest or not shared:
            left[step] = rest
    return left


def without(value: object, gone: Tree, field: str = "") -> Any:  # noqa: ANN401 - JSON of any shape
    """The value without what the tree names; None for nothing, also where only that was in it."""
    kept = {
        step: (name, without(below, gone[step], name) if step in gone and _is_below(gone[step]) else below)
        for step, (name, below) in _parts(field, value).items()
        if step not in gone or _is_below(gone[step])
    }
    left = [(name, below) for name, below in kept.values() if below is not None]
    if is_object(value):
        return dict(left) or None
    return [below for _, below in left] or None


def conflicts(mine: Tree, theirs: Tree, new: object, old: object, field: str = "") -> Iterator[Steps]:
    """Where something is that both own and that would change."""
    before, after = _parts(field, old), _parts(field, new)
    for step in mine:
        if step not in theirs or step == _ITSELF:
            continue
        (name, is_), (_, was) = after.get(step, ("", None)), before.get(step, ("", None))
        if mine[step] and theirs[step]:
            found = conflicts(mine[step], theirs[step], is_, was, name)
            yield from ((step, *each) for each in found)
        elif is_ != was:
            yield (step,)


def path_of(steps: Steps) -> str:
    """The steps as refusals write them, such as `.spec.containers[name="app"].image`."""
    return "".join(_path(each) for each in steps)


def tree_of(leaves: Iterable[Steps]) -> dict[str, Any]:
    """The tree with these leaves."""
    tree: dict[str, Any] = {}
    for steps in leaves:
        below = tree
        for step in steps:
            below = below.setdefault(step, {})
    return tree


def _is_below(gone: Tree) -> bool:
    """Only parts of it are gone."""
    return bool(gone) and _ITSELF not in gone


def _parts(field: str, value: object) -> dict[str, tuple[str, Any]]:
    """The parts of a value by their steps, each with the name of its field; none of what is owned whole."""
    if is_object(value):
        return {f"f:{name}": (name, each) for name, each in value.items()}
    if is_array(value) and (key := merge_key(field, value)):
        return {_item(key, each): ("", each) for each in value}
    if is_array(value) and is_set(field):
        return {f"v:{json.dumps(each)}": ("", each) for each in value}
    return {}


def _item(key: str, item: Mapping[str, Any]) -> str:
    keys = {key: item.get(key)}
    if key in _PORT_KEYS:
        keys["protocol"] = item.get("protocol", "TCP")
    return f"k:{json.dumps(keys, separators=(',', ':'))}"


def _path(step: str) -> str:
    kind, _, name = step.partition(":")
    if kind == "f":
        return f".{name}"
    keys = json.loads(name)
    if not is_object(keys):
        return f"[={name}]"
    return f"[{','.join(f'{key}={json.dumps(value)}' for key, value in keys.items())}]"
