"""Where a function, a class or an attribute stands in the code: file and lines."""

import ast
import inspect
import linecache
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from types import CodeType
from typing import Any, cast


@dataclass(frozen=True, slots=True)
class SourceLines:
    """Some lines of one file.

    Attributes:
        name: what stands there, such as `ActionRules.in_new_sandbox`.
        file: the file, relative to the current folder where it is below it.
        first: the number of the first line.
        last: the number of the last line.
    """

    name: str
    file: str
    first: int
    last: int

    def __str__(self) -> str:
        return f"{self.file}:{self.first}-{self.last}"

    @property
    def start(self) -> str:
        """The file and the first line, as editors and terminals link it."""
        return f"{self.file}:{self.first}"


def lines_of(what: object) -> SourceLines | None:
    """Where a class or a function stands, its decorators included; None where it has no source."""
    if isinstance(what, type):
        node = _definition(inspect.getsourcefile(what), what.__qualname__)
        return None if node is None else _lines(what.__qualname__, inspect.getsourcefile(what), node)
    code = _code(what)
    if code is None:
        return None
    node = _functions(code.co_filename).get(code.co_firstlineno)
    return None if node is None else _lines(code.co_qualname, code.co_filename, node)


def attribute_lines(owner: type, name: str) -> SourceLines | None:
    """Where a class defines this method or assigns this attribute in its body; None where it does not."""
    found = lines_of(vars(owner).get(name))
    if found is not None and found.name.startswith(f"{owner.__qualname__}."):
        return found
    file = inspect.getsourcefile(owner)
    node = _definition(file, f"{owner.__qualname__}.{name}")
    return None if node is None else _lines(f"{owner.__qualname__}.{name}", file, node)


def _code(what: Any) -> CodeType | None:  # noqa: ANN401 - a function, however it is wrapped
    """The code of a function, a method, a property, or of what a decorator has wrapped."""
    match what:
        case property():
            return _code(what.fget)
        case staticmethod() | classmethod():
            return _code(cast("Any", what).__func__)
        case cached_property():
            return _code(what.func)
        case _:
            code = getattr(what, "__code__", None)
            if code is None and hasattr(what, "__wrapped__"):
                return _code(what.__wrapped__)
            return code if isinstance(code, CodeType) else None


def _definition(file: str | None, qualified_name: str) -> ast.stmt | None:
    """The statement at the top level of a file, or in a class there, that binds the name."""
    body: list[ast.stmt] = _parsed(file).body if file else []
    found: ast.stmt | None = None
    for name in qualified_name.split("."):
        found = next((one for one in body if name in _names(one)), None)
        body = found.body if isinstance(found, ast.ClassDef) else []
    return found


def _names(node: ast.stmt) -> list[str]:
    match node:
        case ast.ClassDef(name=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
            return [name]
        case ast.AnnAssign(target=ast.Name(id=name)):
            return [name]
        case ast.Assign(targets=targets):
            return [one.id for one in targets if isinstance(one, ast.Name)]
        case _:
            return []


@cache
def _parsed(file: str) -> ast.Module:
    return ast.parse("".join(linecache.getlines(file)))


@cache
def _functions(file: str) -> dict[int, ast.stmt]:
    """The functions and methods of a file by their first lines, decorators included."""
    every = (ast.FunctionDef, ast.AsyncFunctionDef)
    return {_first_line(node): node for node in ast.walk(_parsed(file)) if isinstance(node, every)}


def _lines(name: str, file: str | None, node: ast.stmt) -> SourceLines:
    return SourceLines(name, _shown(file or "?"), _first_line(node), node.end_lineno or node.lineno)


def _first_line(node: ast.stmt) -> int:
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([node.lineno, *(one.lineno for one in decorators)])


def _shown(file: str) -> str:
    path = Path(file).resolve()
    here = Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)
