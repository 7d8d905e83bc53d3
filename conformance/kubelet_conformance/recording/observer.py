"""One recording from begin to end: observed calls and the pods read at each look, ordered and written."""

from collections.abc import Callable

from kubelet_conformance.recording.ordering import Owners, Work, place_of
from kubelet_conformance.recording.pod_sources import Change, PodsReadError, PodsSource, Watch
from kubelet_conformance.recording.transcript import Transcript
from kubelet_conformance.tap.events import Note, Observation

TICK_SECONDS = 1.0
"""How often the pods are looked at, and what was written is handed to the system."""
_HELD_MAX = 100_000
_HELD_BYTES_MAX = 64 * 1024 * 1024
_LAG_NS = 1_000_000_000
"""A look is skipped if the last observed call is older than this: writing must catch up first."""
_RETRY_TICKS_MAX = 10
"""After a look that failed, so many ticks pass until the next at most; at first fewer."""


class Observer:
    """Takes everything that the tap observes, in order, with a note for each tick.

    With pods to look at, calls wait for the next look, a tick later, so that what it finds can be put before
    the calls that it explains.

    Args:
        transcript: Where everything is written.
        source: Where the desired pods are read; None if nowhere.
        now_ns: The monotonic clock, as the tap reads it.
        complain: Called with what cannot be read, each problem once.
    """

    def __init__(
        self,
        transcript: Transcript,
        source: PodsSource | None,
        now_ns: Callable[[], int],
        complain: Callable[[str], None],
    ) -> None:
        self._transcript = transcript
        self._source = source
        self._now_ns = now_ns
        self._complain = complain
        self._owners = Owners()
        self._watch = Watch(gives_status=source is not None and source.gives_status)
        self._held: list[Observation] = []
        self._held_bytes = 0
        self._works: list[tuple[int, Work]] = []
        self._found: list[Change] | None = None
        """What the last look found, until all calls observed before it are in."""
        self._found_ns = 0
        self._reported: set[str] = set()
        self._failures = 0
        self._rest = 0
        """How many ticks pass until the next look."""

    def observe(self, observation: Observation) -> None:
        """Take one observation; a note that says nothing is a tick, any other is of a stall."""
        if isinstance(observation, Note) and not observation.data:
            self._tick(observation.at_ns)
        elif self._source is None:
            self._transcript.observe(observation)
        else:
            if self._found is not None and observation.at_ns > self._found_ns:
                self._settle()
            self._hold(observation)

    def end(self, at_ns: int) -> None:
        """Nothing more comes: look once more, and write what is left."""
        if self._source is not None:
            if self._found is None:
                self._look()
            # Writing may be behind by seconds, in which no call was observed any more.
            self._found_ns = min(self._found_ns, at_ns)
            self._settle()
        self._transcript.end(at_ns)

    def _tick(self, at_ns: int) -> None:
        if self._source is not None:
            if self._found is not None and at_ns > self._found_ns:
                self._settle()
            late = self._now_ns() - at_ns > _LAG_NS
            if self._rest or late:
                self._rest = max(0, self._rest - 1)
                self._settle()
            elif self._found is None:
                self._look()
        self._transcript.flush()

    def _hold(self, observation: Observation) -> None:
        work = self._owners.observe(observation)
        if work is not None:
            self._works.append((len(self._held), work))
        self._held.append(observation)
        self._held_bytes += _size(observation)
        if len(self._held) > _HELD_MAX or self._held_bytes > _HELD_BYTES_MAX:
            self._settle()

    def _look(self) -> None:
        if self._source is None:
            return
        try:
            look = self._source.look()
        except PodsReadError as error:
            self._say(str(error))
            self._rest = min(2**self._failures - 1, _RETRY_TICKS_MAX)
            self._failures = min(self._failures + 1, _RETRY_TICKS_MAX)
            self._settle()
            return
        self._failures = 0
        for problem in look.problems:
            self._say(problem)
        self._found, self._found_ns = self._watch.changes(look), self._now_ns()

    def _say(self, problem: str) -> None:
        if problem not in self._reported and len(self._reported) < _HELD_MAX:
            self._reported.add(problem)
            self._complain(problem)

    def _settle(self) -> None:
        """Write what is held, with what the look found in its places."""
        placed: dict[int, list[Change]] = {}
        later: list[Change] = []
        for change in self._found or ():
            place = place_of(change, self._works)
            (later if place is None else placed.setdefault(place, [])).append(change)
        transcript = self._transcript
        for place, observation in enumerate(self._held):
            for change in placed.get(place, ()):
                self._write(observation.at_ns, change)
            transcript.observe(observation)
        for change in later:
            self._write(self._found_ns, change)
        if self._watch.is_alone:
            transcript.narrow(self._found_ns, "api", "none")
        self._held, self._held_bytes, self._works, self._found = [], 0, [], None

    def _write(self, at_ns: int, change: Change) -> None:
        for kind, fields in change.records:
            self._transcript.record(at_ns, kind, fields)


def _size(observation: Observation) -> int:
    for name in ("request", "response", "message"):
        found = getattr(observation, name, None)
        if isinstance(found, bytes):
            return len(found)
    return 0
