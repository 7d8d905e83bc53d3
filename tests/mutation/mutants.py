"""Mutants of a recorded trace: the same history with one thing wrong.

Each mutating call is dropped, duplicated, swapped with the pod's next one, or late; its attempt, timeout,
ids, image or labels are changed, and so are exit codes and phases. Reads are never mutated, and neither is
what the catalogue declares free (see `freedom`).
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from hashlib import blake2s
from typing import TypeAlias

from echoes import listing_also, merged, telling, with_exit_code, with_status
from freedom import free
from lateness import late
from recording import Json, Recording
from scene import Action, Scene

LATE_SECONDS = {"RemovePodSandbox": 150, "RemoveContainer": 150}
"""Garbage is collected each 60 s; every other reaction is bounded by a retry of 16 s and its slack."""
LATE_SECONDS_ELSE = 60
LONGER_GRACE = 30
MINIMUM_GRACE = 2
PHASES = ("Pending", "Running", "Succeeded", "Failed")
LABELS = ("io.kubernetes.pod.uid", "io.kubernetes.container.name")
UNKNOWN_ID = "0123456789abcdef0123456789abcdef"
UNKNOWN_IMAGE = "sha256:" + "0" * 64

Make: TypeAlias = "Callable[[], list[Json]]"
Variants: TypeAlias = "Iterator[tuple[str, Make]]"


@dataclass(frozen=True, slots=True)
class Mutant:
    """One wrong history. `call` and `change` are its classes; `seq` is the record that was changed."""

    trace: str
    seq: int
    call: str
    change: str
    detail: str
    make: Make

    @property
    def name(self) -> str:
        """Its address in lists."""
        detail = f" {self.detail}" if self.detail else ""
        return f"{self.trace}:{self.seq} {self.call} {self.change}{detail}"


def mutants(recording: Recording) -> Iterator[Mutant]:
    """Every mutant of a recording: those of its calls, then those of exits and statuses."""
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
            for detail, make in _other_phase(scene, place):
                yield Mutant(recording.name, place + 1, "status", "phase", detail, make)


def _dropped(scene: Scene, action: Action) -> Variants:
    yield "", partial(_without, scene, action)


def _without(scene: Scene, action: Action) -> list[Json]:
    gone = {action.call, action.reply}
    return [record for place, record in enumerate(scene.records) if place not in gone]


def _duplicated(scene: Scene, action: Action) -> Variants:
    yield "", partial(_twice, scene, action)


def _twice(scene: Scene, action: Action) -> list[Json]:
    """The call comes again at once. What it makes the runtime makes twice, and lists twice from then on."""
    call, reply = scene.records[action.call], scene.records[action.reply]
    again = {"id": f"{call['id']}-again", "t": reply["t"]}
    second = {**reply, **again}
    rest = list(scene.records[action.reply + 1 :])
    if action.rpc in {"CreateContainer", "RunPodSandbox"} and not action.failed:
        fresh = blake2s(action.target.encode(), digest_size=16).hexdigest()
        second["response"] = dict.fromkeys(reply["response"], fresh)
        rest = [listing_also(record, action.target, fresh) for record in rest]
    return [*scene.records[: action.reply + 1], {**call, **again}, second, *rest]


def _swapped(scene: Scene, action: Action) -> Variants:
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


def _delayed(scene: Scene, action: Action) -> Variants:
    seconds = LATE_SECONDS.get(action.rpc, LATE_SECONDS_ELSE)
    yield f"{seconds} s", partial(late, scene, action.call, seconds)


def _other_attempt(scene: Scene, action: Action) -> Variants:
    if action.rpc in {"CreateContainer", "RunPodSandbox"}:
        attempt = action.request["config"]["metadata"].get("attempt", 0)
        for other in (attempt + 1, attempt - 1):
            if other >= 0:
                change = {"metadata": {"attempt": other}}
                yield f"{attempt} to {other}", partial(_asked_otherwise, scene, action, change)


def _other_labels(scene: Scene, action: Action) -> Variants:
    for label in LABELS:
        if label in action.request.get("config", {}).get("labels", {}):
            change = {"labels": {label: "other"}}
            yield label.removeprefix("io.kubernetes."), partial(_asked_otherwise, scene, action, change)


def _other_image(scene: Scene, action: Action) -> Variants:
    if action.rpc == "CreateContainer":
        yield "", partial(_asked_otherwise, scene, action, {"image": {"image": UNKNOWN_IMAGE}})


def _asked_otherwise(scene: Scene, action: Action, change: Json) -> list[Json]:
    """The config of what is made differs in some fields, and the runtime echoes the metadata and labels."""
    records = list(scene.records)
    config = merged(action.request["config"], change)
    records[action.call] = {**records[action.call], "request": {**action.request, "config": config}}
    echoed = {key: value for key, value in change.items() if key in {"metadata", "labels"}}
    if action.target and echoed:
        later = records[action.reply + 1 :]
        records[action.reply + 1 :] = [telling(record, action.target, echoed) for record in later]
    return records


def _other_timeout(scene: Scene, action: Action) -> Variants:
    if action.rpc == "StopContainer":
        timeout = int(action.request.get("timeout", 0))
        for other in (timeout + LONGER_GRACE, 0 if timeout <= MINIMUM_GRACE else 1):
            yield f"{timeout} to {other}", partial(_with_request, scene, action, {"timeout": str(other)})


def _other_sandbox(scene: Scene, action: Action) -> Variants:
    if "pod_sandbox_id" in action.request:
        yield _other_id(scene, action, "pod_sandbox_id")


def _other_container(scene: Scene, action: Action) -> Variants:
    if "container_id" in action.request:
        yield _other_id(scene, action, "container_id")


def _other_id(scene: Scene, action: Action, field: str) -> tuple[str, Make]:
    """The newest other object that the runtime holds, else one that it never had."""
    held = scene.at_runtime(action.call, containers=field == "container_id")
    others = [one for one in held if one != action.request[field]]
    other = others[-1] if others else UNKNOWN_ID
    return "to another" if others else "unknown", partial(_with_request, scene, action, {field: other})


def _with_request(scene: Scene, action: Action, fields: Json) -> list[Json]:
    return _with_record(scene, action.call, {"request": action.request | fields})


def _with_record(scene: Scene, place: int, fields: Json) -> list[Json]:
    return [*scene.records[:place], scene.records[place] | fields, *scene.records[place + 1 :]]


CHANGES: dict[str, Callable[[Scene, Action], Variants]] = {
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


def _other_exit_code(scene: Scene, place: int) -> Variants:
    """0 becomes 1 and anything else 0: as the runtime saw it, and also as it tells it."""
    code = 0 if scene.records[place]["exit_code"] else 1
    yield "exit code", partial(_with_record, scene, place, {"exit_code": code})
    yield "exit code reported", partial(_exited_otherwise, scene, place, code)


def _exited_otherwise(scene: Scene, place: int, code: int) -> list[Json]:
    records = _with_record(scene, place, {"exit_code": code})
    key = records[place]["container_id"]
    return [with_status(one, key, partial(with_exit_code, code=code)) for one in records]


def _other_phase(scene: Scene, place: int) -> Variants:
    status = scene.records[place]["status"]
    for phase in PHASES:
        if phase != status.get("phase"):
            changed = {"status": {**status, "phase": phase}}
            yield f"to {phase}", partial(_with_record, scene, place, changed)
