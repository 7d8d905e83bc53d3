"""Whether an image is used as it is, pulled, or cannot be had: table 27.11."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto

__all__ = ("ImageFacts", "ImageStep", "Presence", "image_decision")

ALWAYS, NEVER = "Always", "Never"


class Presence(Enum):
    """What ImageStatus says of an image."""

    PRESENT = auto()
    ABSENT = auto()
    FAILED = auto()
    """The call failed: that is no absence (IMAGE-06)."""
    NOT_ASKED = auto()


class ImageStep(Enum):
    """What is to be done about an image."""

    USE = auto()
    PULL = auto()
    BACK_OFF = auto()
    """Refuse: a pull has just failed (IMAGE-07)."""
    NEVER_PULL = auto()
    """Refuse: it is absent, and the policy forbids pulling it."""
    INSPECT_ERROR = auto()
    """Refuse: nobody knows whether it is there."""


@dataclass(frozen=True, slots=True)
class ImageFacts:
    """All that the decision depends on; `policy` is Always, IfNotPresent or Never."""

    policy: str
    presence: Presence
    backing_off: bool


def image_decision(facts: ImageFacts) -> ImageStep:
    """The step for an image (IMAGE-02)."""
    if facts.presence is Presence.FAILED:
        return ImageStep.INSPECT_ERROR
    if facts.policy != ALWAYS and facts.presence is Presence.PRESENT:
        return ImageStep.USE
    if facts.policy == NEVER:
        return ImageStep.NEVER_PULL
    return ImageStep.BACK_OFF if facts.backing_off else ImageStep.PULL
