"""Faults: which calls, requests or probes fail, how, and how often. One vocabulary for all fakes.

A fault is a value, and a text of one line:

    CALL[#FIRST[-LAST]] [EFFECT] [CODE] [delay=S] [from=S] [until=S] [NAME=VALUE ...] [: MESSAGE]

>>> from kubelet_fakes.faults import Fault, Faults
>>> fault = Fault.parse("StopContainer#2 after UNAVAILABLE container=c1: shim gone")
>>> fault.first, fault.times, fault.effect.value, fault.where
(2, 1, 'after', {'container': 'c1'})
>>> faults = Faults()
>>> with faults.add(fault):
...     [faults.on_call("StopContainer", {"container": "c1"})[1] is not None for _ in range(3)]
[False, True, False]
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Any, Self

_TIMES = {"delay": "delay", "from": "begins", "until": "ends"}
"""The fields that are numbers of seconds, by their names in the text."""
_MESSAGE = "injected"
API_VERBS = frozenset({"create", "get", "list", "update", "patch", "delete", "watch"})
"""What the names of requests to the API server begin with."""


class Effect(StrEnum):
    """What a fault does to the call that it applies to."""

    NONE = "none"
    """It does not: the call is only late."""
    BEFORE = "before"
    """The call fails and does not take place."""
    AFTER = "after"
    """The call takes place and fails all the same. A watch begins, and breaks off."""
    HANG = "hang"
    """The call is held up until its deadline, and does not take place then; healed, it does."""
    PRETEND = "pretend"
    """The call is answered as done and does not take place."""
    LOST_REPLY = "lost-reply"
    """The call takes place and is not answered before its deadline, or before the fault is healed."""
    BARE = "bare"
    """The call takes place, and its reply lacks the field that the message names: `status.image_ref`."""
    STALE = "stale"
    """A read is answered as it was the last time."""


_EFFECTS = frozenset(each.value for each in Effect)


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault.

    Attributes:
        call: what it hits: an RPC (`StopContainer`), a request to the API server (`patch pods/status`), a
            probe or hook (`httpGet /healthz`, `tcpSocket 80`, `grpc NAME`). A `*` stands for any text.
        effect: what it does to the call.
        code: the error, by gRPC's name or the status of HTTP; empty is the usual one.
        message: the error's text.
        first: the first of the calls that it applies to, counted from 1.
        times: how many calls it applies to; None is all that follow.
        delay: how many seconds late the call is.
        begins: when it begins, in seconds after it was added.
        ends: when it ends, in the same seconds.
        where: what a call must be about, such as `container`, `uid` or `name`.
    """

    call: str
    effect: Effect = Effect.BEFORE
    code: str = ""
    message: str = _MESSAGE
    first: int = 1
    times: int | None = None
    delay: float = 0
    begins: float = 0
    ends: float = math.inf
    where: Mapping[str, str] = field(default_factory=dict[str, str])

    @classmethod
    def parse(cls, text: str) -> Fault:
        """The fault that a text says; raises `ValueError` for one that is none."""
        head, _, message = text.partition(": ")
        words = head.split(" ")
        end = next((n for n, word in enumerate(words) if word in _EFFECTS or "=" in word), len(words))
        call, _, which = " ".join(words[:end]).partition("#")
        named = dict(word.split("=", 1) for word in words[end:] if "=" in word)
        plain = [word for word in words[end:] if "=" not in word]
        seconds = {into: float(named.pop(name)) for name, into in _TIMES.items() if name in named}
        usual = Effect.NONE if "delay" in seconds else Effect.BEFORE
        effect, code, *more = [*plain, ""] if plain else [usual, ""]
        if not call or any(more):
            raise ValueError(f"no fault: {text!r}: expected `CALL[#FIRST[-LAST]] EFFECT CODE NAME=VALUE`")
        first, times = _which(which)
        return cls(call, Effect(effect), code, message or _MESSAGE, first, times, where=named, **seconds)

    def __str__(self) -> str:
        which = ""
        if self.times is not None:
            last = self.first + self.times - 1
            which = f"#{self.first}" if last == self.first else f"#{self.first}-{last}"
        elif self.first > 1:
            which = f"#{self.first}-"
        usual = {"delay": 0, "from": 0, "until": math.inf}
        seconds = {name: getattr(self, into) for name, into in _TIMES.items()}
        words = [
            f"{self.call}{which}",
            "" if self.effect is Effect.NONE else self.effect,
            self.code,
            *(f"{name}={value:g}" for name, value in seconds.items() if value != usual[name]),
            *(f"{name}={value}" for name, value in self.where.items()),
        ]
        message = "" if self.message == _MESSAGE else f": {self.message}"
        return " ".join(filter(None, words)) + message

    @property
    def is_of_api(self) -> bool:
        """Whether it hits requests to the API server."""
        return self.call.partition(" ")[0] in API_VERBS

    @property
    def is_timed(self) -> bool:
        """Whether it begins later, or ends by itself."""
        return self.begins > 0 or self.ends < math.inf

    def hits(self, call: str, about: Mapping[str, str]) -> bool:
        """Whether calls of this name, about these, are meant."""
        return (self.call == call or ("*" in self.call and fnmatchcase(call, self.call))) and all(
            about.get(name, "") == value for name, value in self.where.items()
        )


