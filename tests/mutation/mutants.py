"""Mutants of a recorded trace: the same history with one thing wrong.

Each mutating call is dropped, duplicated, swapped with the pod's next one, or late; its attempt, timeout,
ids, image or labels are changed, and so are exit codes and phases. What the runtime tells later follows
the change: it echoes what it was asked. Reads are never mutated, and neither is what the catalogue
declares free (see `freedom`).
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2s
from typing import TYPE_CHECKING

from freedom import free
from lateness import late
from scene import Scene

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from recording import Json, Recording
    from scene import Action

__all__ = ("CHANGES", "Mutant", "mutants")

LATE_SECONDS = {"RemovePodSandbox": 150, "RemoveContainer": 150}
"""Garbage is collected each 60 s; every other reaction is bounded by a retry of 16 s and its slack."""
LATE_SECONDS_ELSE = 60
PHASES = ("Pending", "Running", "Succeeded", "Failed")
POD_UID_LABEL = "io.kubernetes.pod.uid"
CONTAINER_NAME_LABEL = "io.kubernetes.container.name"
UNKNOWN_ID = "0123456789abcdef0123456789abcdef"
UNKNOWN_IMAGE = "sha256:" + "0" * 64

Records = "list[Json]"


@dataclass(frozen=True, slots=True)
class Mutant:
    """One wrong history. `call` and `change` are its classes; `seq` is the record that was changed."""

    trace: str
    seq: int
    call: str
    change: str
    detail: str
    make: Callable[[], list[Json]]

    @property
    def name(self) -> str:
        """Its address in lists."""
        detail = f" {self.detail}" if self.detail else ""
        return f"{self.trace}:{self.seq} {self.call} {self.change}{detail}"


def mutants(recording: Recording) -> Iterator[Mutant]:
    """Every mutant of a recording, in the order of its records."""
    scene = Scene(recording)
    for action in scene.actions:
        for change, variants in CHANGES.items():
            if free(scene, action, change) is None:
                for detail, make in variants(scene, action):
                    yield Mutant(recording.name, action.call + 1, action.rpc, change, detail, make)
    for place, record in enumerate(scene.records):
        if record["kind"] == "runtime" and record["op"] == "exited":
            for change, make in _other_exit_code(scene, place):
                yield Mutant(recording.name, place + 1, "exited", change, "", make)
        elif record["kind"] == "status":
            for phase, make in _other_phase(scene, place):
                yield Mutant(recording.name, place + 1, "status", "phase", f"to {phase}", make)


Variants = "Iterator[tuple[str, Callable[[], list[Json]]]]"


def _dropped(scene: Scene, action: Action) -> Iterator[tuple[str, Callable[[], list[Json]]]]:
    yield "", partial(_without, scene, action)


def _without(scene: Scene, action: Action) -> list[Json]:
    return [record for place, record in enumerate(scene.records) if place not in {action.call, action.reply}]


def _duplicated(scene: Scene, action: Action) -> Iterator[tuple[str, Callable[[], list[Json]]]]:
    yield "", partial(_twice, scene, action)


def _twice(scene: Scene, action: Action) -> list[Json]:
    """The call comes again at once. What it makes the runtime makes twice, and lists twice from then on."""
    call, reply = scene.records[action.call], scene.records[action.reply]
    again = {"id": f"{call['id']}-again", "t": reply["t"]}
    second = {**reply, **again}
    rest: list[Json] = list(scene.records[action.reply + 1 :])
    if action.rpc in {"CreateContainer", "RunPodSandbox"} and not action.failed:
        fresh = blake2s(action.target.encode(), digest_size=16).hexdigest()
        second["response"] = dict.fromkeys(reply["response"], fresh)
        rest = [_listing_both(record, action.target, fresh) for record in rest]
    return [*scene.records[: action.reply + 1], {**call, **again}, second, *rest]


def _listing_both(record: Json, original: str, fresh: str) -> Json:
    found = _lists(record)
    if found is None:
        return record
    field, items = found
    copies = [_made_after(item, fresh) for item in items if item["id"] == original]
    return {**record, "response": {field: [*items, *copies]}} if copies else record


def _made_after(item: Json, fresh: str) -> Json:
    """A copy of an object, made a nanosecond later and never touched."""
    copy = {key: value for key, value in item.items() if key != "state"}
    return copy | {"id": fresh, "created_at": str(int(item["created_at"]) + 1)}


def _lists(record: Json) -> tuple[str, list[Json]] | None:
    """The field and the items of a reply that lists containers or sandboxes."""
    field = {"ListContainers": "containers", "ListPodSandbox": "items"}.get(record.get("rpc", ""))
    if field is None or record["kind"] != "reply" or "response" not in record:
        return None
    return field, record["response"].get(field, [])


def _swapped(scene: Scene, action: Action) -> Iterator[tuple[str, Callable[[], list[Json]]]]:
    other = scene.next_of_pod(action)
    if other is not None and (other.rpc, other.request) != (action.rpc, action.request):
        yield f"with {other.rpc} {other.call + 1}", partial(_exchanged, scene, action, other)


def _exchanged(scene: Scene, first: Action, second: Action) -> list[Json]:
    """Each call and reply stands where the other's stood, at that time."""
    records = list(scene.records)
    for here, there in ((first.call, second.call), (first.reply, second.reply)):
        records[here] = {**scene.records[there], "t": scene.records[here]["t"]}
        records[there] = {**scene.records[here], "t": scene.records[there]["t"]}
    return records


