"""Changes the reference in this process: a function in place, anything else by importing all of it anew."""

import gc
import importlib.abc
import importlib.util
import inspect
import pkgutil
import sys
from collections.abc import Iterator, Sequence
from functools import cache
from importlib import import_module
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import CodeType, FunctionType, ModuleType

from mutant_sample import PACKAGE, Mutant, folder

_ABOVE = ("kubelet_bugs", "kubelet_conformance.targets.in_process")
"""What imports the reference, beside itself."""


class _Changed(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Imports one module from a text."""

    def __init__(self, module: str, path: Path, source: str) -> None:
        self._module, self._path, self._source = module, path, source

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """This module alone."""
        del path, target
        if fullname != self._module:
            return None
        is_package = self._path.name == "__init__.py"
        places = [str(self._path.parent)] if is_package else None
        return importlib.util.spec_from_file_location(
            fullname, self._path, loader=self, submodule_search_locations=places
        )

    def exec_module(self, module: ModuleType) -> None:
        """Run the text."""
        exec(compile(self._source, str(self._path), "exec"), vars(module))  # noqa: S102 - a module is run so


def import_all() -> None:
    """Import all of the reference but its server, and what plays scenarios on it."""
    package = import_module(PACKAGE)
    for each in pkgutil.walk_packages(package.__path__, f"{PACKAGE}."):
        if not each.name.startswith(f"{PACKAGE}.server"):
            import_module(each.name)
    import_module("kubelet_conformance.targets.in_process.stage")


@cache
def functions() -> dict[tuple[str, str, int], list[FunctionType]]:
    """The functions of the reference as it is imported here, by file, name and first line."""
    found: dict[tuple[str, str, int], list[FunctionType]] = {}
    for each in gc.get_objects():
        if isinstance(each, FunctionType) and each.__code__.co_filename.startswith(str(folder())):
            found.setdefault(_key(each.__code__), []).append(each)
    return found


def change(mutant: Mutant, *, anew: bool) -> None:
    """Change the reference so, by importing it `anew` if need be; raises what its import raises."""
    source, path = mutant.source(), folder() / mutant.file
    if not anew and _replaced(source, path):
        return
    for name in list(sys.modules):
        if any(name == each or name.startswith(f"{each}.") for each in (PACKAGE, *_ABOVE)):
            del sys.modules[name]
    sys.meta_path.insert(0, _Changed(mutant.module, path, source))
    import_all()


def _replaced(source: str, path: Path) -> bool:
    """Whether all code that differs could be put into functions that are there."""
    before = list(_outermost(compile(path.read_text(encoding="utf-8"), str(path), "exec")))
    after = list(_outermost(compile(source, str(path), "exec")))
    different = [(old, new) for old, new in zip(before, after, strict=False) if old != new]
    places = [functions().get(_key(old), []) for old, _ in different]
    if len(before) != len(after) or not different or not all(places):
        return False
    if any(old.co_freevars != new.co_freevars for old, new in different):
        return False
    for (_, new), same in zip(different, places, strict=True):
        for function in same:
            function.__code__ = new
    return True


def _key(code: CodeType) -> tuple[str, str, int]:
    return code.co_filename, code.co_qualname, code.co_firstlineno


def _outermost(code: CodeType) -> Iterator[CodeType]:
    """The functions of a module and its classes; those within them come with them."""
    for each in code.co_consts:
        if isinstance(each, CodeType) and each.co_flags & inspect.CO_OPTIMIZED:
            yield each
        elif isinstance(each, CodeType):
            yield from _outermost(each)
