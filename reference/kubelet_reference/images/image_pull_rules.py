"""Whether an image is used as it is, is pulled, or cannot be had."""

from dataclasses import dataclass
from enum import Enum, auto

from kubelet_reference.api import pods
from kubelet_reference.util.decision_table import Row, Table


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
    """Refuse: it is absent, or not for this pod, and the policy forbids pulling it."""
    INSPECT_ERROR = auto()
    """Refuse: it is unknown whether it is there."""


@dataclass(frozen=True, slots=True)
class ImageFacts:
    """All that the decision depends on; `policy` is Always, IfNotPresent or Never.

    `proven` says that the pod may use the image that is there (IMAGE-21).
    """

    policy: str
    presence: Presence
    backing_off: bool
    proven: bool


ROWS = Table[ImageFacts, Row[ImageFacts, ImageStep]](
    Row("cannot be looked for", lambda f: f.presence is Presence.FAILED, ImageStep.INSPECT_ERROR),
    Row(
        "present, and the pod may use it",
        lambda f: f.presence is Presence.PRESENT and f.policy != pods.ALWAYS and f.proven,
        ImageStep.USE,
    ),
    Row("must not be pulled", lambda f: f.policy == pods.NEVER, ImageStep.NEVER_PULL),
    Row("backing off", lambda f: f.backing_off, ImageStep.BACK_OFF),
    Row("otherwise", lambda _: True, ImageStep.PULL),
)


def image_decision(facts: ImageFacts) -> ImageStep:
    """The step for an image: that of the first row that holds (IMAGE-02)."""
    return ROWS.row(facts).then