def _delayed(scene: Scene, action: Action) -> Iterator[tuple[str, Callable[[], list[Json]]]]:
    seconds = LATE_SECONDS.get(action.rpc, LATE_SECONDS_ELSE)
    yield f"{seconds} s", partial(late, scene, action.call, seconds)


def _other_attempt(scene: Scene, action: Action) -> Iterator[tuple[str, Callable[[], list[Json]]]]:
    if action.rpc not in {"CreateContainer", "RunPodSandbox"}:
        return
    attempt = action.request["config"]["metadata"].get("attempt", 0)
    for other in (attempt + 1, attempt - 1):
        if other >= 0:
            yield (
                f"{attempt} to {other}",
                lambda other=other: _asked_otherwise(scene, action, {"metadata": {"attempt": other}}),
            )


def _other_labels(scene: Scene, action: Action) -> Iterator[tuple[str, Callable[[], list[Json]]]]:
    if action.rpc not in {"CreateContainer", "RunPodSandbox"}:
        return
    for label in (POD_UID_LABEL, CONTAINER_NAME_LABEL):
        if label in action.request["config"].get("labels", {}):
            yield (
                label.rpartition("io.kubernetes.")[2],
                lambda label=label: _asked_otherwise(scene, action, {"labels": {label: "other"}}),
            )


def _other_image(scene: Scene, action: Action) -> Iterator[tuple[str, Callable[[], list[Json]]]]:
    if action.rpc == "CreateContainer":
        yield "", lambda: _asked_otherwise(scene, action, {"image": {"image": UNKNOWN_IMAGE}})


def _asked_otherwise(scene: Scene, action: Action, change: Json) -> list[Json]:
    """The config of what is made differs in some fields, and the runtime echoes the metadata and labels."""
    records = list(scene.records)
    call = records[action.call]
    config = _merged(action.request["config"], change)
    records[action.call] = {**call, "request": {**action.request, "config": config}}
    echoed = {key: value for key, value in change.items() if key in {"metadata", "labels"}}
    if action.target and echoed:
        later = records[action.reply + 1 :]
        records[action.reply + 1 :] = [_echoing(record, action.target, echoed) for record in later]
    return records


def _merged(config: Json, change: Json) -> Json:
    return config | {key: config.get(key, {}) | fields for key, fields in change.items()}


