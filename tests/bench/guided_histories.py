"""What is reached by guided histories and by others that cost the processor as much.

python tests/bench/guided_histories.py [--seconds S] [--seed S]

Counted are the rows of decision tables that decide, the clauses of contracts that are exercised, the errors
of calls, and the rows that decide in a history in which a call has failed, by the call and its error.
"""

import argparse
import sys
import time
from collections.abc import Hashable, Iterator
from itertools import count
from pathlib import Path
from tempfile import NamedTemporaryFile

from kubelet_conformance.campaigns.coverage.decisions import decisions, forget_decisions
from kubelet_conformance.campaigns.histories.novelty import Novelty
from kubelet_conformance.campaigns.histories.play import PlayedHistory, play
from kubelet_conformance.campaigns.histories.search import CHUNK, Chunk, histories_of
from kubelet_conformance.contracts import every_contract
from kubelet_conformance.targets.choice import Choice
from kubelet_conformance.trace.format.reader import Reader
from kubelet_conformance.trace.format.records import Reply

_APART = 1_000_000


def main() -> int:
    """Measure both and print them; 1 where guidance reaches less."""
    parser = argparse.ArgumentParser(description="What does guidance gain?")
    parser.add_argument("--seconds", type=float, default=60, metavar="S", help="of the processor, for each")
    parser.add_argument("--seed", type=int, default=0, metavar="S")
    options = parser.parse_args()

    by_chance = _reached(options.seconds, options.seed, None)
    guided = _reached(options.seconds, options.seed, Novelty())
    print(f"by chance {by_chance} things, guided {guided}: {guided / by_chance - 1:+.0%}")
    return 0 if guided > by_chance else 1


def _reached(seconds: float, seed: int, novelty: Novelty | None) -> int:
    """How many different things histories reach in this time of the processor, drawing included."""
    contracts, choice = list(every_contract().values()), Choice(kubernetes="1.32")
    found = set[Hashable]()
    until = time.process_time() + seconds
    for number in count(seed * _APART):
        for history in histories_of(Chunk(number, CHUNK), novelty):
            forget_decisions()
            found.update(_things(play(history, choice, contracts)))
            if time.process_time() > until:
                return len(found)
    raise AssertionError("there is no last chunk")


def _things(played: PlayedHistory) -> Iterator[Hashable]:
    rows, errors = decisions(), set(_errors(played.trace))
    yield from rows
    yield from errors
    yield from ((row, error) for row in rows for error in errors)
    for contract, outcome in played.judged.outcomes.items():
        yield from ((contract, clause) for clause, _ in outcome.kept_clauses)


def _errors(trace: bytes) -> Iterator[tuple[str, str]]:
    with NamedTemporaryFile(suffix=".jsonl") as file:
        Path(file.name).write_bytes(trace)
        with Reader(file.name) as reader:
            for each in reader:
                if isinstance(each, Reply) and each.error is not None:
                    yield each.call.rpc, each.error.code


if __name__ == "__main__":
    sys.exit(main())
