"""Patches that are no strategic merge: JSON merge patches (RFC 7386) and JSON patches (RFC 6902)."""

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kubelet_fakes.api.errors import ApiStatusError, bad_request
from kubelet_fakes.api.objects import FrozenDict, is_array, is_object

STRATEGIC = "application/strategic-merge-patch+json"
MERGE = "application/merge-patch+json"
JSON = "application/json-patch+json"
APPLY = "application/apply-patch+yaml"
TYPES = (STRATEGIC, MERGE, JSON, APPLY)
_UNPROCESSABLE = 422

Change = Callable[[FrozenDict], Mapping[str, Any]]


def change_of(content_type: str, body: Any) -> Change | None:  # noqa: ANN401 - JSON of any shape
    """What the patch makes of an object; None for what is neither a JSON patch nor a JSON merge patch."""
    if content_type == JSON:
        if not is_array(body):
            raise bad_request("a JSON patch is a list of operations")
        return lambda old: _patched(copy.deepcopy(old), body)
    if not is_object(body):
        raise bad_request("a merge patch is an object")
    return (lambda old: _merged(old, body)) if content_type == MERGE else None


def _merged(old: object, patch: object) -> Any:  # noqa: ANN401 - JSON of any shape
    """The old value with the patch merged in: null removes, and only objects are merged."""
    if not is_object(patch):
        return patch
    base = old if is_object(old) else {}
    result = {**base, **{key: _merged(base.get(key), value) for key, value in patch.items()}}
    return {key: value for key, value in result.items() if value is not None}


def _patched(thing: Any, operations: Sequence[Any]) -> Any:  # noqa: ANN401 - JSON of any shape
    for operation in operations:
        if not is_object(operation) or not isinstance(operation.get("path"), str):
            raise bad_request("an operation of a JSON patch has an op and a path")
        try:
            thing = _applied(thing, operation)
        except (LookupError, TypeError, ValueError):
            text = f"the server rejected our request: {operation.get('op')} {operation['path']} does not fit"
            raise ApiStatusError(_UNPROCESSABLE, "Invalid", text) from None
    return thing


def _applied(thing: Any, operation: Mapping[str, Any]) -> Any:  # noqa: ANN401 - JSON of any shape
    path = operation["path"]
    match operation["op"]:
        case "add":
            return _put(thing, path, operation["value"], insert=True)
        case "replace":
            _value_at(thing, path)
            return _put(thing, path, operation["value"], insert=False)
        case "remove":
            _remove(thing, path)
        case "copy":
            return _put(thing, path, copy.deepcopy(_value_at(thing, operation["from"])), insert=True)
        case "move":
            moved = _value_at(thing, operation["from"])
            _remove(thing, operation["from"])
            return _put(thing, path, moved, insert=True)
        case "test" if _value_at(thing, path) == operation["value"]:
            pass
        case other:
            raise ValueError(other)
    return thing


def _steps(path: str) -> list[str]:
    return [step.replace("~1", "/").replace("~0", "~") for step in path.split("/")[1:]]


def _value_at(thing: Any, path: str) -> Any:  # noqa: ANN401 - JSON of any shape
    for step in _steps(path):
        thing = thing[int(step)] if is_array(thing) else thing[step]
    return thing


def _put(thing: Any, path: str, value: Any, *, insert: bool) -> Any:  # noqa: ANN401 - JSON of any shape
    """The thing with the value there; the empty path is the thing itself."""
    if not path:
        return value
    *_, last = _steps(path)
    holder = _value_at(thing, path.rpartition("/")[0])
    if not is_array(holder):
        holder[last] = value
    elif insert:
        holder.insert(len(holder) if last == "-" else int(last), value)
    else:
        holder[int(last)] = value
    return thing


def _remove(thing: Any, path: str) -> None:  # noqa: ANN401 - JSON of any shape
    *_, last = _steps(path)
    holder = _value_at(thing, path.rpartition("/")[0])
    del holder[int(last) if is_array(holder) else last]
