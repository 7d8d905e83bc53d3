"""What the zoo holds, without what its bugs are made of."""

from collections import defaultdict
from dataclasses import dataclass
from functools import cache


@dataclass(frozen=True, slots=True)
class BugCard:
    """What is declared of a bug; see `kubelet_bugs.Bug`."""

    id: str
    title: str
    breaks: tuple[str, ...]
    aliases: tuple[str, ...]
    kubernetes: str
    is_of_runtimes: bool


def bug_ids() -> tuple[str, ...]:
    """The ids of all bugs, in order."""
    from kubelet_bugs import every_bug  # noqa: PLC0415 - the only door, opened by name

    return tuple(every_bug())


def bug_card(name: str) -> BugCard:
    """The card of a bug by its id or alias; raises `LookupError`."""
    from kubelet_bugs import find_bug  # noqa: PLC0415 - the only door, opened by name

    bug = find_bug(name)
    return BugCard(bug.id, bug.title, bug.breaks, bug.aliases, bug.kubernetes, bug.is_of_runtimes)


@cache
def declared_bugs() -> dict[str, list[str]]:
    """The ids of the bugs that declare to break a contract, by its id; read only."""
    found: dict[str, list[str]] = defaultdict(list)
    for card in map(bug_card, bug_ids()):
        for contract in card.breaks:
            found[contract].append(card.id)
    return found
