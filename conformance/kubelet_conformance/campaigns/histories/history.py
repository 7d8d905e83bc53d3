"""A history as data: the pods that are created, and the actions and faults on them and on the node.

Histories that broke something are kept in a folder, one file each, and played first the next time.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import blake2s
from pathlib import Path

import msgspec

from kubelet_conformance.campaigns.histories.steps import Step
from kubelet_conformance.trace.format.errors import BadInputError

SCHEMA = 1
"""The version of the form in which histories are kept."""


class History(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What happens, and what chance decides.

    Attributes:
        steps: what happens, in order.
        orders: which of several ready things comes first, choice by choice and over and over; 0 is first in,
            first out.
        seed: of the kubelet's jitter.
        evented: the kubelet uses the runtime's container events (gate EventedPLEG).
        schema: the version of this form.
    """

    steps: tuple[Step, ...]
    orders: tuple[int, ...] = ()
    seed: int = 0
    evented: bool = False
    schema: int = SCHEMA


class HistoryError(BadInputError):
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


@dataclass(frozen=True, slots=True)
class KeptHistory:
    """A history and the file that it is in."""

    path: Path
    history: History

    @property
    def name(self) -> str:
        """What its trace is called."""
        return self.path.stem


def name_of(history: History, what: str) -> str:
    """What a history that broke `what` is called: equal histories alike."""
    digest = blake2s(as_json(history), digest_size=4).hexdigest()
    return f"{re.sub(r'[^A-Za-z0-9]+', '-', what)}-{digest}"


def keep(folder: Path, history: History, what: str) -> Path:
    """Write a history that broke `what` into the folder, which is made if need be; raises OSError."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name_of(history, what)}.json"
    path.write_bytes(as_json(history))
    return path


def read(paths: Iterable[Path]) -> list[KeptHistory]:
    """The histories in these files; raises OSError, and HistoryError that names the file."""
    found: list[KeptHistory] = []
    for path in paths:
        try:
            found.append(KeptHistory(path, from_json(path.read_bytes())))
        except HistoryError as error:
            raise HistoryError(f"{path}: {error}") from None
    return found


def kept_in(folder: Path) -> list[KeptHistory]:
    """The histories that a folder holds, by name; none, if there is no folder. Raises as `read` does."""
    return read(sorted(folder.glob("*.json")))
