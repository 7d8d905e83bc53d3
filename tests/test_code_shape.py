"""The shape of the code: limits and bans that no linter holds, as one test per rule."""

import ast
import re
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatch
from functools import cache
from pathlib import Path, PurePosixPath

import pytest

ROOT = Path(__file__).resolve().parent.parent

LINES_PER_FILE = 600
LINES_PER_FUNCTION = 70

Finding = tuple[int, str]

#: The needles are put together here, so that this file does not hold them.
UNFINISHED = re.compile(r"\b(" + "|".join(("TO" + "DO", "FIX" + "ME", "X" * 3)) + r")\b")
ELSEWHERE = re.compile(
    r"/wo" + r"rk/[\w.]|\.\./sha" + "red|/op" + "t/(?:wheels|pypi)|/ro" + "ot/|/bash" + "_jobs"
)


@dataclass(frozen=True)
class File:
    """One file of the tree, or one that a test made up."""

    path: PurePosixPath
    text: str

    @property
    def is_python(self) -> bool:
        """Whether it is code."""
        return self.path.suffix == ".py"

    @property
    def is_test(self) -> bool:
        """Whether it lies under tests/."""
        return self.path.parts[0] == "tests"

    @property
    def package(self) -> str:
        """The dotted name of the package the file lies in, without the top-level folder."""
        return ".".join(self.path.parts[1:-1])

    @property
    def tree(self) -> ast.Module:
        """The file's syntax, parsed anew since all of them fill memory; text that does not parse raises."""
        return ast.parse(self.text, str(self.path))


Rule = Callable[[File], Iterator[Finding]]


def short_file(file: File) -> Iterator[Finding]:
    """A file of code has at most 600 lines."""
    lines = len(file.text.splitlines())
    if file.is_python and lines > LINES_PER_FILE:
        yield lines, f"{lines} lines, at most {LINES_PER_FILE}: part it by subject"


