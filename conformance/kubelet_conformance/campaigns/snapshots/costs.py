"""What a scenario costs, by the shipped text of what the reference does in it; nothing is played."""

import re
from typing import NamedTuple

from kubelet_fixtures import snapshots

_PAUSE = re.compile(r"^about (\d+) s later$", re.MULTILINE)


class Cost(NamedTuple):
    """What it takes to play a scenario.

    Attributes:
        seconds: how long it lasts on the clock of the node, about: so long it takes on a real kubelet.
        steps: how many calls, events and changes of a status are in it, beside reads.
    """

    seconds: int
    steps: int


def cost_of(scenario: str) -> Cost:
    """The cost of the scenario of that name; nothing is known of one that is not of this package."""
    area, _, name = scenario.partition(".")
    try:
        text = (snapshots() / area / f"{name}.txt").read_text(encoding="utf-8")
    except FileNotFoundError:
        return Cost(0, 0)
    seconds = sum(int(each) for each in _PAUSE.findall(text))
    return Cost(seconds, sum(line.startswith("  ") for line in text.splitlines()))
