"""A history is data: pods that are wanted and what happens to them and to the node, step by step.

Steps name things by a number that counts modulo what is there when their turn comes, so that a history from
which steps were taken is still one. A step for which nothing is there is passed over.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import msgspec

from kubelet_conformance.targets.protocols import Effect

SCHEMA = 1
"""The version of the form in which histories are kept."""


class _Step(msgspec.Struct, frozen=True, tag_field="step", forbid_unknown_fields=True):
    pass


class Want(_Step, tag="want", frozen=True):
    """Another pod is wanted, from the API server or from a file; its name is its number."""

    manifest: dict[str, Any]
    static: bool = False


class AddAgain(_Step, tag="add-again", frozen=True):
    """A pod that was deleted is wanted again under its name, a static one by the same file."""

    pod: int


class Update(_Step, tag="update", frozen=True):
    """A container gets another image; a static pod's file is written anew, and makes another pod of it."""

    pod: int
    container: int
    image: str


class Delete(_Step, tag="delete", frozen=True):
    """A pod's deletion is asked for, or its file removed; `grace` in seconds, None leaves it to the pod."""

    pod: int
    grace: int | None = None


class DeleteMirror(_Step, tag="delete-mirror", frozen=True):
    """Somebody deletes the mirror of a static pod at the API server; `grace` as of `Delete`."""

    pod: int
    grace: int | None = None


class End(_Step, tag="end", frozen=True):
    """A container that runs ends by itself, or for lack of memory."""

    container: int
    code: int = 0
    oom: bool = False


class BreakRecords(_Step, tag="break-records", frozen=True):
    """A sandbox dies."""

    how: Literal["kill_sandbox"]
    number: int


class Flip(_Step, tag="flip", frozen=True):
    """The servers in pods answer at a path with this status from now on."""

    path: str
    status: int


class Publish(_Step, tag="publish", frozen=True):
    """The registry has an image, or no longer."""

    image: str
    there: bool


class RestartKubelet(_Step, tag="restart-kubelet", frozen=True):
    """The kubelet is asked to end, or killed, and started again after `down` seconds."""

    down: float = 1.0
    kill: bool = True


class RestartRuntime(_Step, tag="restart-runtime", frozen=True):
    """The runtime goes down and comes up; containers go on."""


class Reboot(_Step, tag="reboot", frozen=True):
    """The node goes down, kubelet and all, and comes up."""


class Strike(_Step, tag="strike", frozen=True):
    """The next `times` calls of an rpc fail or are late by `delay` seconds."""

    rpc: str
    effect: Effect
    times: int = 1
    delay: float = 0.0
    code: str = "INTERNAL"


class Outage(_Step, tag="outage", frozen=True):
    """The API server is away until things are healed."""


class LateWatch(_Step, tag="late-watch", frozen=True):
    """The API server tells of each change so much later (s), until things are healed."""

    seconds: float


class ForgetHistory(_Step, tag="forget-history", frozen=True):
    """The watch ends with 410 Gone."""


class DisturbEvents(_Step, tag="disturb-events", frozen=True):
    """The next `count` container events are lost, late by `seconds`, or reversed, or their stream breaks."""

    how: Literal["lose", "delay", "reverse", "cut"]
    count: int = 1
    seconds: float = 0.0


class Heal(_Step, tag="heal", frozen=True):
    """All faults end."""


class Wait(_Step, tag="wait", frozen=True):
    """Time passes, in seconds."""

    seconds: float


Step: TypeAlias = (
    Want
    | AddAgain
    | Update
    | Delete
    | DeleteMirror
    | End
    | BreakRecords
    | Flip
    | Publish
    | RestartKubelet
    | RestartRuntime
    | Reboot
    | Strike
    | Outage
    | LateWatch
    | ForgetHistory
    | DisturbEvents
    | Heal
    | Wait
)


class History(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What happens, and what chance decides.

    Attributes:
        steps: what happens, in order.
        orders: which of several ready things comes first, choice by choice and over and over; 0 is first in,
            first out.
        seed: of the kubelet's jitter.
        evented: the kubelet hears the runtime's container events (gate EventedPLEG).
        schema: the version of this form.
    """

    steps: tuple[Step, ...]
    orders: tuple[int, ...] = ()
    seed: int = 0
    evented: bool = False
    schema: int = SCHEMA


class HistoryError(ValueError):
    """What was read is no history of this version."""


def as_json(history: History) -> bytes:
    """The history as it is kept: one JSON object, equal histories in equal bytes."""
    return msgspec.json.format(msgspec.json.encode(history, order="deterministic"), indent=1) + b"\n"


def from_json(text: bytes) -> History:
    """What `as_json` wrote; raises HistoryError."""
    try:
        history = msgspec.json.decode(text, type=History)
    except msgspec.MsgspecError as error:
        raise HistoryError(f"this is no history: {error}") from None
    if history.schema != SCHEMA:
        raise HistoryError(f"the history has schema {history.schema}, and this suite reads {SCHEMA}")
    return history
