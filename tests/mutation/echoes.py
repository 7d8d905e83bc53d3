"""What the runtime tells later of what was done to it: in lists and in statuses, the truth.

A mutant is what a kubelet did wrong, not what a runtime says wrong. So each record that tells of a changed
object is changed with it.
"""

from collections.abc import Callable

from recording import Json

_LISTED = {"ListContainers": "containers", "ListPodSandbox": "items"}


def merged(whole: Json, change: Json) -> Json:
    """A message with some fields of its parts changed."""
    return whole | {key: whole.get(key, {}) | fields for key, fields in change.items()}


def listing_also(record: Json, original: str, fresh: str) -> Json:
    """A list that has the original has its copy too: made a nanosecond later and never touched."""
    field, items = _list(record)
    copies = [_made_after(item, fresh) for item in items if item["id"] == original]
    return {**record, "response": {field: [*items, *copies]}} if copies else record


def _list(record: Json) -> tuple[str, list[Json]]:
    """The field and the items of a reply that lists containers or sandboxes."""
    field = _LISTED.get(record.get("rpc", ""), "")
    if record["kind"] != "reply" or "response" not in record:
        return field, []
    return field, record["response"].get(field, [])


def _made_after(item: Json, fresh: str) -> Json:
    copy = {key: value for key, value in item.items() if key != "state"}
    return copy | {"id": fresh, "created_at": str(int(item["created_at"]) + 1)}


def telling(record: Json, key: str, change: Json) -> Json:
    """A list or status that tells of this object, with these fields of it changed."""
    field, items = _list(record)
    if any(item["id"] == key for item in items):
        changed = [merged(item, change) if item["id"] == key else item for item in items]
        return {**record, "response": {**record["response"], field: changed}}
    return with_status(record, key, lambda status: merged(status, change))


def with_status(record: Json, key: str, change: Callable[[Json], Json]) -> Json:
    """A reply that gives the status of this object, with its status changed."""
    if record["kind"] != "reply" or record["rpc"] not in {"ContainerStatus", "PodSandboxStatus"}:
        return record
    status = record.get("response", {}).get("status")
    if status is None or status["id"] != key:
        return record
    return {**record, "response": {**record["response"], "status": change(status)}}


def with_exit_code(status: Json, code: int) -> Json:
    """The status of a container, which ended with this code if it has ended."""
    if status.get("state") != "CONTAINER_EXITED":
        return status
    return {**status, "exit_code": code, "reason": "Error" if code else "Completed"}
