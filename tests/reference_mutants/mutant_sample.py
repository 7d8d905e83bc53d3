"""Which mutants of the reference there are, and which of them a seed draws."""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path

from mutation_operators import Node, mutated, operators, parsed

PACKAGE = "kubelet_reference"
_LEFT_OUT = ("server/", "api/metrics.py", "config/field_errors.py")
"""A server around the kubelet, and what it counts: no scenario in this process sees either. How what is wrong
with a manifest is put into words is for people to read."""
_UNSEEN_CALLS = ("_log.", "_LOG.", "_log = ", "_LOG = ", "self.metrics.", "self.tools.metrics.", "taken[")
"""What is logged and measured, and which rows of tables are taken, which the coverage of these counts."""
_ONLY_READ = re.compile(r"(await)?self\._do\(|\w*Row\(|cast\(|.*\.(field|wrong|expected)\($", re.DOTALL)
"""Calls whose first argument is for people to read: the name under which a call is counted, that of a row of
a table, a type that only checkers know, the field that an error of a manifest is about, and what is wrong
there."""
_WITH_ARGUMENTS = 3
_UNSEEN_NODES = {"raise_stmt", "tfpdef", "decorator", "import_from", "import_name"}
"""Messages of errors, types, and what is no behaviour."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change of one file.

    Attributes:
        file: the file, below the package.
        owner: the class or function that it is in, "" for the module itself.
        operator: the operator's name.
        occurrence: which of the operator's changes of the file.
        key: its name in samples and results, the same whatever else changes in the file.
        first: the first line of its statement.
        line: the line of the change.
        in_function: it is run when a function is called, not when the file is imported.
        names: what the statement defines, where it is not in a function.
    """

    file: str
    owner: str
    operator: str
    occurrence: int
    key: str
    first: int
    line: int
    in_function: bool
    names: tuple[str, ...]

    @property
    def kind(self) -> str:
        """The kind of its operator."""
        return operators()[self.operator][0]

    @property
    def room(self) -> str:
        """The folder of the package that it is in."""
        return self.file.partition("/")[0] if "/" in self.file else "."

    @property
    def module(self) -> str:
        """The module that it changes."""
        return f"{PACKAGE}.{self.file.removesuffix('.py').replace('/', '.').removesuffix('.__init__')}"

    @property
    def text(self) -> str:
        """The line of the change, as it was."""
        return read(self.file).splitlines()[self.line - 1].strip()

    def source(self) -> str:
        """The changed file."""
        return mutated(read(self.file), operators()[self.operator][1], self.occurrence)

    def change(self) -> str:
        """The changed line, before and after."""
        before, after = read(self.file).splitlines(), self.source().splitlines()
        place = next(i for i, (old, new) in enumerate(zip(before, after, strict=False)) if old != new)
        return f"{before[place].strip()} -> {after[place].strip()}"


@cache
def folder() -> Path:
    """Where the package is; it is not imported for that."""
    spec = find_spec(PACKAGE)
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent


@cache
def read(file: str) -> str:
    """The text of a file of the package."""
    return (folder() / file).read_text(encoding="utf-8")


def files() -> list[str]:
    """The files of the package that are changed."""
    names = sorted(path.relative_to(folder()).as_posix() for path in folder().rglob("*.py"))
    return [name for name in names if not name.startswith(_LEFT_OUT)]


def drawn(seed: int) -> list[Mutant]:
    """All mutants in the order in which this seed draws them.

    Each has a place of its own in that order: where the code changes, other mutants keep theirs.
    """
    every = [mutant for file in files() for mutant in _of_file(file)]
    return sorted(every, key=lambda each: sha256(f"{seed} {each.key}".encode()).digest())


