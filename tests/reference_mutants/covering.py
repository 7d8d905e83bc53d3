"""Which play runs which lines of the reference, and so which a mutant is played in."""

import ast
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from time import process_time

import coverage
import msgspec
from changed_code import import_all
from mutant_sample import PACKAGE, Mutant, files, folder, read
from plays import Play, perform_play, plays_of

from kubelet_conformance.scenarios import every_scenario
from kubelet_conformance.targets.choice import Choice
from kubelet_conformance.targets.opening import open_stage

_OTHERS_MAX = 120
"""A line that nearly every play runs is played as other versions, and with faults, only so many times."""


class Covered(msgspec.Struct, frozen=True):
    """What plays have run.

    Attributes:
        tree: the digest of the code that was run.
        plays: all plays by name, the scenarios as they are first.
        seconds: the time that the processor needs for each, with its judging.
        groups: sets of plays: many lines are run by the same ones.
        lines: the group by file of the package and line; functions' bodies only. A line is known by its
            function and its text, so that it is found again where others have changed.
        imported: the functions that importing the reference runs, as file and name.
    """

    tree: str
    plays: dict[str, Play]
    seconds: dict[str, float]
    groups: list[list[str]]
    lines: dict[str, dict[str, int]]
    imported: list[str]

    def runs_at_import(self, mutant: Mutant) -> bool:
        """Whether the change is in what importing the reference runs, or in what that makes."""
        owners = [mutant.owner, *(mutant.owner[:end] for end, sign in enumerate(mutant.owner) if sign == ".")]
        return not mutant.in_function or any(f"{mutant.file} {owner}" in self.imported for owner in owners)

    def played_in(self, mutant: Mutant) -> list[Play]:
        """The plays that run what a mutant changes, scenarios as they are first, short before long."""
        found = self._of_line(mutant) if mutant.in_function else set[str]()
        if not found and self.runs_at_import(mutant):
            found = self._of_names(mutant)
        ordered = [self.plays[name] for name in sorted(found, key=lambda each: (self.seconds[each], each))]
        versions = [each for each in ordered if each.version]
        faults = [each for each in ordered if each.blow]
        as_it_is = [each for each in ordered if not each.version and not each.blow]
        return [*as_it_is, *versions[:_OTHERS_MAX], *faults[:_OTHERS_MAX]]

    def _of_line(self, mutant: Mutant) -> set[str]:
        lines = self.lines.get(mutant.file, {})
        keys = keys_of(mutant.file)
        group = lines.get(keys[mutant.line], lines.get(keys[mutant.first]))
        return set() if group is None else set(self.groups[group])

    def _of_names(self, mutant: Mutant) -> set[str]:
        """Those that run a line which names what a module or class defines, or all of its file."""
        groups: set[int] = set()
        if mutant.names:
            named = naming(with_what_is_made_of(mutant.names))
            for lines in self.lines.values():
                groups.update(group for key, group in lines.items() if named.search(key.partition(" ")[2]))
        groups = groups or set(self.lines.get(mutant.file, {}).values())
        return {each for group in groups for each in self.groups[group]} or set(self.seconds)


@dataclass(frozen=True, slots=True)
class _Part:
    """What one process has recorded."""

    seconds: dict[str, float]
    lines: dict[str, dict[str, list[str]]]
    imported: set[str]


def covered(path: Path, tree: str, workers: int, *, keep: bool) -> Covered:
    """What is kept at `path`, if it is of this code or is to be kept, else recorded anew."""
    before = Covered(tree, {}, {}, [], {}, [])
    if path.is_file():
        kept = msgspec.json.decode(path.read_bytes(), type=Covered)
        before = kept if keep or kept.tree == tree else before
    missing = [name for name in every_scenario() if name not in before.plays]
    return _recorded(missing, before, path, workers) if missing else before


def _recorded(scenarios: Sequence[str], before: Covered, path: Path, workers: int) -> Covered:
    """The same with all plays of these scenarios, which are played here."""
    with get_context("fork").Pool(workers, maxtasksperchild=1) as pool:
        plays = {str(play): play for play in pool.apply(_plays_of, (scenarios,))}
        shares = [list(plays.values())[number::workers] for number in range(workers)]
        parts = pool.map(_record, shares, chunksize=1)
    seconds = dict(before.seconds)
    lines = {
        file: {key: set(before.groups[group]) for key, group in found.items()}
        for file, found in before.lines.items()
    }
    for part in parts:
        seconds.update(part.seconds)
        for file, found in part.lines.items():
            for key, names in found.items():
                lines.setdefault(file, {}).setdefault(key, set()).update(names)
    imported = sorted({*before.imported, *(each for part in parts for each in part.imported)})
    result = Covered(before.tree, {**before.plays, **plays}, seconds, *_grouped(lines), imported)
    path.write_bytes(msgspec.json.encode(result))
    return result


