"""Generates and runs histories until one breaks something new, and shrinks that one.

Histories come in chunks, each drawn from a seed of its own: so a run can be shared out, and its parts
together play what the whole would have.
"""

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count, islice
from typing import cast
from unittest.mock import patch

from hypothesis import HealthCheck, Phase, Verbosity, seed, settings
from hypothesis.internal.conjecture import providers
from hypothesis.internal.constants_ast import Constants
from hypothesis.stateful import run_state_machine_as_test

from kubelet_conformance.campaigns.histories.generator import STEPS, Machine
from kubelet_conformance.campaigns.histories.history import History
from kubelet_conformance.campaigns.histories.novelty import DRAWN_FOR_ONE, Novelty
from kubelet_conformance.campaigns.histories.play import ENDLESS, PlayedHistory
from kubelet_conformance.campaigns.histories.shrinking import WAYS, places

CHUNK = 50
"""So many histories are drawn from one seed."""
SHRINKS_MAX = 150
"""So many histories are played at most to make one that breaks something smaller."""
_ENDLESS_SHRINKS_MAX = 25
"""The same where each play is as long as one that never ends."""
_NO_CHECKS = (HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example)
"""A history is larger, and takes longer, than what Hypothesis expects of an example."""
_SEEDS = 1_000_003
"""Keeps the chunks of one seed apart from those of the next."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """Some histories that are drawn together: their seed, and how many."""

    seed: int
    size: int


def chunks(total: int, run_seed: int, shard: int = 1, shards: int = 1) -> Iterator[Chunk]:
    """The chunks of a run of `total` histories, or of its part `shard` of `shards`, counted from 1."""
    for number in count():
        left = total - number * CHUNK
        if left <= 0:
            return
        if number % shards == shard - 1:
            yield Chunk(run_seed * _SEEDS + number, min(CHUNK, left))


@dataclass(frozen=True, slots=True)
class Found:
    """A history that breaks something, shrunk.

    Attributes:
        what: what it was shrunk for: the id of a contract, or what else it broke.
        tried: how many histories were played to shrink it.
    """

    what: str
    played: PlayedHistory
    tried: int


@dataclass(slots=True)
class _Search:
    """One chunk: what is sought is settled by the first history that breaks anything not known yet."""

    play: Callable[[History], PlayedHistory]
    broken: Callable[[PlayedHistory], Sequence[str]]
    known: frozenset[str]
    drawn: Callable[[PlayedHistory | None], None]
    played: list[History] = field(default_factory=list["History"])
    what: str = ""

    def broke(self, history: History) -> PlayedHistory | None:
        """Play a history that was drawn; what came of it if it broke something new.

        About one in seven is drawn again: Hypothesis knows its own choices, not what is made of them.
        """
        if history in self.played:
            self.drawn(None)
            return None
        self.played.append(history)
        played = self.play(history)
        self.drawn(played)
        new = [each for each in self.broken(played) if each not in self.known]
        if not new:
            return None
        self.what = new[0]
        return played

    def first_to_break(self, histories: Sequence[History]) -> PlayedHistory | None:
        """The first of these that breaks what was found."""
        played = map(self.play, histories)
        return next((each for each in played if self.what in self.broken(each)), None)


def shrunk(
    found: PlayedHistory,
    first_to_break: Callable[[Sequence[History]], PlayedHistory | None],
    *,
    width: int = 1,
    tries_max: int = SHRINKS_MAX,
) -> tuple[PlayedHistory, int]:
    """The smallest history found, with every step taken out that it does without, and how many were played.

    Args:
        found: What breaks something.
        first_to_break: Plays histories, and returns the first of them that breaks the same, if one does.
        width: How many histories it is given at a time.
        tries_max: About so many are played at most.
    """
    best, tried, went_on = found, 0, True
    while went_on:
        went_on = False
        for less in WAYS:
            left = places(best.history)
            while left > 0:
                candidates = _smaller(less, best.history, left)
                left = 0
                while tried < tries_max and (batch := list(islice(candidates, width))):
                    tried += len(batch)
                    broke = first_to_break([history for _, history in batch])
                    if broke is not None:
                        left = next(place for place, history in batch if history == broke.history)
                        best, went_on = broke, True
                        break
    return best, tried


def _smaller(
    less: Callable[[History, int], Iterator[History]], history: History, left: int
) -> Iterator[tuple[int, History]]:
    """What this way makes of the history at each place below `left`, from the last on."""
    for place in reversed(range(left)):
        for smaller in less(history, place):
            yield place, smaller


@contextmanager
def _by_the_seed_alone() -> Generator[None]:
    """Let Hypothesis take no numbers from the sources of modules that are not installed but are in a folder.

    Else the same seed would give other histories in a checkout than from a wheel, and to a user who has
    modules of his own. There is no setting for that.
    """
    providers.CONSTANTS_CACHE.cache.clear()
    try:
        with patch.object(providers, "_get_local_constants", Constants):
            yield
    finally:
        providers.CONSTANTS_CACHE.cache.clear()


def drawn(chunk: Chunk) -> list[History]:
    """The histories of a chunk, of which some may be equal."""
    found: list[History] = []

    @seed(chunk.seed)
    def chance() -> Machine:
        return Machine(found.append)

    with _by_the_seed_alone():
        # Any factory will do, says its docstring: a class anew for each chunk would be read anew, too.
        run_state_machine_as_test(cast("type[Machine]", chance), settings=_settings(chunk.size))
    return found


def histories_of(chunk: Chunk, novelty: Novelty | None) -> Iterator[History]:
    """The histories of a chunk, or with `novelty` as many of the more that are drawn then."""
    if novelty is None:
        yield from drawn(chunk)
    else:
        yield from novelty.chosen(drawn(Chunk(chunk.seed, DRAWN_FOR_ONE * chunk.size)), chunk.size)


def _settings(size: int) -> settings:
    return settings(
        max_examples=size,
        stateful_step_count=STEPS + 1,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=_NO_CHECKS,
        verbosity=Verbosity.quiet,
        report_multiple_bugs=False,
        print_blob=False,
    )


def seek(  # noqa: PLR0913, PLR0917 - what is drawn, how it is played and judged, and what is reported
    chunk: Chunk,
    play: Callable[[History], PlayedHistory],
    broken: Callable[[PlayedHistory], Sequence[str]],
    known: frozenset[str] = frozenset(),
    drawn: Callable[[PlayedHistory | None], None] = lambda _: None,
    novelty: Novelty | None = None,
) -> Found | None:
    """Play the different histories of a chunk until one breaks what is not `known`, and shrink that one.

    Args:
        chunk: Which histories.
        play: Plays and judges one.
        broken: What a history has broken, the gravest first.
        known: What need not be found again.
        drawn: Called with each history that was drawn, and not with those that are tried to shrink one; None
            for one that was drawn before, which is not played again.
        novelty: Chooses among more histories; see `histories_of`.
    """
    search = _Search(play, broken, known, drawn)

    broke = next((each for each in map(search.broke, histories_of(chunk, novelty)) if each is not None), None)
    if broke is None:
        return None
    tries = _ENDLESS_SHRINKS_MAX if search.what == ENDLESS else SHRINKS_MAX
    return Found(search.what, *shrunk(broke, search.first_to_break, tries_max=tries))