def _which(text: str) -> tuple[int, int | None]:
    """The first call, and how many: of `2`, `2-3` or `2-`; of nothing, all."""
    first, more, last = text.partition("-")
    if not text:
        return 1, None
    if not last:
        return int(first), None if more else 1
    return int(first), int(last) - int(first) + 1


@dataclass(eq=False, slots=True)
class ActiveFault:
    """A fault in force; also a context manager that heals it at its end."""

    fault: Fault
    _began: float
    _on_heal: Callable[[ActiveFault], None]
    seen: int = 0
    """How many calls were meant since it was added."""
    _healed: asyncio.Event = field(default_factory=asyncio.Event)
    _holding: asyncio.Event = field(default_factory=asyncio.Event)
    _on_apply: list[Callable[[], None]] = field(default_factory=list[Callable[[], None]])

    @property
    def applied(self) -> int:
        """How many calls it has applied to."""
        applied = max(self.seen - self.fault.first + 1, 0)
        return applied if self.fault.times is None else min(applied, self.fault.times)

    @property
    def is_healed(self) -> bool:
        """Whether it was ended."""
        return self._healed.is_set()

    def heal(self) -> None:
        """End it; again is fine. Calls that it holds up go on."""
        if not self.is_healed:
            self._healed.set()
            self._on_heal(self)

    async def until_healed(self) -> None:
        """Hold a call, or the reply to it, until this is healed."""
        self._holding.set()
        await self._healed.wait()

    def when_it_applies(self, act: Callable[[], None]) -> None:
        """Call this with each call that it applies to, before it does anything to it."""
        self._on_apply.append(act)

    async def until_holding(self) -> None:
        """Return when it holds a call, or the reply to one that has taken place."""
        await self._holding.wait()

    def takes(self, now: float) -> bool:
        """Count a call that is meant; whether it is one of those that the fault applies to."""
        fault = self.fault
        if fault.is_timed and not fault.begins <= now - self._began < fault.ends:
            return False
        self.seen += 1
        applies = fault.first <= self.seen and (fault.times is None or self.seen < fault.first + fault.times)
        for act in self._on_apply if applies else ():
            act()
        return applies

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.heal()


class Faults:
    """The faults in force, oldest first.

    Args:
        check: Raises `ValueError` for a fault that makes no sense here.
        now: The time, in seconds; asked only for faults that begin or end by it.
    """

    def __init__(
        self, check: Callable[[Fault], None] = lambda _: None, now: Callable[[], float] = lambda: 0.0
    ) -> None:
        self.on_change: Callable[[ActiveFault], None] = lambda _: None
        """Called with each fault that was added or healed."""
        self._active: list[ActiveFault] = []
        self._check = check
        self._now = now

    def __bool__(self) -> bool:
        return bool(self._active)

    def names(self) -> tuple[str, ...]:
        """The faults in force, as texts."""
        return tuple(str(active.fault) for active in self._active)

    def add(self, fault: Fault | str, **fields: Any) -> ActiveFault:  # noqa: ANN401 - see `Fault`
        """Put a fault in force until it is healed: a value or a text, with these fields set besides."""
        wanted = replace(Fault.parse(fault) if isinstance(fault, str) else fault, **fields)
        self._check(wanted)
        active = ActiveFault(wanted, self._now() if wanted.is_timed else 0.0, self._remove)
        self._active.append(active)
        self.on_change(active)
        return active

    def _remove(self, active: ActiveFault) -> None:
        self._active.remove(active)
        self.on_change(active)

    def delay(self, call: str, seconds: float) -> ActiveFault:
        """Let calls take place and be answered late; a caller that leaves earlier does not stop them."""
        return self.add(Fault(call, Effect.NONE, delay=seconds))

    def heal(self) -> None:
        """End all faults."""
        for active in list(self._active):
            active.heal()

    def delay_of(self, call: str, about: Mapping[str, str]) -> float:
        """How late (s) a stream of this name is now; nothing is counted."""
        return sum(each.fault.delay for each in self._active if each.fault.hits(call, about))

    def on_call(self, call: str, about: Mapping[str, str]) -> tuple[float, ActiveFault | None]:
        """How late this call is (s), by all faults that apply, and the oldest of them that does more."""
        delay, decisive = 0.0, None
        for active in list(self._active):
            fault = active.fault
            only_late = fault.effect is Effect.NONE
            now = self._now() if fault.is_timed else 0.0
            if (only_late or decisive is None) and fault.hits(call, about) and active.takes(now):
                delay += fault.delay
                decisive = decisive if only_late else active
        return delay, decisive
