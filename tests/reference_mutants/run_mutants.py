"""Do the scenarios catch what may go wrong in a kubelet? Play random mutants of the reference.

A mutant is the reference with one change of its code. It is caught if a contract is broken in one of the
plays that run the changed code: scenarios, scenarios as other versions, and a part of the fault sweep. A test
of our own, a wait that times out and an error of the suite do not count. What cannot be imported is drawn
anew. Results are kept in a folder: the same command goes on where it was interrupted, and after a change of
the code plays each mutant first where it was caught last.

Ends with 1 where fewer than 90 % are caught.
"""

import argparse
import os
import re
import sys
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from hashlib import sha256
from importlib.util import find_spec
from itertools import islice
from multiprocessing import get_context
from multiprocessing.pool import AsyncResult
from pathlib import Path

import msgspec
from changed_code import functions, import_all
from covering import Covered, covered
from mutant_play import Result, play_mutant
from mutant_sample import Mutant, drawn
from plays import Play

from kubelet_conformance.contracts import every_contract
from kubelet_conformance.node import scenario_of
from kubelet_conformance.scenarios import every_scenario

ENOUGH = 0.9
_OF_VERSIONS = "util/versions.py"
_MINOR = re.compile(r"\b[23]\d\b")
_PACKAGES = ("kubelet_conformance", "kubelet_fakes", "kubelet_reference")


class Kept(msgspec.Struct, frozen=True):
    """What came of a mutant, as the folder keeps it; `tree` is the digest of all code at that time."""

    key: str
    tree: str
    result: Result


Done = tuple[Mutant, Result]


