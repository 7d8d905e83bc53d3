"""The end of a recorded history: the kubelet stops, and the node is wiped of what is left on it."""

from collections.abc import Iterable, Iterator
from typing import Any, TypeAlias

Json: TypeAlias = dict[str, Any]


class _Left:
    """What a history leaves on the node."""

    def __init__(self, records: Iterable[Json]) -> None:
        self.sandboxes: dict[str, None] = {}
        self.containers: dict[str, None] = {}
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
            case {"kind": "pod", "op": "set", "pod": {"metadata": {"name": name}}}:
                self.pods[name] = record
            case {"kind": "pod", "op": "remove", "name": name}:
                self.pods.pop(name)
            case {"kind": "deleted", "uid": uid}:
                self.pods = {name: pod for name, pod in self.pods.items() if _uid(pod) != uid}
            case {"kind": "fault", "what": "sandbox+containers vanish"}:
                self.sandboxes.clear()
                self.containers.clear()
            case _:
                pass

    def _done(self, call: Json, response: Json) -> None:
        request: Json = call["request"]
        match call["rpc"]:
            case "RunPodSandbox":
                self.sandboxes[response["pod_sandbox_id"]] = None
            case "RemovePodSandbox":
                self.sandboxes.pop(request["pod_sandbox_id"], None)
            case "CreateContainer":
                self.containers[response["container_id"]] = None
            case "RemoveContainer":
                self.containers.pop(request["container_id"], None)
            case _:
                pass


def _uid(pod: Json) -> str:
    uid: str = pod["pod"]["metadata"].get("uid", "")
    return uid


def farewell(records: list[Json]) -> Iterator[Json]:
    """The records that leave nothing after these; `seq` is left to be numbered."""
    left = _Left(records)
    now = {"seq": 0, "t": records[-1]["t"]}
    yield now | {"kind": "kubelet", "op": "stopped"}
    yield now | {"kind": "fault", "what": "the node is wiped"}
    for container in left.containers:
        yield now | {"kind": "runtime", "op": "removed", "container_id": container}
    for sandbox in left.sandboxes:
        yield now | {"kind": "runtime", "op": "removed", "sandbox_id": sandbox}
    for pod in left.pods.values():
        metadata = pod["pod"]["metadata"]
        gone = {"namespace": metadata.get("namespace", "default"), "name": metadata["name"]}
        if pod["source"] == "api":
            yield now | {"kind": "deleted", "uid": _uid(pod)}
        else:
            yield now | {"kind": "pod", "op": "remove", "source": pod["source"], **gone}