def _of_file(file: str) -> Iterator[Mutant]:
    counts: Counter[str] = Counter()
    nodes = list(_nodes(parsed(read(file))))
    for name, (_, operator) in operators().items():
        occurrence = -1
        for node in nodes:
            for (line, _), _ in operator.mutation_positions(node):
                occurrence += 1
                if _is_unseen(node):
                    continue
                chain = [node, *_above(node)]
                statement = _statement(chain)
                owner = ".".join(
                    reversed([_name(each) for each in chain if each.type in {"classdef", "funcdef"}])
                )
                text = statement.get_code(include_prefix=False).strip().partition("\n")[0]
                same = f"{file} {owner} {name} {text}"
                counts[same] += 1
                yield Mutant(
                    file,
                    owner,
                    name,
                    occurrence,
                    f"{same} #{counts[same]}",
                    statement.start_pos[0],
                    line,
                    _is_in_function(chain),
                    _defined(chain),
                )


def _nodes(node: Node) -> Iterator[Node]:
    """All nodes, in the order in which cosmic-ray visits them."""
    yield node
    for child in _children(node):
        yield from _nodes(child)


def _children(node: Node) -> list[Node]:
    """None of a leaf."""
    return getattr(node, "children", [])


def _above(node: Node) -> Iterator[Node]:
    while node.parent is not None:
        node = node.parent
        yield node


_SEEN_BELOW = {"funcdef": {"suite", "parameters"}, "classdef": {"suite"}}


def _is_unseen(node: Node) -> bool:
    """Whether it is in a message, a type, or a call of the log or the metrics."""
    below = node
    for each in (node, *_above(node)):
        if each.type in _UNSEEN_NODES:
            return True
        if each.type == "annassign" and below is each.children[1]:
            return True
        # What a class is declared with says no more than its decorators.
        seen_below = _SEEN_BELOW.get(each.type)
        if seen_below is not None and below is not each and below.type not in seen_below:
            return True
        if each.type in {"arglist", "trailer"} and _is_only_read(each, below):
            return True
        if each.type == "simple_stmt":
            text = each.get_code(include_prefix=False)
            is_type = " = TypeVar(" in text or ": TypeAlias = " in text
            return is_type or text.startswith((*_UNSEEN_CALLS, "__all__"))
        below = each
    return False


def _is_only_read(arguments: Node, below: Node) -> bool:
    """Whether `below` is a first argument that people alone read."""
    trailer = arguments if arguments.type == "trailer" else arguments.parent
    if trailer is None or trailer.parent is None or below is not _first_argument(trailer):
        return False
    call = trailer.parent
    before = call.children[: next(i for i, each in enumerate(call.children) if each is trailer)]
    return _ONLY_READ.match("".join(each.get_code(include_prefix=False) for each in before) + "(") is not None


def _first_argument(trailer: Node) -> Node | None:
    """The first argument of a call; None of what is no call, or has none."""
    if len(trailer.children) < _WITH_ARGUMENTS or trailer.children[0].get_code() != "(":
        return None
    arguments = trailer.children[1]
    return arguments.children[0] if arguments.type == "arglist" else arguments


def _statement(chain: list[Node]) -> Node:
    """The innermost statement, or compound statement, around a node."""
    for below, each in pairwise(chain):
        if below.type == "simple_stmt" or each.type in {"suite", "file_input"}:
            return below
    return chain[0]


def _name(node: Node) -> str:
    return node.children[1].get_code(include_prefix=False)


def _is_in_function(chain: list[Node]) -> bool:
    """Whether it is in the body of a function: defaults of parameters are not."""
    return any(
        (each.type == "funcdef" and below.type == "suite") or (each.type == "lambdef" and below is not each)
        for below, each in pairwise(chain)
    )


def _defined(chain: list[Node]) -> tuple[str, ...]:
    """What the statement of a module or a class defines."""
    for each in chain:
        if each.type in {"funcdef", "classdef"}:
            return (_name(each),)
        if each.type == "simple_stmt":
            # One statement may define several names.
            return tuple(
                name
                for one in _children(each.children[0])[:1]
                for name in re.findall(r"\w+", one.get_code(include_prefix=False))
            )
    return ()