def _plays_of(scenarios: Sequence[str]) -> list[Play]:
    """In a process of its own: this one has not imported the reference."""
    return list(plays_of(scenarios, open_stage(Choice())))


def _grouped(lines: dict[str, dict[str, set[str]]]) -> tuple[list[list[str]], dict[str, dict[str, int]]]:
    """Each set of plays once, and which of them belongs to each line."""
    numbers: dict[tuple[str, ...], int] = {}
    by_line = {
        file: {key: numbers.setdefault(tuple(sorted(each)), len(numbers)) for key, each in found.items()}
        for file, found in lines.items()
    }
    return [list(group) for group in numbers], by_line


def naming(names: Iterable[str]) -> re.Pattern[str]:
    """Finds any of these names in a text."""
    return re.compile(rf"\b({'|'.join(re.escape(each) for each in sorted(names))})\b")


@cache
def with_what_is_made_of(names: tuple[str, ...]) -> frozenset[str]:
    """These names, and those of all that importing the reference makes of them: a table, a default."""
    found = frozenset(names)
    while True:
        named = naming(found)
        more = {each for made, text in definitions() if named.search(text) for each in made}
        if more <= found:
            return found
        found |= more


@cache
def definitions() -> Sequence[tuple[tuple[str, ...], str]]:
    """What modules and classes define by their statements, with the text of each; of a function its head."""
    return [found for file in files() for found in _defined_in(ast.parse(read(file)))]


def _defined_in(node: ast.AST) -> Iterator[tuple[tuple[str, ...], str]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Assign | ast.AnnAssign) and child.value is not None:
            targets = child.targets if isinstance(child, ast.Assign) else [child.target]
            names = [one.id for each in targets for one in ast.walk(each) if isinstance(one, ast.Name)]
            yield tuple(names), ast.unparse(child.value)
        elif isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            defaults = (*child.args.defaults, *child.args.kw_defaults)
            yield (child.name,), " ".join(ast.unparse(each) for each in defaults if each is not None)
        elif isinstance(child, ast.ClassDef):
            yield from _defined_in(child)


@cache
def keys_of(file: str) -> list[str]:
    """What each line of a file is known by, from line 0, which there is not."""
    texts = ["", *(text.strip() for text in read(file).splitlines()), ""]
    return [f"{owner} {text}" for owner, text in zip(owners_of(file), texts, strict=True)]


@cache
def owners_of(file: str) -> list[str]:
    """The class or function that each line of a file is in, from line 0, which there is not."""
    owners = [""] * (len(read(file).splitlines()) + 2)
    _own(ast.parse(read(file)), "", owners)
    return owners


def _own(node: ast.AST, owner: str, owners: list[str]) -> None:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            name = f"{owner}.{child.name}".removeprefix(".")
            first, last = child.lineno, child.end_lineno or child.lineno
            owners[first : last + 1] = [name] * (last + 1 - first)
            _own(child, name, owners)
        else:
            _own(child, owner, owners)


def _record(plays: Sequence[Play]) -> _Part:
    """Make these in this process, which has not imported the reference yet.

    What is run at the import belongs to none of them.
    """
    watch = coverage.Coverage(data_file=None, source_pkgs=[PACKAGE], config_file=False, messages=False)
    watch.start()
    import_all()
    stage = open_stage(Choice())
    seconds: dict[str, float] = {}
    for play in plays:
        name = str(play)
        watch.switch_context(name)
        began = process_time()
        broken = perform_play(play, stage).broken
        seconds[name] = round(process_time() - began, 3)
        if broken:
            raise RuntimeError(f"{name} breaks {', '.join(broken)} on the reference as it is")
    watch.stop()
    data = watch.get_data()
    return _Part(seconds, _lines(data), _imported(data))


def _lines(data: coverage.CoverageData) -> dict[str, dict[str, list[str]]]:
    found: dict[str, dict[str, list[str]]] = {}
    for file in files():
        keys, lines = keys_of(file), found.setdefault(file, {})
        for line, contexts in data.contexts_by_lineno(str(folder() / file)).items():
            names = [each for each in contexts if each]
            if names:
                lines.setdefault(keys[line], []).extend(names)
    return found


def _imported(data: coverage.CoverageData) -> set[str]:
    """The functions in whose bodies a line was run outside of all plays."""
    found: set[str] = set()
    for file in files():
        owners, by_line = owners_of(file), data.contexts_by_lineno(str(folder() / file))
        for node in ast.walk(ast.parse(read(file))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                body = range(node.body[0].lineno, (node.end_lineno or node.lineno) + 1)
                if any("" in by_line.get(line, ()) for line in body):
                    found.add(f"{file} {owners[node.lineno]}")
    return found