def short_function(file: File) -> Iterator[Finding]:
    """A function has at most 70 lines."""
    if not file.is_python:
        return
    for node in ast.walk(file.tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            if lines > LINES_PER_FUNCTION:
                yield node.lineno, f"{node.name} has {lines} lines, at most {LINES_PER_FUNCTION}"


def complete_all(file: File) -> Iterator[Finding]:
    """A package that re-exports has `__all__`, a tuple of all its public imports from inside."""
    if file.path.name != "__init__.py" or file.is_test:
        return
    imported = dict(reexports(file))
    listed = public_names(file.tree)
    if listed is None:
        if imported:
            yield 1, f"it re-exports {', '.join(sorted(imported))}: say so in `__all__`, a tuple of names"
        return
    for name in sorted(imported.keys() - set(listed)):
        yield (
            imported[name],
            f"{name} is imported from inside but not in `__all__`; alias it with _ if private",
        )
    for name in sorted(set(listed) - names_bound(file.tree)):
        yield 1, f"`__all__` promises {name}, which is not there"


def reexports(file: File) -> Iterator[tuple[str, int]]:
    """The public names that a package imports from its own modules; the modules themselves are no names."""
    for node in file.tree.body:
        if not isinstance(node, ast.ImportFrom):
            continue
        module = node.module or ""
        source = f"{file.package}.{module}".rstrip(".") if node.level == 1 else module
        if source == file.package:
            continue
        if node.level == 1 or source.startswith(f"{file.package}."):
            for alias in node.names:
                name = alias.asname or alias.name
                if not name.startswith("_"):
                    yield name, node.lineno


def public_names(tree: ast.Module) -> tuple[str, ...] | None:
    """The value of `__all__` where it is a tuple of strings, else None."""
    for node in tree.body:
        match node:
            case ast.Assign(targets=[ast.Name("__all__")], value=ast.Tuple() as names):
                return tuple(str(ast.literal_eval(name)) for name in names.elts)
            case _:
                pass
    return None


def names_bound(tree: ast.Module) -> set[str]:
    """Every name that the top level of a module defines, assigns or imports."""
    names: set[str] = set()
    for node in tree.body:
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                names.add(name)
            case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
                names |= {alias.asname or alias.name.partition(".")[0] for alias in aliases}
            case ast.Assign(targets=[ast.Name(name)]) | ast.AnnAssign(target=ast.Name(name)):
                names.add(name)
            case _:
                pass
    return names


def blind_judge(file: File) -> Iterator[Finding]:
    """A judge does not look at the scenario, the seed or the kubelet's name."""
    if (
        not file.is_python
        or file.is_test
        or not f"{file.package}.".startswith("kubelet_conformance.contracts.")
    ):
        return
    for node in ast.walk(file.tree):
        match node:
            case ast.Attribute(attr="scenario" | "seed" as attr):
                yield node.lineno, f"a judge may not read .{attr}"
            case ast.Attribute(value=ast.Name("header") | ast.Attribute(attr="header"), attr="kubelet"):
                yield node.lineno, "a judge may not read the kubelet's name"
            case _:
                pass


def finished(file: File) -> Iterator[Finding]:
    """No code and no page leaves something for later; data may quote whom it likes."""
    if file.path.suffix not in {".json", ".jsonl"}:
        yield from lines_with(UNFINISHED, file)


def at_home_anywhere(file: File) -> Iterator[Finding]:
    """No file names a path of the machine it was written on."""
    yield from lines_with(ELSEWHERE, file)


def lines_with(needle: re.Pattern[str], file: File) -> Iterator[Finding]:
    """Each line that holds the needle."""
    for number, line in enumerate(file.text.splitlines(), start=1):
        found = needle.search(line)
        if found:
            yield number, f"{found[0]!r} does not belong here"


RULES: tuple[Rule, ...] = (
    short_file,
    short_function,
    complete_all,
    blind_judge,
    finished,
    at_home_anywhere,
)


@cache
def files() -> tuple[File, ...]:
    """Every file of the checkout that .gitignore does not name, archives and pictures left out."""
    ignored = [".git", *(ROOT / ".gitignore").read_text(encoding="utf-8").splitlines()]

    def walk(folder: Path) -> Iterator[Path]:
        for path in sorted(folder.iterdir()):
            if any(fnmatch(path.name, pattern) for pattern in ignored):
                continue
            if path.is_dir():
                yield from walk(path)
            else:
                yield path

    return tuple(
        File(PurePosixPath(path.relative_to(ROOT).as_posix()), path.read_text(encoding="utf-8"))
        for path in walk(ROOT)
        if path.suffix not in {".png", ".xz"}
    )


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_tree_keeps(rule: Rule) -> None:
    """The whole tree keeps the rule."""
    findings = [f"{file.path}:{line}: {text}" for file in files() for line, text in sorted(set(rule(file)))]

    if findings:
        pytest.fail("\n".join([f"{rule.__doc__}", *findings]), pytrace=False)


def test_every_python_file_is_shipped_or_a_test() -> None:
    """All code lies in a typed package of the wheel or in the tests: nothing escapes the rules."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    packages = project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
    code = {
        str(PurePosixPath(*file.path.parts[:2])) for file in files() if file.is_python and not file.is_test
    }

    pages = {each for each in code if each.startswith("docs/")}
    assert code == {*packages, *pages}, "but for what writes pages of the guide"
    assert all((ROOT / package / "py.typed").exists() for package in packages)


INIT = "conformance/kubelet_conformance/__init__.py"
CODE = "conformance/kubelet_conformance/a.py"
JUDGE = "conformance/kubelet_conformance/contracts/a.py"
REPORT = "conformance/kubelet_conformance/reports/a.py"
TEST = "tests/a.py"
PAGE = "docs/a.md"

#: A rule, a file made up for it, and the lines where the rule finds something.
CASES: dict[str, tuple[Rule, str, str, list[int]]] = {
    "file-600": (short_file, CODE, "a = 1\n" * 600, []),
    "file-601": (short_file, CODE, "a = 1\n" * 601, [601]),
    "page-601": (short_file, PAGE, "a\n" * 601, []),
    "function-70": (short_function, TEST, "def f():\n" + " a\n" * 69, []),
    "function-71": (short_function, TEST, "\nasync def f():\n" + " a\n" * 70, [2]),
    "all-missing": (complete_all, INIT, "from .a import b", [1]),
    "all-list": (complete_all, INIT, "from .a import b\n__all__ = ['b']", [1]),
    "all-short": (complete_all, INIT, "\nfrom .a import b\n__all__ = ()", [2]),
    "all-short-absolute": (complete_all, INIT, "\nfrom kubelet_conformance.a import b\n__all__ = ()", [2]),
    "all-of-nothing": (complete_all, INIT, "__all__ = ('b',)", [1]),
    "all-right": (complete_all, INIT, "from .a import b, c as _c\nfrom . import d\n__all__ = ('b',)", []),
    "all-own": (complete_all, INIT, "import re\ndef f(): pass\n__all__ = ('f',)", []),
    "judge-peeks": (blind_judge, JUDGE, "h.scenario\nx.seed\nt.header.kubelet", [1, 2, 3]),
    "judge-is-blind": (blind_judge, JUDGE, "record.kubelet", []),
    "report-may-look": (blind_judge, REPORT, "h.scenario", []),
    "unfinished": (finished, PAGE, "a\n" + "TO" + "DO: b", [2]),
    "unfinished-in-data": (finished, "fixtures/a.jsonl", "TO" + "DO", []),
    "elsewhere": (at_home_anywhere, PAGE, "see /wo" + "rk/main", [1]),
    "at-home": (at_home_anywhere, PAGE, "network/main, https://a/works/b", []),
}


@pytest.mark.parametrize(("rule", "path", "text", "lines"), CASES.values(), ids=CASES)
def test_rule_bites(rule: Rule, path: str, text: str, lines: list[int]) -> None:
    """Each rule finds what it is there to find, on the right line, and nothing else."""
    found = sorted({line for line, _ in rule(File(PurePosixPath(path), text))})

    assert found == lines
