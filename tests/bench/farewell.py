"""The end of a recorded history: its pods are deleted and all they left at the runtime is removed."""

from __future__ import annotations

from datetime import datetime, timedelta
from itertools import count
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ("farewell",)

Json: TypeAlias = dict[str, Any]

_DEFAULT_GRACE = 30


class _Left:
    """What a history leaves on the node."""

    def __init__(self, records: Iterable[Json]) -> None:
        self.sandboxes: dict[str, None] = {}
        self.stopped: set[str] = set()
        self.sandbox_of: dict[str, str] = {}
        """By container, oldest first."""
        self.running: set[str] = set()
        self.pods: dict[str, Json] = {}
        """The latest `pod` record by name."""
        self._calls: dict[str, Json] = {}
        for record in records:
            self._follow(record)

    def _follow(self, record: Json) -> None:
        match record:
            case {"kind": "call", "id": key}:
                self._calls[key] = record
            case {"kind": "reply", "id": key, "response": response}:
                self._done(self._calls[key], response)
            case {"kind": "runtime", "container_id": container}:
                self.running.discard(container)
            case {"kind": "pod", "op": "set", "pod": {"metadata": {"name": name}}}:
                self.pods[name] = record
            case {"kind": "pod", "op": "remove", "name": name}:
                self.pods.pop(name)
            case {"kind": "deleted", "uid": uid}:
                self.pods = {name: pod for name, pod in self.pods.items() if _uid(pod) != uid}
            case {"kind": "fault", "what": "sandbox+containers vanish"}:
                self.sandboxes.clear()
                self.sandbox_of.clear()
                self.running.clear()
            case _:
                pass

    def _done(self, call: Json, response: Json) -> None:
        request: Json = call["request"]
        match call["rpc"]:
            case "RunPodSandbox":
                self.sandboxes[response["pod_sandbox_id"]] = None
            case "StopPodSandbox":
                stopped = request["pod_sandbox_id"]
                self.stopped.add(stopped)
                self.running -= {one for one, sandbox in self.sandbox_of.items() if sandbox == stopped}
            case "RemovePodSandbox":
                self.sandboxes.pop(request["pod_sandbox_id"], None)
            case "CreateContainer":
                self.sandbox_of[response["container_id"]] = request["pod_sandbox_id"]
            case "StartContainer":
                self.running.add(request["container_id"])
            case "StopContainer":
                self.running.discard(request["container_id"])
            case "RemoveContainer":
                self.sandbox_of.pop(request["container_id"], None)
            case _:
                pass

    @property
    def grace(self) -> int:
        """The grace of the pod that is left."""
        return next((_grace(pod) for pod in self.pods.values()), _DEFAULT_GRACE)


def _uid(pod: Json) -> str:
    uid: str = pod["pod"]["metadata"].get("uid", "")
    return uid


def _grace(pod: Json) -> int:
    grace: int = pod["pod"]["spec"].get("terminationGracePeriodSeconds", _DEFAULT_GRACE)
    return grace


class _Telling:
    """Makes records one after another; `seq` is left to be numbered."""

    def __init__(self, now: float) -> None:
        self.now = now
        self._ids = count(90_000)

    def record(self, kind: str, **fields: Any) -> Json:
        return {"seq": 0, "t": round(self.now, 4), "kind": kind, **fields}

    def call(self, rpc: str, request: Json, *between: Json) -> Iterator[Json]:
        key = f"c{next(self._ids)}"
        yield self.record("call", rpc=rpc, id=key, request=request)
        yield from between
        yield self.record("reply", rpc=rpc, id=key, response={})
        self.now += 0.001


def farewell(header: Json, records: list[Json]) -> Iterator[Json]:
    """The records that delete what is left after these, in the order of a real kubelet."""
    left, tell = _Left(records), _Telling(records[-1]["t"] + 1)
    started = datetime.fromisoformat(header["started"])
    for pod in left.pods.values():
        yield _unwanted(pod, tell, started)
    tell.now += 0.02
    for container in [one for one in reversed(left.sandbox_of) if one in left.running]:
        exited = {"container_id": container, "sandbox_id": left.sandbox_of[container], "exit_code": 0}
        request = {"container_id": container, "timeout": str(left.grace)}
        yield from tell.call("StopContainer", request, tell.record("runtime", op="exited", **exited))
    for sandbox in [one for one in left.sandboxes if one not in left.stopped]:
        yield from tell.call("StopPodSandbox", {"pod_sandbox_id": sandbox})
    tell.now += 1
    for container in reversed(left.sandbox_of):
        yield from tell.call("RemoveContainer", {"container_id": container})
    for pod in left.pods.values():
        if _uid(pod):
            yield tell.record("deleted", uid=_uid(pod))
    tell.now += 1
    for sandbox in reversed(left.sandboxes):
        yield from tell.call("StopPodSandbox", {"pod_sandbox_id": sandbox})
        yield from tell.call("RemovePodSandbox", {"pod_sandbox_id": sandbox})


def _unwanted(pod: Json, tell: _Telling, started: datetime) -> Json:
    """The record of the pod's deletion, or of its removal from the manifest folder."""
    manifest, metadata = pod["pod"], pod["pod"]["metadata"]
    if pod["source"] != "api":
        gone = {"namespace": metadata.get("namespace", "default"), "name": metadata["name"]}
        return tell.record("pod", op="remove", source=pod["source"], **gone)
    due = started + timedelta(seconds=tell.now + _grace(pod))
    asked = {
        "deletionTimestamp": due.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "deletionGracePeriodSeconds": _grace(pod),
    }
    return tell.record("pod", op="set", source="api", pod={**manifest, "metadata": asked | metadata})
