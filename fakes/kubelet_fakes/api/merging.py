"""Strategic merge patches: how a list is merged depends on which list it is.

Source: the patchStrategy and patchMergeKey of each field of core/v1 and meta/v1, and the directives of
`$patch`, `$setElementOrder/FIELD`, `$deleteFromPrimitiveList/FIELD` and `$retainKeys`.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from kubelet_fakes.api.errors import bad_request
from kubelet_fakes.api.objects import EMPTY, PLAIN, FrozenDict, FrozenList, frozen, is_array, is_object

# Lists whose items are identified by a key; the names mean one thing wherever they occur in our kinds.
# containerStatuses and its siblings are not here: the server replaces them whole, as all other lists.
_KEYS = {
    "addresses": "type",
    "conditions": "type",
    "containers": "name",
    "env": "name",
    "ephemeralContainers": "name",
    "hostAliases": "ip",
    "hostIPs": "ip",
    "imagePullSecrets": "name",
    "initContainers": "name",
    "ownerReferences": "uid",
    "podIPs": "ip",
    "resourceClaims": "name",
    "schedulingGates": "name",
    "topologySpreadConstraints": "topologyKey",
    "volumeDevices": "devicePath",
    "volumeMounts": "mountPath",
    "volumes": "name",
}
_PORTS = "ports"
"""Lists of this name are of containers, or of a service."""
_SETS = frozenset({"finalizers", "podCIDRs"})
_ORDER = "$setElementOrder/"
_DELETE_FROM = "$deleteFromPrimitiveList/"


def merged(old: Any, patch: Any) -> Any:  # noqa: ANN401 - JSON of any shape
    """What the patch makes of the old value; the old value itself where it changes nothing.

    Raises:
        ApiStatusError: Code 400, where an item of a keyed list lacks its key or a directive is unknown.
    """
    if not is_object(patch):
        return old if patch == old else frozen(patch)
    match patch.get("$patch"):
        case "replace":
            return frozen({key: value for key, value in patch.items() if key != "$patch"})
        case "delete":
            return FrozenDict()
        case _:
            pass
    base: FrozenDict = old if isinstance(old, FrozenDict) else EMPTY
    changed = _changed(base, patch)
    if not changed and old is base:
        return old
    result = base | changed
    if None in result.values():
        result = {key: value for key, value in result.items() if value is not None}
    return FrozenDict(result)


def _changed(base: FrozenDict, patch: dict[str, Any]) -> dict[str, Any]:
    """The fields that come out differently; None is one that goes, or an explicit null that is new."""
    changed: dict[str, Any] = {}
    for key in _fields(patch):
        old, new = base.get(key), patch.get(key)
        if type(new) in PLAIN:
            new = old if new == old else new
        elif new is not None or key not in patch:
            new = _merged_field(key, old, patch)
        if new is not old:
            changed[key] = new
    retained = patch.get("$retainKeys")
    if retained is not None:
        changed |= {key: None for key in base if key not in retained}
    return changed


def _fields(patch: Mapping[str, Any]) -> Iterable[str]:
    """The fields that the patch or one of its directives speaks of, each once."""
    if not any([key.startswith("$") for key in patch]):  # noqa: C419 - a list is twice as fast
        return patch
    fields: dict[str, None] = {}
    for key in patch:
        if not key.startswith("$"):
            fields[key] = None
            continue
        directive, slash, field = key.partition("/")
        if slash and f"{directive}/" in {_ORDER, _DELETE_FROM}:
            fields[field] = None
        elif key not in {"$patch", "$retainKeys"}:
            raise bad_request(f"unknown directive {key} in a strategic merge patch")
    return fields


def _merged_field(key: str, old: Any, patch: Mapping[str, Any]) -> Any:  # noqa: ANN401 - JSON of any shape
    new = patch.get(key, [])
    if is_array(new) and (named_by := merge_key(key, (*new, *(old or ())))):
        return _merged_items(named_by, old or FrozenList(), new, patch.get(_ORDER + key))
    if is_array(new) and is_set(key):
        return _merged_set(old or FrozenList(), new, patch.get(_DELETE_FROM + key, ()))
    return merged(old, new) if key in patch else old


def merge_key(field: str, items: Iterable[Any]) -> str | None:
    """The key of the items of a list; None for a list that is no list of keyed objects."""
    if field != _PORTS:
        return _KEYS.get(field)
    of_containers = any(is_object(each) and "containerPort" in each for each in items)
    return "containerPort" if of_containers else "port"


def is_set(field: str) -> bool:
    """The list of that field holds plain values that are either in it or not."""
    return field in _SETS


def _merged_set(old: FrozenList, new: Sequence[Any], gone: Sequence[Any]) -> FrozenList:
    """A list of plain values that are either in it or not."""
    result = [each for each in dict.fromkeys([*old, *new]) if each not in gone]
    return old if result == old else FrozenList(result)


def _merged_items(
    key: str, old: FrozenList, patch: Sequence[dict[str, Any]], order: Sequence[dict[str, Any]] | None
) -> FrozenList:
    """A list of objects identified by a key, item by item."""
    items: dict[Any, Any] = {each.get(key): each for each in old}
    for each in patch:
        directive = each.get("$patch")
        if directive == "replace" and key not in each:
            items = {item[key]: frozen(item) for item in patch if "$patch" not in item}
            break
        if key not in each:
            raise bad_request(f"map does not contain declared merge key: {key}")
        if directive == "delete":
            items.pop(each[key], None)
        else:
            items[each[key]] = merged(items.get(each[key]), each)
    if order is not None:
        items = _ordered(items, [each[key] for each in order])
    result = list(items.values())
    same = len(result) == len(old) and all(new is was for new, was in zip(result, old, strict=True))
    return old if same else FrozenList(result)


def _ordered(items: dict[Any, Any], order: Sequence[Any]) -> dict[Any, Any]:
    """The items in the order asked for; each that it does not name stays before the one it stood before."""
    wanted = [key for key in order if key in items]
    place = {key: index for index, key in enumerate(items)}
    left = [key for key in items if key not in order]
    result: list[Any] = []
    for key in wanted:
        while left and place[left[0]] < place[key]:
            result.append(left.pop(0))
        result.append(key)
    return {key: items[key] for key in (*result, *left)}