def main() -> int:
    """Play a sample, print the table, and return the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seed", type=int, default=1, help="draws the mutants (default 1)")
    parser.add_argument("--sample", type=int, default=100, metavar="N", help="how many (default 100)")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, metavar="N")
    parser.add_argument("--folder", type=Path, default=Path("build/mutation"), metavar="DIR")
    parser.add_argument(
        "--keep",
        action="store_true",
        help="take recorded lines, and mutants that were caught, as they are, though code has changed since",
    )
    parser.add_argument("--only", default="", metavar="TEXT", help="only mutants whose file begins so")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    tree = digest()
    every_contract()
    every_scenario()
    lines = covered(given.folder / "coverage.json", tree, given.workers, keep=given.keep)
    mutants = [each for each in drawn(given.seed) if each.file.startswith(given.only)]
    print(f"{len(mutants)} mutants, {given.sample} of them by seed {given.seed}", file=sys.stderr)
    store = Store(given.folder / "results.jsonl", tree, keep=given.keep)
    done = list(islice(shown(played(mutants, lines, store, given.workers)), given.sample))
    print_table(done)
    print_survivors(done)
    caught = sum(result.outcome == "caught" for _, result in done)
    return 0 if caught >= ENOUGH * len(done) else 1


def digest() -> str:
    """The digest of all code that decides what comes of a mutant."""
    found = sha256()
    for package in _PACKAGES:
        spec = find_spec(package)
        assert spec is not None
        assert spec.origin is not None
        for path in sorted(Path(spec.origin).parent.rglob("*.py")):
            found.update(path.read_bytes())
    return found.hexdigest()[:16]


class Store:
    """The results that are kept."""

    def __init__(self, path: Path, tree: str, *, keep: bool) -> None:
        self._path, self._tree, self._keep = path, tree, keep
        self._kept: dict[str, Kept] = {}
        if path.is_file():
            for line in path.read_bytes().splitlines():
                one = msgspec.json.decode(line, type=Kept)
                self._kept[one.key] = one

    def known(self, mutant: Mutant) -> Result | None:
        """What came of it with the very same code, or with another that caught it if that is to be kept."""
        kept = self._kept.get(mutant.key)
        if kept is None:
            return None
        is_valid = kept.tree == self._tree or (self._keep and kept.result.outcome in {"caught", "import"})
        return kept.result if is_valid else None

    def hint(self, mutant: Mutant) -> str:
        """The play that caught it last, if one did."""
        kept = self._kept.get(mutant.key)
        return kept.result.play if kept is not None else ""

    def keep(self, mutant: Mutant, result: Result) -> None:
        """Keep a result."""
        self._kept[mutant.key] = kept = Kept(mutant.key, self._tree, result)
        with self._path.open("ab") as file:
            file.write(msgspec.json.encode(kept) + b"\n")


def played(mutants: Sequence[Mutant], lines: Covered, store: Store, workers: int) -> Iterator[Done]:
    """The mutants that can be imported, in their order, and what comes of each."""
    waiting = iter(mutants)
    import_all()
    functions()
    ahead: deque[tuple[Mutant, Result | AsyncResult[Result]]] = deque()
    # A process for each: a module is imported once.
    with get_context("fork").Pool(workers, maxtasksperchild=1) as pool:

        def begin(mutant: Mutant) -> None:
            known = store.known(mutant)
            ahead.append(
                (
                    mutant,
                    known
                    or pool.apply_async(
                        play_mutant,
                        (mutant, order(mutant, lines, store)),
                        {"anew": lines.runs_at_import(mutant)},
                    ),
                )
            )

        for mutant in islice(waiting, 2 * workers):
            begin(mutant)
        while ahead:
            mutant, coming = ahead.popleft()
            result = coming if isinstance(coming, Result) else coming.get()
            for another in islice(waiting, 1):
                begin(another)
            if result is not coming:
                store.keep(mutant, result)
            if result.outcome != "import":
                yield mutant, result


def order(mutant: Mutant, lines: Covered, store: Store) -> list[Play]:
    """What a mutant is played in, first the play that has caught it before.

    Where the changed line says since which version something holds, the scenarios are then played as the
    versions around that one.
    """
    plays, hint = lines.played_in(mutant), store.hint(mutant)
    if hint in lines.plays:
        plays = [lines.plays[hint], *(each for each in plays if str(each) != hint)]
    minors = map(int, _MINOR.findall(mutant.text)) if mutant.file == _OF_VERSIONS else ()
    versions = dict.fromkeys(f"1.{minor + more}" for minor in minors for more in (0, -1, 1))
    scenarios = dict.fromkeys(each.scenario for each in plays)
    meant = {name: scenario_of(every_scenario()[name]) for name in scenarios}
    return [
        *plays,
        *(Play(name, each) for each in versions for name in scenarios if meant[name].is_meant_for(each)),
    ]


def shown(done: Iterator[Done]) -> Iterator[Done]:
    """The same, with a line of progress for each."""
    counts: Counter[str] = Counter()
    for number, (mutant, result) in enumerate(done, start=1):
        counts[result.outcome] += 1
        said = " ".join((*result.broken[:3], result.unmet))
        print(
            f"{number}: {counts['caught']} caught; {mutant.key}: {result.outcome} {said} "
            f"({result.played} plays, {result.seconds:.1f} s)",
            file=sys.stderr,
            flush=True,
        )
        yield mutant, result


def print_table(done: Sequence[Done]) -> None:
    """The shares by room and by kind of change, as Markdown."""
    print("| room | mutants | caught | share |\n|---|---|---|---|")
    by_room = {room: [r for m, r in done if m.room == room] for room in sorted({m.room for m, _ in done})}
    by_kind = {kind: [r for m, r in done if m.kind == kind] for kind in sorted({m.kind for m, _ in done})}
    for name, results in (*by_room.items(), ("all", [result for _, result in done])):
        print(_row(name, results))
    print("\n| change | mutants | caught | share |\n|---|---|---|---|")
    for name, results in by_kind.items():
        print(_row(name, results))
    seconds = sum(result.seconds for _, result in done) / max(len(done), 1)
    print(f"\n{seconds:.1f} s of a processor for each mutant.")


def _row(name: str, results: Sequence[Result]) -> str:
    caught = sum(result.outcome == "caught" for result in results)
    return f"| {name} | {len(results)} | {caught} | {100 * caught / len(results):.0f} % |"


def print_survivors(done: Sequence[Done]) -> None:
    """The mutants that were not caught, as Markdown."""
    print("\n| survivor | in | change | plays |\n|---|---|---|---|")
    for mutant, result in sorted(done, key=lambda each: (each[0].file, each[0].line)):
        if result.outcome != "caught":
            noted = result.outcome if result.outcome != "survived" else "not settled" if result.unmet else ""
            print(
                f"| `{mutant.file}:{mutant.line}` | `{mutant.owner}` | `{mutant.change()}` "
                f"| {result.played} {noted} |"
            )


if __name__ == "__main__":
    sys.exit(main())
