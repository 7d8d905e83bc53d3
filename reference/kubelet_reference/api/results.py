"""What probes say of a container, and why the kubelet stops one."""

from enum import Enum, StrEnum, auto

import msgspec


class Answer(msgspec.Struct, frozen=True):
    """What a probe's handler found out, and its output; `warns` is for what is healthy and yet odd."""

    healthy: bool
    output: str
    warns: bool = False


class ProbeOutcome(Enum):
    """The published result of a probe."""

    SUCCESS = auto()
    FAILURE = auto()
    UNKNOWN = auto()


class ProbeKind(StrEnum):
    """The three probes of a container."""

    LIVENESS = "Liveness"
    READINESS = "Readiness"
    STARTUP = "Startup"


class KillReason(Enum):
    """Why one container is stopped; the probes' reasons select the probe's own grace period (TERM-03)."""

    UNKNOWN = auto()
    STARTUP_PROBE = auto()
    LIVENESS_PROBE = auto()