def _echoing(record: Json, key: str, change: Json) -> Json:
    found = _lists(record)
    if found is not None:
        field, items = found
        if any(item["id"] == key for item in items):
            changed = [_merged(item, change) if item["id"] == key else item for item in items]
            return {**record, "response": {**record["response"], field: changed}}
        return record
    return _with_status(record, key, lambda status: _merged(status, change))


def _with_status(record: Json, key: str, change: Callable[[Json], Json]) -> Json:
    """A reply that gives the status of this object, with its status changed."""
    if record["kind"] != "reply" or record["rpc"] not in {"ContainerStatus", "PodSandboxStatus"}:
        return record
    status = record.get("response", {}).get("status")
    if status is None or status["id"] != key:
        return record
    return {**record, "response": {**record["response"], "status": change(status)}}


def _other_timeout(scene: Scene, action: Action) -> Iterator[tuple[str, Callable[[], list[Json]]]]:
    if action.rpc != "StopContainer":
        return
    timeout = int(action.request.get("timeout", 0))
    for other in (timeout + 30, 0 if timeout <= _MINIMUM_GRACE else 1):
        yield (
            f"{timeout} to {other}",
            lambda other=other: _with_request(scene, action, {"timeout": str(other)}),
        )


_MINIMUM_GRACE = 2


def _other_sandbox(scene: Scene, action: Action) -> Iterator[tuple[str, Callable[[], list[Json]]]]:
    if "pod_sandbox_id" not in action.request:
        return
    own = action.request["pod_sandbox_id"]
    others = [one for one in scene.at_runtime(action.call, containers=False) if one != own]
    other = others[-1] if others else UNKNOWN_ID
    yield _which(other), lambda: _with_request(scene, action, {"pod_sandbox_id": other})


def _other_container(scene: Scene, action: Action) -> Iterator[tuple[str, Callable[[], list[Json]]]]:
    if "container_id" not in action.request:
        return
    others = [one for one in scene.at_runtime(action.call, containers=True) if one != action.target]
    other = others[-1] if others else UNKNOWN_ID
    yield _which(other), lambda: _with_request(scene, action, {"container_id": other})


def _which(other: str) -> str:
    return "unknown" if other == UNKNOWN_ID else "to another"


def _with_request(scene: Scene, action: Action, fields: Json) -> list[Json]:
    records = list(scene.records)
    records[action.call] = {**records[action.call], "request": action.request | fields}
    return records


CHANGES: dict[str, Callable[[Scene, Action], Iterator[tuple[str, Callable[[], list[Json]]]]]] = {
    "drop": _dropped,
    "duplicate": _duplicated,
    "swap": _swapped,
    "delay": _delayed,
    "attempt": _other_attempt,
    "timeout": _other_timeout,
    "sandbox id": _other_sandbox,
    "container id": _other_container,
    "image": _other_image,
    "labels": _other_labels,
}
"""The kinds of change of a call, each with the variants it yields."""


def _other_exit_code(scene: Scene, place: int) -> Iterator[tuple[str, Callable[[], list[Json]]]]:
    """0 becomes 1 and anything else 0: as the runtime saw it, and also as it tells it."""
    record = scene.records[place]
    code = 0 if record["exit_code"] else 1
    alone = [*scene.records[:place], {**record, "exit_code": code}, *scene.records[place + 1 :]]
    yield "exit code", lambda: alone
    key = record["container_id"]
    yield (
        "exit code told",
        lambda: [_with_status(one, key, lambda status: _exited_with(status, code)) for one in alone],
    )


def _exited_with(status: Json, code: int) -> Json:
    if status.get("state") != "CONTAINER_EXITED":
        return status
    return {**status, "exit_code": code, "reason": "Error" if code else "Completed"}


def _other_phase(scene: Scene, place: int) -> Iterator[tuple[str, Callable[[], list[Json]]]]:
    record = scene.records[place]
    for phase in PHASES:
        if phase != record["status"].get("phase"):
            yield (
                phase,
                lambda phase=phase: [
                    *scene.records[:place],
                    {**record, "status": {**record["status"], "phase": phase}},
                    *scene.records[place + 1 :],
                ],
            )
