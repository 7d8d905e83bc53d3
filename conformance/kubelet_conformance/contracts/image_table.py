"""What is done about an image before a container is made from it (table 27.11), as seen from outside.

Rows are tried from the top, and the first that fits decides.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

Presence: TypeAlias = Literal["present", "absent", "error", "not asked"]
"""What ImageStatus said of the image."""
Step: TypeAlias = Literal["use", "pull", "wait", "refuse"]


class ImageFacts(NamedTuple):
    """What the step depends on; `unproven` says that the pod has yet to show its right to an image."""

    policy: str
    presence: Presence
    backing_off: bool = False
    unproven: bool = False


@dataclass(frozen=True, slots=True)
class ImageRow:
    """Where `when` holds, this is done; `reason` is what the container waits for then."""

    row: str
    when: Callable[[ImageFacts], bool]
    step: Step
    why: str
    reason: str = ""


IMAGE_ROWS: tuple[ImageRow, ...] = (
    ImageRow(
        "I1",
        lambda f: f.presence == "error",
        "refuse",
        "nobody knows whether it is there",
        "ImageInspectError",
    ),
    ImageRow(
        "I2",
        lambda f: f.policy == "Always" and f.backing_off,
        "wait",
        "a pull has just failed",
        "ImagePullBackOff",
    ),
    ImageRow("I3", lambda f: f.policy == "Always", "pull", "it is pulled each time", "ErrImagePull"),
    ImageRow("I4", lambda f: f.presence == "present" and not f.unproven, "use", "it is there"),
    ImageRow(
        "I5",
        lambda f: f.policy == "Never",
        "refuse",
        "it is not there for this pod, and must not be pulled",
        "ErrImageNeverPull",
    ),
    ImageRow("I6", lambda f: f.backing_off, "wait", "a pull has just failed", "ImagePullBackOff"),
    ImageRow("I7", lambda _: True, "pull", "it is not there for this pod", "ErrImagePull"),
)


def image_row(facts: ImageFacts) -> ImageRow:
    """The row that decides."""
    return next(row for row in IMAGE_ROWS if row.when(facts))
