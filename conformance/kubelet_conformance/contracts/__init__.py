"""The contracts: one module a subject, found by walking this package and its families."""

import pkgutil
import traceback
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

from kubelet_conformance.contract.catalogue import add, rows
from kubelet_conformance.contract.definition import BrokenModuleError, Contract, own_row
from kubelet_conformance.contract.extensions import Extension, extensions

__all__ = ("every_contract",)


def _imported(module: str, folder: Path) -> ModuleType:
    """The module; `BrokenModuleError` names the file (in this folder) and line that cannot be imported."""
    try:
        return import_module(module)
    except Exception as error:
        here = [
            f"{frame.filename}:{frame.lineno}"
            for frame in traceback.extract_tb(error.__traceback__)
            if Path(frame.filename).is_relative_to(folder) and frame.filename != __file__
        ]
        if isinstance(error, SyntaxError):
            here.append(f"{error.filename}:{error.lineno}")
        where = here[-1] if here else module
        raise BrokenModuleError(f"{where}: cannot be imported: {type(error).__name__}: {error}") from error


@cache
def every_contract() -> dict[str, Contract]:
    """All contracts by id, in the order of the catalogue; those of other packages come last."""
    found: dict[str, Contract] = {}
    for module in pkgutil.walk_packages(__path__, f"{__name__}."):
        for each in _made_in(_imported(module.name, Path(__file__).parent)):
            if found.get(each.id, each) is not each:
                raise ValueError(f"{each.id} is judged in {found[each.id].module} and in {module.name}")
            found[each.id] = each
    found = {each: found[each] for each in rows() if each in found}
    for extension in extensions("contracts"):
        for each in _brought_by(extension):
            found[each.id] = each
    return found


def _made_in(module: ModuleType) -> list[Contract]:
    """The contracts that a module defines, and not those that it imports."""
    found = (each for each in vars(module).values() if isinstance(each, Contract))
    return [each for each in found if each.module == module.__name__]


def _brought_by(extension: Extension) -> list[Contract]:
    """The contracts of another package, with rows; `BrokenModuleError` for one that cannot be used."""
    spec = find_spec(extension.module.partition(".")[0])
    folder = Path(spec.origin if spec is not None and spec.origin else "").parent
    first = _imported(extension.module, folder)
    path = getattr(first, "__path__", ())
    names = [each.name for each in pkgutil.walk_packages(path, f"{extension.module}.")]
    made = [
        each for module in (first, *(_imported(name, folder) for name in names)) for each in _made_in(module)
    ]
    if not made:
        raise BrokenModuleError(f"{extension}: {extension.module} has no contract; define one with @contract")
    for each in made:
        try:
            add(own_row(each, extension.package))
        except ValueError as error:
            raise BrokenModuleError(f"{extension}: {error}") from None
    return made
