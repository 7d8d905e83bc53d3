"""The first line of a trace: its versions, and how complete each channel of the record is."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Literal

import msgspec

FORMAT_VERSION = 1


class Channels(msgspec.Struct, frozen=True, kw_only=True):
    """How much of each channel the record holds; an absent channel counts as `none`.

    `full` and `sent` miss nothing; `sampled` and `limited` may come late or miss short-lived values, but
    never show what was not there. `served` are statuses as the kubelet itself serves them at /pods: sampled,
    and before they are held back, dated or moved to a mirror on their way to an API server. Early traces say
    `told` for it.
    """

    cri: Literal["full", "sampled", "none"] = "none"
    pods: Literal["sent", "sampled", "none"] = "none"
    api: Literal["full", "sampled", "served", "told", "none"] = "none"
    events: Literal["full", "limited", "none"] = "none"

    def __post_init__(self) -> None:
        if self.api == "told":
            msgspec.structs.force_setattr(self, "api", "served")


class Slice(msgspec.Struct, frozen=True, rename={"begin": "from", "end": "to"}):
    """What was cut out of a longer trace: pods, by NAMESPACE/NAME or UID, and a span in seconds.

    No pods means all of them; None means the begin or the end of the whole. `channels` speak of what is left.
    """

    pods: tuple[str, ...] = ()
    begin: float | None = None
    end: float | None = None


class Header(msgspec.Struct, frozen=True, kw_only=True):
    """What the writer knew when the record began. Unknown fields are ignored."""

    trace: int
    clock: Literal["virtual", "wall"] = "wall"
    channels: Channels = Channels()
    kubelet: str | None = None
    kubernetes: str | None = None
    then_kubernetes: str | None = None
    """The version of the other kubelet, where two take turns on the node; each start says which it is of."""
    feature_gates: dict[str, bool] = msgspec.field(default_factory=dict[str, bool], name="featureGates")
    runtime: str | None = None
    started: str | None = None
    node: str | None = None
    node_assumed: bool = False
    """The kubelet may call its node otherwise."""
    from_start: bool = False
    standalone: bool = False
    """The kubelet has no API server."""
    scenario: str | None = None
    scenarios: dict[str, str] = msgspec.field(default_factory=dict[str, str])
    """Of a node that scenarios share: the scenario of each namespace, and of those whose names begin so."""
    seed: int | str | None = None
    exempt: tuple[str, ...] = ()
    """The contracts of the runtime that the scenario makes it break: the trace is not judged by them."""
    configuration: dict[str, Any] | None = None
    """The kubelet's KubeletConfiguration as far as it is known; {} if all fields have their defaults."""
    allocatable: dict[str, str] | None = None
    """The node's allocatable resources, by name."""
    slice: Slice | None = None
    """It was cut out of a longer trace."""
    redacted: bool = False
    """Digests stand in the place of secrets."""
    patient: bool = False
    """Calls fail at any time: nothing is overdue while they do, or are held up."""

    @property
    def gates(self) -> frozenset[str]:
        """The feature gates that are on, as far as they are known."""
        return frozenset(name for name, is_on in self.feature_gates.items() if is_on)

    def scenario_of(self, namespace: str) -> str | None:
        """The scenario that a namespace is of, where that is known."""
        own = (name for own, name in self.scenarios.items() if f"{namespace}-".startswith(f"{own}-"))
        return self.scenario or next(own, None)

    def time_of_day(self, t: float) -> str:
        """The time of day at `t` seconds of the trace, as "09:30:00.123 UTC"; "" where it is not known."""
        began = None if self.clock == "virtual" else epoch_seconds(self.started or "")
        if began is None:
            return ""
        return f"{datetime.fromtimestamp(began + t, UTC).isoformat('T', 'milliseconds')[11:23]} UTC"


@lru_cache(maxsize=1024)
def epoch_seconds(stamp: str) -> float | None:
    """A time of day as RFC 3339, in seconds since the epoch; None for what is none."""
    try:
        return datetime.fromisoformat(stamp).timestamp()
    except ValueError:
        return None


def rfc3339(ns: int) -> str:
    """A time of day, in nanoseconds since the epoch, as `started` gives it, to the microsecond."""
    return f"{datetime.fromtimestamp(ns // 1000 / 1e6, UTC):%Y-%m-%dT%H:%M:%S.%fZ}"
