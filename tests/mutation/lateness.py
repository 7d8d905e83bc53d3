"""A call that comes late: a gap before it, in which the node goes on as it was.

What the late call did and all that followed moves on by the same time, time stamps included; what was
under way keeps its time. In the gap the kubelet relists each second and gets the truth, so that a gap
shows lateness and nothing else.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any, TypeGuard

from recording import Json
from scene import Action, Scene

_EPOCH = datetime.fromisoformat("1970-01-01T00:00:00+00:00")
_NANOSECONDS_DIGITS = 19
_PERIODIC = {"ListPodSandbox": 1, "ListContainers": 1, "Status": 5, "Version": 5, "ImageFsInfo": 10}
"""Calls that a kubelet repeats however quiet the node is, with their period in seconds."""
_LISTED = {"ListPodSandbox": "items", "ListContainers": "containers"}
_STATE_AFTER = {
    "StartContainer": "CONTAINER_RUNNING",
    "StopContainer": "CONTAINER_EXITED",
    "StopPodSandbox": "SANDBOX_NOTREADY",
}


def late(scene: Scene, place: int, seconds: int) -> list[Json]:
    """The records, with all from `place` on so much later."""
    before, after = scene.records[:place], scene.records[place:]
    t = after[0]["t"]
    under_way = _under_way(before)
    clock = _Clock(scene, place, seconds)
    moved = [
        record
        if _belongs(record, under_way)
        else clock.moved({**record, "t": round(record["t"] + seconds, 4)})
        for record in after
    ]
    gap = _quiet_seconds(scene, place, t, seconds)
    later = sorted([*gap, *moved], key=lambda record: record["t"])
    stopping = _stopping(under_way)
    return [*before, *(_Settled(scene, stopping).fitted(later) if stopping else later)]


def _under_way(before: tuple[Json, ...]) -> list[Json]:
    open_calls: dict[str, Json] = {}
    for record in before:
        if record["kind"] == "call":
            open_calls[record["id"]] = record
        elif record["kind"] == "reply":
            open_calls.pop(record["id"], None)
    return list(open_calls.values())


def _belongs(record: Json, under_way: list[Json]) -> bool:
    """It is the reply of a call under way, or the exit that such a stop brings about."""
    if record["kind"] == "reply":
        return any(call["id"] == record["id"] for call in under_way)
    if record["kind"] == "runtime":
        return record.get("container_id") in _stopping(under_way)
    return False


def _stopping(under_way: list[Json]) -> set[str]:
    return {call["request"]["container_id"] for call in under_way if call["rpc"] == "StopContainer"}


class _Settled:
    """Tells, in reads that moved past the end of a container, that it has ended."""

    def __init__(self, scene: Scene, stopping: set[str]) -> None:
        self._stopping = stopping
        self._gone: set[str] = set()
        self._last: dict[str, Json] = {}
        for record in scene.records:
            if record["kind"] == "reply" and record["rpc"] == "ContainerStatus" and "response" in record:
                self._last[record["response"]["status"]["id"]] = record["response"]["status"]

    def fitted(self, records: list[Json]) -> Iterator[Json]:
        for record in records:
            if record["kind"] == "runtime" and record.get("container_id") in self._stopping:
                self._gone.add(record["container_id"])
            yield self._true(record) if record["kind"] == "reply" and "response" in record else record

    def _true(self, reply: Json) -> Json:
        if reply["rpc"] == "ListContainers":
            items = [self._ended(item) for item in reply["response"].get("containers", ())]
            return {**reply, "response": {"containers": items} if items else {}}
        if reply["rpc"] == "ContainerStatus" and reply["response"]["status"]["id"] in self._gone:
            last = self._last[reply["response"]["status"]["id"]]
            return {**reply, "response": {**reply["response"], "status": last}}
        return reply

    def _ended(self, item: Json) -> Json:
        return {**item, "state": "CONTAINER_EXITED"} if item["id"] in self._gone else item


class _Clock:
    """Moves the time stamps that were given after the gap.

    The API cuts them to whole seconds, so one of the gap's own second is known from the runtime's, which are
    exact; `owner` is the container a status is about.
    """

    def __init__(self, scene: Scene, place: int, seconds: int) -> None:
        started = scene.recording.header["started"]
        self._gap = datetime.fromisoformat(started) + timedelta(seconds=scene.records[place]["t"])
        self._gap_ns = (self._gap - _EPOCH) // timedelta(microseconds=1) * 1000
        self._seconds = seconds
        self._known = {stamp for record in scene.records[:place] for stamp in _stamps(record)}
        self._exact: dict[str, list[int]] = {}
        for record in scene.records:
            if record["kind"] == "reply" and record["rpc"] == "ContainerStatus" and "response" in record:
                status = record["response"]["status"]
                times = [int(status.get(name, 0)) for name in ("started_at", "finished_at")]
                self._exact[status["id"]] = times

    def moved(self, value: Any, owner: str = "") -> Any:
        if _is_object(value):
            own = value.get("containerID", "").rpartition("//")[2] or owner
            return {key: self.moved(inner, own) for key, inner in value.items()}
        if _is_list(value):
            return [self.moved(inner, owner) for inner in value]
        if isinstance(value, str) and _is_nanoseconds(value):
            return str(int(value) + self._seconds * 10**9) if int(value) >= self._gap_ns else value
        if isinstance(value, str) and _is_date(value):
            return self._moved_date(value, owner)
        return value

    def _moved_date(self, text: str, owner: str) -> str:
        stamp = datetime.fromisoformat(text)
        second = self._gap.replace(microsecond=0)
        exact = [one for one in self._exact.get(owner, ()) if one // 10**9 == int(stamp.timestamp())]
        if stamp == second and exact:
            is_later = exact[0] >= self._gap_ns
        else:
            is_later = stamp >= second and text not in self._known
        return (stamp + timedelta(seconds=self._seconds * is_later)).isoformat().replace("+00:00", "Z")


def _stamps(value: Any) -> Iterator[str]:
    if _is_object(value):
        yield from _stamps(list(value.values()))
    elif _is_list(value):
        for inner in value:
            yield from _stamps(inner)
    elif isinstance(value, str) and (_is_nanoseconds(value) or _is_date(value)):
        yield value


def _is_object(value: Any) -> TypeGuard[Json]:
    return isinstance(value, dict)


def _is_list(value: Any) -> TypeGuard[list[Any]]:
    return isinstance(value, list)


def _is_nanoseconds(text: str) -> bool:
    return len(text) == _NANOSECONDS_DIGITS and text.isdigit()


def _is_date(text: str) -> bool:
    return len(text) == len("2026-11-20T23:04:34Z") and text[4] == "-" and text[10] == "T" and text[-1] == "Z"


def _quiet_seconds(scene: Scene, place: int, t: float, seconds: int) -> list[Json]:
    """The reads of a kubelet that sees nothing change."""
    if not _kubelet_is_up(scene, place):
        return []
    asked = _latest_pairs(scene, place)
    records: list[Json] = []
    for second in range(1, seconds):
        for rpc, (call, reply) in asked.items():
            if second % _PERIODIC[rpc] == 0:
                fresh = {"id": f"quiet-{second}-{rpc}", "t": round(t + second, 4)}
                records += [{**call, **fresh}, {**reply, **fresh}]
    return records


def _kubelet_is_up(scene: Scene, place: int) -> bool:
    ops = [record["op"] for record in scene.records[:place] if record["kind"] == "kubelet"]
    return bool(ops) and ops[-1] == "started"


def _latest_pairs(scene: Scene, place: int) -> dict[str, tuple[Json, Json]]:
    """The latest call of each periodic kind before a place, with the reply it would have now."""
    found: dict[str, tuple[Json, Json]] = {}
    for at, record in enumerate(scene.records[:place]):
        if record["kind"] == "call" and record["rpc"] in _PERIODIC and not any(record["request"].values()):
            reply = scene.replies.get(record["id"], place)
            if reply < place and "response" in scene.records[reply]:
                found[record["rpc"]] = scene.records[at], scene.records[reply]
    return {
        rpc: (call, _brought_up_to_date(scene, place, reply) if rpc in _LISTED else reply)
        for rpc, (call, reply) in found.items()
    }


def _brought_up_to_date(scene: Scene, place: int, reply: Json) -> Json:
    """A full list, with all that changed between its call and the place."""
    field = _LISTED[reply["rpc"]]
    items: dict[str, Json] = {item["id"]: item for item in reply["response"].get(field, ())}
    begun = next(at for at, record in enumerate(scene.records) if record.get("id") == reply["id"])
    for at in range(begun, place):
        _follow(items, scene, at, field)
    return {**reply, "response": {field: list(items.values())}}


def _follow(items: dict[str, Json], scene: Scene, at: int, field: str) -> None:
    record = scene.records[at]
    if record["kind"] == "runtime":
        _set_state(items, record.get("container_id", ""), "CONTAINER_EXITED")
        if record["op"] == "sandbox-died":
            _set_state(items, record["sandbox_id"], "SANDBOX_NOTREADY")
    action = scene.by_reply.get(at)
    if action is None or action.failed:
        return
    if action.rpc == ("RunPodSandbox" if field == "items" else "CreateContainer"):
        items[action.target] = _item(scene, action, field)
    elif action.rpc in {"RemoveContainer", "RemovePodSandbox"}:
        items.pop(action.target, None)
    elif action.rpc in _STATE_AFTER:
        _set_state(items, action.target, _STATE_AFTER[action.rpc])


def _set_state(items: dict[str, Json], key: str, state: str) -> None:
    if key in items:
        items[key] = {**items[key], "state": state}


def _item(scene: Scene, action: Action, field: str) -> Json:
    """A new object as the lists show it: as in any list that has it, else as it was asked for."""
    for record in scene.records:
        if record["kind"] == "reply" and record["rpc"] in _LISTED:
            for item in record.get("response", {}).get(field, ()):
                if item["id"] == action.target:
                    return {key: value for key, value in item.items() if key != "state"}
    request = action.request
    asked = {key: request["config"].get(key, {}) for key in ("metadata", "labels", "annotations")}
    parent = {"pod_sandbox_id": request["pod_sandbox_id"]} if "pod_sandbox_id" in request else {}
    return {"id": action.target, **parent, **asked}
